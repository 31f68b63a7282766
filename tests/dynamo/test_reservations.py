"""Reserved values of any model, with guards in its own table or in a second one."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo.unique import guards
from tests.dynamo.bands import (
    NAME,
    Taken,
    both_models,
    change,
    guards_of,
    insert,
    note,
    put_guard,
    remove,
    the_who,
)

pytestmark = pytest.mark.usefixtures("engine")


@both_models
def test_a_noted_value_is_reserved_and_the_item_keeps_its_own(model: Any) -> None:
    who = the_who(model)

    change(who, **note("New.example"))

    site = {"site#who.example": ("1",), "site#new.example": ("1", "r1")}
    assert guards_of(model) == NAME | site
    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "new.example")
    assert model.unique.get("site", "who.example").site == "who.example"
    assert model.unique.is_taken("site", "new.example")


@both_models
def test_another_note_replaces_the_reservation_and_no_note_removes_it(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, **note("newer.example", "r2"))
    assert guards_of(model).keys() == {"name#the who", "site#who.example", "site#newer.example"}

    change(who, **note(None))
    assert guards_of(model).keys() == {"name#the who", "site#who.example"}


@both_models
def test_a_value_that_is_noted_again_has_the_new_reservation(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, **note("NEW.example", "r2"))

    assert guards_of(model)["site#new.example"] == ("1", "r2")


@both_models
def test_an_item_that_takes_its_reserved_value_gets_a_lasting_guard(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, site="NEW.example", **note(None))

    assert guards_of(model) == NAME | {"site#new.example": ("1",)}
    assert model.unique.get("site", "new.example").site == "NEW.example"


@both_models
def test_a_value_may_change_while_its_note_stays(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, site="third.example")

    site = {"site#third.example": ("1",), "site#new.example": ("1", "r1")}
    assert guards_of(model) == NAME | site


@both_models
def test_several_attributes_are_reserved_independently(model: Any) -> None:
    who = the_who(model)
    until = guards.now() + 60

    change(
        who,
        **note("new.example"),
        next_label="Emi",
        label_reservation="r2",
        label_until=until,
    )
    change(who, **note(None))

    assert guards_of(model) == NAME | {"site#who.example": ("1",), "label#EMI": ("1", "r2")}


@both_models
def test_a_removed_item_frees_what_is_reserved_for_it(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    remove(who)

    assert guards_of(model) == {}


@both_models
def test_a_value_of_another_item_cannot_be_reserved(model: Any) -> None:
    insert(model("2", name="Other", site="new.example"))
    who = the_who(model)
    before = guards_of(model)

    with pytest.raises(Taken) as refused:
        change(who, **note("New.example"))

    assert refused.value.args == ("site", "New.example")
    assert guards_of(model) == before


@both_models
def test_a_reserved_value_is_taken_until_the_reservation_lapses(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = guards.now() + 60
    who = the_who(model)
    change(who, **note("new.example", until=until))
    other = insert(model("2", name="Other", site="other.example"))

    monkeypatch.setattr(guards, "now", lambda: until - 1)
    for attempt in (
        lambda: insert(model("3", name="Third", site="new.example")),
        lambda: change(other, site="new.example"),
        lambda: change(other, **note("new.example", "r2", until + 60)),
    ):
        with pytest.raises(Taken):
            attempt()

    monkeypatch.setattr(guards, "now", lambda: until)
    assert not model.unique.is_taken("site", "new.example")
    insert(model("3", name="Third", site="new.example"))
    assert guards_of(model)["site#new.example"] == ("3",)


@both_models
@pytest.mark.parametrize(
    "act",
    [
        remove,
        lambda who: change(who, **note(None)),
        lambda who: change(who, **note("third.example", "r3")),
        lambda who: change(who, site="third.example", **note(None)),
    ],
    ids=["remove", "drop", "replace", "change"],
)
@pytest.mark.parametrize("theirs", [(), ("r2",)], ids=["taken", "reserved"])
def test_a_lapsed_reservation_that_another_item_took_stays_with_that_item(
    model: Any, act: Any, theirs: tuple[str, ...]
) -> None:
    who = the_who(model)
    change(who, **note("new.example", until=1))
    other = insert(model("2", name="Other", site="other.example"))
    if theirs:
        change(other, **note("new.example", *theirs))
    else:
        change(other, site="new.example")

    act(who)

    assert guards_of(model)["site#new.example"] == ("2", *theirs)


@both_models
def test_a_value_that_the_item_has_is_not_turned_into_a_reservation(model: Any) -> None:
    who = the_who(model)

    change(who, **note("WHO.example"))
    assert guards_of(model)["site#who.example"] == ("1",)
    change(who, **note(None))
    assert guards_of(model)["site#who.example"] == ("1",)
    change(who, **note("WHO.example"))
    change(who, site="new.example")
    assert guards_of(model).keys() == {"name#the who", "site#new.example"}
    change(who, **note("NEW.example"))
    remove(who)
    assert guards_of(model) == {}


@both_models
def test_a_value_that_the_item_gives_up_can_be_reserved_for_it(model: Any) -> None:
    who = the_who(model)

    change(who, site="new.example", **note("WHO.example"))

    site = {"site#new.example": ("1",), "site#who.example": ("1", "r1")}
    assert guards_of(model) == NAME | site


@both_models
def test_a_value_that_is_taken_and_noted_at_once_has_a_guard_that_lasts(model: Any) -> None:
    who = the_who(model)

    change(who, site="new.example", **note("NEW.example"))

    assert guards_of(model) == NAME | {"site#new.example": ("1",)}


@both_models
def test_a_value_that_is_left_together_with_its_note_is_free(model: Any) -> None:
    who = the_who(model)
    change(who, **note("WHO.example"))

    change(who, site="new.example", **note(None))

    assert guards_of(model) == NAME | {"site#new.example": ("1",)}


@both_models
def test_a_value_that_is_noted_without_a_reservation_is_not_reserved(model: Any) -> None:
    who = the_who(model)

    change(who, **note("new.example", reservation=None))

    assert guards_of(model).keys() == {"name#the who", "site#who.example"}


@both_models
def test_a_stored_note_that_is_too_long_for_a_guard_is_ignored(model: Any) -> None:
    who = the_who(model)
    who.next_site, who.site_reservation = "x" * 3000, "r1"

    change(who, site="new.example")
    remove(who)

    assert guards_of(model) == {}


@both_models
def test_a_value_that_is_too_long_for_a_guard_cannot_be_noted(model: Any) -> None:
    who = the_who(model)

    with pytest.raises(ValueError, match="too long"):
        change(who, **note("x" * 3000))


@both_models
def test_a_reservation_without_an_end_does_not_lapse(model: Any) -> None:
    put_guard(model, "site#who.example", "2", reservation={"S": "r1"})

    with pytest.raises(Taken):
        the_who(model)
