"""Unique attributes of any model, with guards in its own table or in a second one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from dynamo._internal.client.sending import send
from dynamo.exceptions import Taken
from tests.dynamo.bands import (
    NAME,
    both_models,
    delete_guard,
    guards_of,
    insert,
    put_guard,
    the_who,
)
from tests.requests import Requests, told

pytestmark = pytest.mark.usefixtures("engine")


def stored_of(model: Any) -> dict[str, dict[str, Any]]:
    """Every item of a model's table by its key, guards in the same table included."""
    (key_name,) = model.key_attribute_names()
    items = send("Scan", {"TableName": model.table()})["Items"]
    return {item[key_name]["S"]: item for item in items}


@both_models
def test_a_value_that_comes_and_goes_brings_and_takes_its_guard(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example"))

    band.change(label="EMI")
    assert guards_of(model)["label#EMI"] == ("1",)
    band.change(label=None)

    assert "label#EMI" not in guards_of(model)
    assert "label" not in stored_of(model)["1"]


# Keys ---------------------------------------------------------------------------------------------


@both_models
def test_a_key_of_2048_bytes_is_stored_and_found(model: Any) -> None:
    site = "é" * 1021 + "x"
    assert len(f"site#{site}".encode()) == 2048
    insert(model("1", name="Long", site=site))

    assert model.find(site=site).name == "Long"


@both_models
def test_a_key_over_2048_bytes_is_rejected_before_a_request_is_sent(
    model: Any, requests_sent: Requests
) -> None:
    with pytest.raises(ValueError, match="The value of site is too long to be kept unique"):
        insert(model("1", name="Long", site="é" * 1022))

    assert requests_sent.operations == []


# Damaged guards -----------------------------------------------------------------------------------


@both_models
@pytest.mark.parametrize("owner", [None, "thief"])
@pytest.mark.parametrize(
    "leave", [lambda band: band.delete(), lambda band: band.change(site="new.example")]
)
def test_an_owner_whose_guard_is_gone_or_anothers_can_leave_its_value(
    model: Any, leave: Callable[[Any], None], owner: str | None
) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    delete_guard(model, "site#who.example")
    if owner is not None:
        put_guard(model, "site#who.example", owner)

    leave(band)

    assert guards_of(model).get("site#who.example") == (owner and (owner,))


#: Of a value that an item of version 0.1 did not have yet. The time has not come.
RESERVED = {"reservation": {"S": "r1"}, "expires": {"N": "9999999999"}}

#: Guards of the item 1 that do not make it the owner of the value, and whether they keep it taken.
NO_GUARDS: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "absent": (None, False),
    "of another item": ({"owner": "2"}, True),
    "of no item": ({"owner": ""}, True),
    "of a missing item": ({"owner": "gone"}, True),
    "a reservation of version 0.1": ({"owner": "2"} | RESERVED, False),
    "its own reservation of version 0.1": ({"owner": "1"} | RESERVED, False),
}


@both_models
@pytest.mark.parametrize(("guard", "is_taken"), NO_GUARDS.values(), ids=NO_GUARDS)
def test_an_item_is_not_found_by_a_value_whose_guard_is_damaged(
    model: Any, guard: dict[str, Any] | None, is_taken: bool
) -> None:
    the_who(model)
    insert(model("2", name="Thief", site="thief.example"))
    delete_guard(model, "site#who.example")
    if guard is not None:
        put_guard(model, "site#who.example", **guard)

    with pytest.raises(model.DoesNotExist):
        model.find(site="who.example")

    assert model.find(name="The Who")
    with pytest.raises(Taken) if is_taken else nullcontext():
        insert(model("3", name="Other", site="who.example"))


@both_models
@pytest.mark.parametrize("owner", ["1", "2", "gone"])
def test_a_value_that_version_0_1_reserved_is_free(model: Any, owner: str) -> None:
    put_guard(model, "site#new.example", owner, **RESERVED)
    assert not model.is_taken(site="NEW.example")
    band = the_who(model)

    band.change(site="new.example")

    assert guards_of(model) == NAME | {"site#new.example": ("1",)}
    assert model.find(site="new.example").name == "The Who"
    assert model.is_taken(site="new.example")
    band.delete()
    assert guards_of(model) == {}


@both_models
def test_an_item_takes_a_value_whose_guard_it_has_already(model: Any) -> None:
    band = insert(model("1", name="The Who", site="who.example"))
    put_guard(model, "site#new.example", "1")

    band.change(site="new.example")

    assert guards_of(model)["site#new.example"] == ("1",)


@both_models
def test_an_error_of_a_receiver_is_not_taken_for_an_unknown_value(model: Any) -> None:
    def fail(**_sent: Any) -> None:
        raise ValueError("of the receiver")

    with told(fail), pytest.raises(ValueError, match="of the receiver"):
        model.find(name="The Who")
