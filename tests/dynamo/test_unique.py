"""Guard items in the table of their items, or in a second one: long and damaged ones."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from dynamo import Taken, Transaction
from tests.dynamo.bands import Band, Singer, delete_guard
from tests.items import put_item, stored_items
from tests.requests import Requests, told

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.parametrize("model", [Band, Singer])]

SITE = "site#who.example"


def the_who(model: Any) -> Any:
    return model("1", name="The Who", site="who.example").insert()


def guards_of(model: Any) -> dict[str, str]:
    """The owner of each guard."""
    return {
        key: item["owner"]["S"]
        for key, item in stored_items(model._guard_table().name).items()
        if "#" in key
    }


def put_guard(model: Any, key: str, owner: str) -> None:
    item = {"pk": {"S": key}, "owner": {"S": owner}}
    put_item(model._guard_table().name, **item)


def test_a_key_of_2048_bytes_is_found_and_a_longer_or_empty_one_rejected_before_a_request(
    model: Any, requests_sent: Requests
) -> None:
    with pytest.raises(ValueError, match="The value of site is too long to be kept unique"):
        model("1", name="Long", site="é" * 1022).insert()
    with pytest.raises(ValueError, match="The value of label is empty when it is normalized"):
        model("1", name="Long", site="a", label=" ").insert()
    assert requests_sent.operations == []

    site = "é" * 1021 + "x"
    assert len(f"site#{site}".encode()) == 2048
    model("1", name="Long", site=site).insert()
    assert model.find(site=site).name == "Long"


@pytest.mark.parametrize("owner", [None, "thief"])
@pytest.mark.parametrize(
    "leave", [lambda band: band.delete(), lambda band: band.change(site="new.example")]
)
def test_an_item_can_give_up_a_value_whose_guard_is_gone_or_names_another_item(
    model: Any, leave: Callable[[Any], None], owner: str | None
) -> None:
    band = the_who(model)
    delete_guard(model, SITE)
    if owner is not None:
        put_guard(model, SITE, owner)

    leave(band)

    assert guards_of(model).get(SITE) == owner


def test_two_items_that_have_the_same_value_by_damage_can_be_deleted_together(model: Any) -> None:
    band = the_who(model)
    delete_guard(model, SITE)
    twin = model("2", name="Twin", site="who.example").insert()

    with Transaction() as write:
        twin.delete(write=write)
        band.delete(write=write)

    assert guards_of(model) == {}


@pytest.mark.parametrize("owner", [None, "2", "", "gone"])
def test_an_item_is_not_found_by_a_value_whose_guard_is_damaged(
    model: Any, owner: str | None
) -> None:
    the_who(model)
    model("2", name="Thief", site="thief.example").insert()
    delete_guard(model, SITE)
    if owner is not None:
        put_guard(model, SITE, owner)

    with pytest.raises(model.DoesNotExist):
        model.find(site="who.example")

    assert model.find(name="The Who")
    with nullcontext() if owner is None else pytest.raises(Taken):
        model("3", name="Other", site="who.example").insert()


@pytest.mark.parametrize("owner", ["1", "2", "gone"])
def test_an_item_takes_a_value_whose_guard_is_its_own(model: Any, owner: str) -> None:
    put_guard(model, "site#new.example", owner)
    assert model.is_taken(site="NEW.example")
    band = the_who(model)

    with nullcontext() if owner == "1" else pytest.raises(Taken):
        band.change(site="new.example")
        assert guards_of(model) == {"name#the who": "1", "site#new.example": "1"}
        assert model.find(site="new.example").name == "The Who"
        band.delete()
        assert guards_of(model) == {}


def test_no_value_begins_with_letters_that_are_none_when_they_are_normalized(model: Any) -> None:
    band = model("1", name="The Who", site="who.example", label="Brunswick")
    [label] = [key for key in model._unique_keys if key.names == ("label",)]

    assert [label.begins(band.serialize(), text) for text in ("br", "who", " ")] == [
        True,
        False,
        False,
    ]


def test_an_error_of_a_receiver_is_not_taken_for_an_unknown_value(model: Any) -> None:
    def fail(**_sent: Any) -> None:
        raise ValueError("of the receiver")

    with told(fail), pytest.raises(ValueError, match="of the receiver"):
        model.find(name="The Who")
