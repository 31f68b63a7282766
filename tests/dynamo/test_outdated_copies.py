"""Outdated copies write nothing, and a call whose reply was lost recognizes its own write alone."""

from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest

from dynamo import (
    ConditionFailed,
    IntegerAttribute,
    Model,
    TextAttribute,
    Transaction,
    Unavailable,
    Unique,
    ensure,
)
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import stored_items
from tests.numbered import Ticket, forget_all, ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class Member(Model):
    class Meta:
        table_name = "tests-outdated-members"

    club = TextAttribute()
    card = TextAttribute(null=True)
    visits = IntegerAttribute(default=0)

    unique_card = Unique("card")


class Parcel(Model):
    class Meta:
        table_name = "tests-outdated-parcels"

    name = TextAttribute()


def ann(**values: Any) -> Member:
    return Member.create(**{"club": "chess"} | values)


#: Calls that change nothing, and what they send alone; `require` joins only.
UNCHANGED: dict[str, tuple[Callable[..., None], str]] = {
    "change": (lambda member, **write: member.change(card="A-17", visits=0, **write), "UpdateItem"),
    "change of nothing": (lambda member, **write: member.change(**write), "UpdateItem"),
    "change under a condition": (
        lambda member, **write: member.change(condition=Member.card == "A-17", **write),
        "UpdateItem",
    ),
    "save": (lambda member, **write: member.save(**write), ""),
    "require": (lambda member, **write: member.require(unchanged=True, **write), ""),
}
SINCE: dict[str, Callable[[Member], object]] = {
    "nothing": lambda _member: None,
    "changed": lambda member: member.change(club="go"),
    "deleted": lambda member: member.delete(),
    "created again": lambda member: (member.delete(), ann(pk=member.pk, card="A-17")),
}


@pytest.mark.fault_of("moto", "counts half a unit for an update or a consistent read")
@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("name", [name for name, (_call, api) in UNCHANGED.items() if api])
def test_a_call_that_changes_nothing_requires_the_item_that_was_read(
    name: str, since: str, requests_sent: Requests
) -> None:
    member = ann(card="A-17")
    SINCE[since](Member.get(member.pk))
    before = stored_items(Member.table())
    requests_sent.clear()
    call, api = UNCHANGED[name]

    with nullcontext() if since == "nothing" else pytest.raises(Member.Stale):
        call(member)

    # A refusal does not say what it costs, and does not show an item that is gone: that is read.
    assert requests_sent.operations == [api] + ["GetItem"] * (since == "deleted")
    assert requests_sent.units == (since in {"nothing", "deleted"})
    assert stored_items(Member.table()) == before


@pytest.mark.fault_of("moto", "counts no units of a transaction")
@pytest.mark.parametrize("since", SINCE)
@pytest.mark.parametrize("name", UNCHANGED)
def test_it_requires_it_in_a_transaction(name: str, since: str, requests_sent: Requests) -> None:
    member = ann(card="A-17")
    other = Parcel.create(name="one")
    SINCE[since](Member.get(member.pk))
    before = stored_items(Member.table())
    requests_sent.clear()
    write = Transaction()
    other.change(name="two", write=write)
    UNCHANGED[name][0](member, write=write)

    with nullcontext() if since == "nothing" else pytest.raises(Member.Stale):
        write.commit()

    units = 4 if since == "nothing" else 0
    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], units)
    assert stored_items(Member.table()) == before
    assert Parcel.get(other.pk).name == ("two" if since == "nothing" else "one")


@pytest.mark.parametrize("since", SINCE)
def test_an_item_is_issued_only_if_what_it_requires_still_exists(since: str) -> None:
    forget_all()
    member = ann(card="A-17")
    SINCE[since](Member.get(member.pk))
    write = Transaction()
    member.require(write=write)

    with nullcontext() if since in {"nothing", "changed"} else pytest.raises(Member.Stale):
        ticket("tickets", also=write)

    assert len([*Ticket.query("tickets")]) == (since in {"nothing", "changed"})


def test_a_save_with_nothing_assigned_sends_nothing(requests_sent: Requests) -> None:
    member = ann()
    requests_sent.clear()

    member.save()

    assert requests_sent.operations == []


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("since", SINCE)
def test_require_lets_changes_pass_but_not_another_item_under_the_key(
    since: str, is_alone: bool
) -> None:
    member = ann(card="A-17")
    SINCE[since](Member.get(member.pk))
    before = stored_items(Member.table())
    write = Transaction()
    member.require(write=write)
    if not is_alone:
        Parcel.create(name="for a member", write=write)

    with nullcontext() if since in {"nothing", "changed"} else pytest.raises(Member.Stale):
        write.commit()

    assert stored_items(Member.table()) == before


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_transaction_that_makes_or_changes_an_item_can_require_it(
    requests_sent: Requests,
) -> None:
    with Transaction() as write:
        member = ann(write=write)
        member.require(write=write)
        other = ann(write=write)
    requests_sent.clear()

    with Transaction() as write:
        other.require(unchanged=True, write=write)
        other.change(club="go", write=write)
        other.require(write=write)
        with pytest.raises(ValueError, match="can be neither changed nor required"):
            other.delete(write=write)

    assert (requests_sent.operations, requests_sent.units) == (["UpdateItem"], 1)
    assert Member.get(member.pk).club == "chess"
    assert Member.get(other.pk).club == "go"


# Other changes whose reply was lost: the register.
def test_a_change_is_recognized_by_its_mark_although_it_made_its_condition_false(
    proxy: FaultProxy,
) -> None:
    member = ann()
    proxy.plan("UpdateItem", DropReply())

    member.change(club="go", condition=Member.club == "chess")

    assert Member.get(member.pk).club == member.club == "go"


#: Changes, and what a member then has.
MARKED = {
    "change": ({"club": "go"}, ("go", 0)),
    "change under a condition that becomes false": (
        {"club": "go", "condition": Member.club == "chess"},
        ("go", 0),
    ),
    "change and count": ({"club": "go", "add": {"visits": 1}}, ("go", 1)),
    "count": ({"add": {"visits": 1}}, ("chess", 1)),
}


@pytest.mark.parametrize("name", MARKED)
def test_a_request_that_was_lost_before_another_copy_made_the_same_change_was_not_done(
    name: str, proxy: FaultProxy
) -> None:
    change, expected = MARKED[name]
    member = ann()
    proxy.plan("UpdateItem", CloseBefore())
    # A count is not sent again, but looked for.
    then = "GetItem" if name == "count" else "UpdateItem"
    proxy.plan(then, Meanwhile(lambda: Member.get(member.pk).change(**change)))

    with pytest.raises((Member.Stale, Unavailable, ConditionFailed)) as told:
        member.change(**change)

    assert isinstance(told.value, Unavailable) == (name == "count")
    read = Member.get(member.pk)
    assert (read.club, read.visits) == expected


@pytest.mark.parametrize("name", MARKED)
def test_a_change_that_was_overwritten_before_it_was_recognized_is_unknown(
    name: str, proxy: FaultProxy
) -> None:
    change, _expected = MARKED[name]
    member = ann()
    proxy.plan("UpdateItem", DropReply())
    then = "GetItem" if name == "count" else "UpdateItem"
    proxy.plan(then, Meanwhile(lambda: Member.get(member.pk).change(club="bridge")))

    with pytest.raises(Unavailable) as told:
        member.change(**change)

    assert told.value.maybe_written


@pytest.mark.parametrize("joins", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("was_written", [False, True])
def test_an_object_recognizes_the_same_call_after_it_had_no_answer_but_a_copy_does_not(
    joins: bool, was_written: bool, proxy: FaultProxy, impatient: float
) -> None:
    member = ann()
    other = Parcel.create(name="one")

    def change(each: Member, parcel: Parcel, **values: Any) -> None:
        with Transaction() as write:
            each.change(write=write, **values)
            if joins:
                parcel.change(name="two", write=write)

    api = "TransactWriteItems" if joins else "UpdateItem"
    proxy.plan(api, DropReply() if was_written else CloseBefore(), times=1_000)
    with pytest.raises(Unavailable):
        change(member, other, club="go")
    proxy.forget()
    copied = deepcopy(member)

    # Another call is not the same one.
    with pytest.raises(Member.Stale) if was_written else nullcontext():
        change(deepcopy(member), Parcel.get(other.pk), club="bridge")
    if was_written:
        change(member, other, club="go")
        assert (member.club, Member.get(member.pk).club) == ("go", "go")
    for each in [copied] if was_written else [copied, member]:
        with pytest.raises(Member.Stale):
            change(each, Parcel.get(other.pk), club="go")


def test_a_deletion_may_be_done_if_another_item_has_got_the_key_before_its_reply(
    proxy: FaultProxy,
) -> None:
    parcel = Parcel.create(name="one")
    proxy.plan("DeleteItem", DropReply())
    proxy.plan("DeleteItem", Meanwhile(lambda: Parcel.create(pk=parcel.pk, name="two")))

    with pytest.raises(Unavailable) as caught:
        parcel.delete()

    assert caught.value.maybe_written
    assert Parcel.get(parcel.pk).name == "two"


def test_a_deletion_whose_result_cannot_be_read_may_be_done(
    proxy: FaultProxy, impatient: float
) -> None:
    parcel = Parcel.create(name="one")
    proxy.plan("DeleteItem", DropReply())
    proxy.plan("GetItem", DropReply(), times=100)

    with pytest.raises(Unavailable) as caught:
        parcel.delete()

    assert (caught.value.operation, caught.value.maybe_written) == ("DeleteItem", True)


def test_a_transaction_that_counts_is_a_success_although_the_sum_cannot_be_read(
    proxy: FaultProxy, impatient: float
) -> None:
    member, parcel = ann(), Parcel.create(name="one")
    proxy.plan("GetItem", DropReply(), times=100)

    with Transaction() as write:
        member.change(add={"visits": 1}, write=write)
        parcel.change(name="two", write=write)

    proxy.forget()
    assert (Member.get(member.pk).visits, Parcel.get(parcel.pk).name) == (1, parcel.name)
    assert (member.visits, parcel.name) == (0, "two")
    with pytest.raises(Member.Stale):
        member.change(club="go")


@pytest.mark.parametrize("joins", [False, True], ids=["alone", "in a transaction"])
def test_ensure_accepts_what_another_call_has_done_alone_only(joins: bool) -> None:
    member = ann()
    other = Parcel.create(name="one")
    Member.get(member.pk).change(club="go", card="A-1")
    copies = [Member.from_raw_data(member.stored) for _ in range(2)]

    with pytest.raises(Member.Stale):
        ensure(copies[0], club="bridge")
    with pytest.raises(Member.Stale) if joins else nullcontext():
        if joins:
            with Transaction() as write:
                ensure(copies[1], club="go", write=write)
                other.change(name="two", write=write)
        else:
            ensure(copies[1], club="go")
            assert copies[1].stored == Member.get(member.pk).stored


@pytest.mark.parametrize("attribute", ["card", "club"])
def test_a_count_of_an_outdated_copy_does_not_make_what_it_has_assigned_current(
    attribute: str,
) -> None:
    member = ann(card="A-17")
    copied = Member.get(member.pk)
    member.change(card="A-18")
    setattr(copied, attribute, "typed")

    copied.change(add={"visits": 1})

    # No other caller wrote the club, and the count has read the item.
    with pytest.raises(Member.Stale) if attribute == "card" else nullcontext():
        copied.save()
    read = Member.get(member.pk)
    assert (read.card, read.visits) == ("A-18", 1)
    copied.refresh()
    copied.change(card="A-19")
