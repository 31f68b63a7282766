"""Values that are only reserved, of any model: guards in its own table or in a second one."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.attributes import UnicodeAttribute

from dynamo.client.sending import send
from dynamo.models import IntegerAttribute, Model
from dynamo.transactions import Transaction
from dynamo.unique import guards
from dynamo.unique.attributes import UniqueAttributes
from dynamo.unique.guards import Pending

pytestmark = pytest.mark.usefixtures("engine")

PENDING = {
    "site": Pending("next_site", "site_reservation", "site_until"),
    "label": Pending("next_label", "label_reservation", "label_until"),
}


class Choir(Model):
    """Its guards stand beside it; two of its three unique values can be reserved."""

    class Meta:
        table_name = "tests-choirs"

    pk = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)
    next_site = UnicodeAttribute(attr_name="nextSite", null=True)
    site_reservation = UnicodeAttribute(attr_name="siteReservation", null=True)
    site_until = IntegerAttribute(attr_name="siteUntil", null=True)
    next_label = UnicodeAttribute(attr_name="nextLabel", null=True)
    label_reservation = UnicodeAttribute(attr_name="labelReservation", null=True)
    label_until = IntegerAttribute(attr_name="labelUntil", null=True)

    unique: UniqueAttributes[Choir] = UniqueAttributes(
        pending=PENDING, name=str.casefold, site=str.casefold, label=str.upper
    )


class Orchestra(Model):
    """The same with its guards in a second table, whose key has another name."""

    class Meta:
        table_name = "tests-orchestras"

    number = UnicodeAttribute(hash_key=True, attr_name="orchestraNumber")
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)
    next_site = UnicodeAttribute(attr_name="nextSite", null=True)
    site_reservation = UnicodeAttribute(attr_name="siteReservation", null=True)
    site_until = IntegerAttribute(attr_name="siteUntil", null=True)
    next_label = UnicodeAttribute(attr_name="nextLabel", null=True)
    label_reservation = UnicodeAttribute(attr_name="labelReservation", null=True)
    label_until = IntegerAttribute(attr_name="labelUntil", null=True)

    unique: UniqueAttributes[Orchestra] = UniqueAttributes(
        table="tests-orchestra-guards",
        pending=PENDING,
        name=str.casefold,
        site=str.casefold,
        label=str.upper,
    )


class Taken(Exception):
    """Another item holds the value."""


class Stale(Exception):
    """The item is not there."""


both_forms = pytest.mark.parametrize("model", [Choir, Orchestra])


def key_of(item: Any) -> Any:
    return type(item)._hash_key_attribute()


def taken(name: str, value: str) -> Taken:
    return Taken(name, value)


def insert(item: Any) -> Any:
    with Transaction() as write:
        write.put(item, key_of(item).does_not_exist(), otherwise=Stale())
        type(item).unique.claim(write, item, taken)
    return item


def change(item: Any, **values: Any) -> None:
    with Transaction() as write:
        changes = item.set_or_remove(values)
        write.update(item, changes, key_of(item).exists(), otherwise=Stale())
        type(item).unique.move(write, item, values, taken)
    for name, value in values.items():
        setattr(item, name, value)


def remove(item: Any) -> None:
    with Transaction() as write:
        write.delete(item, key_of(item).exists(), otherwise=Stale())
        type(item).unique.free(write, item)


def note(value: str | None, reservation: str | None = "r1", until: int | None = None) -> Any:
    """What an item notes of a reserved site; nothing without a value."""
    if value is None:
        return {"next_site": None, "site_reservation": None, "site_until": None}
    until = guards.now() + 60 if until is None else until
    return {"next_site": value, "site_reservation": reservation, "site_until": until}


def guards_of(model: Any) -> dict[str, tuple[str, ...]]:
    """Each guard's owner, and its reservation where it is only reserved."""
    items = send("Scan", {"TableName": model.unique.guard_model.table()})["Items"]
    return {
        item["pk"]["S"]: tuple(item[each]["S"] for each in ("owner", "reservation") if each in item)
        for item in items
        if "#" in item["pk"]["S"]
    }


def put_guard(model: Any, key: str, owner: str, **more: Any) -> None:
    """Write a guard past all rules, as a hand would."""
    item = {"pk": {"S": key}, "owner": {"S": owner}, **more}
    send("PutItem", {"TableName": model.unique.guard_model.table(), "Item": item})


NAMED = {"name#who": ("1",)}


def the_who(model: Any) -> Any:
    return insert(model("1", name="Who", site="who.example"))


@both_forms
def test_a_note_brings_its_reservation_and_the_value_stays(model: Any) -> None:
    who = the_who(model)

    change(who, **note("New.example"))

    site = {"site#who.example": ("1",), "site#new.example": ("1", "r1")}
    assert guards_of(model) == NAMED | site
    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "new.example")
    assert model.unique.get("site", "who.example").site == "who.example"
    assert model.unique.is_taken("site", "new.example")


@both_forms
def test_another_note_moves_the_reservation_and_none_takes_it_away(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, **note("newer.example", "r2"))
    assert guards_of(model).keys() == {"name#who", "site#who.example", "site#newer.example"}

    change(who, **note(None))
    assert guards_of(model).keys() == {"name#who", "site#who.example"}


@both_forms
def test_the_same_value_noted_again_has_the_new_reservation(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, **note("NEW.example", "r2"))

    assert guards_of(model)["site#new.example"] == ("1", "r2")


@both_forms
def test_a_reserved_value_that_is_taken_has_a_guard_that_lasts(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, site="NEW.example", **note(None))

    assert guards_of(model) == NAMED | {"site#new.example": ("1",)}
    assert model.unique.get("site", "new.example").site == "NEW.example"


@both_forms
def test_a_value_may_change_while_its_note_stays(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    change(who, site="third.example")

    site = {"site#third.example": ("1",), "site#new.example": ("1", "r1")}
    assert guards_of(model) == NAMED | site


@both_forms
def test_several_attributes_are_reserved_apart(model: Any) -> None:
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

    assert guards_of(model) == NAMED | {"site#who.example": ("1",), "label#EMI": ("1", "r2")}


@both_forms
def test_a_removed_item_frees_what_is_reserved_for_it(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example"))

    remove(who)

    assert guards_of(model) == {}


@both_forms
def test_what_another_has_is_not_reserved(model: Any) -> None:
    insert(model("2", name="Other", site="new.example"))
    who = the_who(model)
    before = guards_of(model)

    with pytest.raises(Taken) as refused:
        change(who, **note("New.example"))

    assert refused.value.args == ("site", "New.example")
    assert guards_of(model) == before


@both_forms
def test_what_is_reserved_for_another_is_not_taken_until_it_lapses(
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


@both_forms
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
def test_a_lapsed_reservation_that_another_took_is_left_to_the_other(
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


@both_forms
def test_a_lapsed_reservation_that_nobody_took_can_be_had(model: Any) -> None:
    who = the_who(model)
    change(who, **note("new.example", until=1))

    change(who, site="new.example", **note(None))

    assert guards_of(model)["site#new.example"] == ("1",)


@both_forms
def test_a_value_that_the_item_has_is_not_turned_into_a_reservation(model: Any) -> None:
    who = the_who(model)

    change(who, **note("WHO.example"))
    assert guards_of(model)["site#who.example"] == ("1",)
    change(who, **note(None))
    assert guards_of(model)["site#who.example"] == ("1",)
    change(who, **note("WHO.example"))
    change(who, site="new.example")
    assert guards_of(model).keys() == {"name#who", "site#new.example"}


@both_forms
def test_an_item_that_notes_the_value_that_it_has_takes_its_guard_along(model: Any) -> None:
    who = the_who(model)
    change(who, **note("WHO.example"))

    remove(who)

    assert guards_of(model) == {}


@both_forms
def test_a_value_that_the_item_gives_up_can_be_reserved_for_it(model: Any) -> None:
    who = the_who(model)

    change(who, site="new.example", **note("WHO.example"))

    site = {"site#new.example": ("1",), "site#who.example": ("1", "r1")}
    assert guards_of(model) == NAMED | site


@both_forms
def test_a_value_that_is_taken_and_noted_at_once_has_a_guard_that_lasts(model: Any) -> None:
    who = the_who(model)

    change(who, site="new.example", **note("NEW.example"))

    assert guards_of(model) == NAMED | {"site#new.example": ("1",)}


@both_forms
def test_a_value_that_goes_with_the_note_of_it_is_free(model: Any) -> None:
    who = the_who(model)
    change(who, **note("WHO.example"))

    change(who, site="new.example", **note(None))

    assert guards_of(model) == NAMED | {"site#new.example": ("1",)}


@both_forms
def test_a_value_noted_without_a_reservation_is_reserved_for_nobody(model: Any) -> None:
    who = the_who(model)

    change(who, **note("new.example", reservation=None))

    assert guards_of(model).keys() == {"name#who", "site#who.example"}


@both_forms
def test_a_noted_value_that_can_have_no_guard_holds_nobody(model: Any) -> None:
    who = the_who(model)
    who.next_site, who.site_reservation = "x" * 3000, "r1"

    change(who, site="new.example")
    remove(who)

    assert guards_of(model) == {}


@both_forms
def test_a_value_that_can_have_no_guard_is_not_noted(model: Any) -> None:
    who = the_who(model)

    with pytest.raises(ValueError, match="too long"):
        change(who, **note("x" * 3000))


@both_forms
def test_a_guard_without_reservation_that_expires_is_none_that_lasts(model: Any) -> None:
    the_who(model)
    put_guard(model, "site#who.example", "1", expires={"N": "1"})

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")
    insert(model("2", name="Other", site="who.example"))


@both_forms
def test_a_reservation_without_an_end_does_not_lapse(model: Any) -> None:
    put_guard(model, "site#who.example", "2", reservation={"S": "r1"})

    with pytest.raises(Taken):
        the_who(model)


@both_forms
def test_a_reservation_without_an_end_finds_nobody(model: Any) -> None:
    the_who(model)
    put_guard(model, "site#who.example", "1", reservation={"S": "r1"})

    with pytest.raises(model.DoesNotExist):
        model.unique.get("site", "who.example")
