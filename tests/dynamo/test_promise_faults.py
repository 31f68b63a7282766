"""The calls of a model under faults: each happens once, or ends with one error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pynamodb.attributes import UnicodeSetAttribute

from dynamo import (
    IntegerAttribute,
    Model,
    Stale,
    Taken,
    TextAttribute,
    Transaction,
    Unavailable,
    Unique,
    casefolded,
)
from dynamo._internal.client.sending import send
from tests.faults.kinds import Answer, CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import stored_items

TABLE = "tests-faulty-members"

FAULTS = {
    "reply lost": DropReply(),
    "request lost": CloseBefore(),
    "throttled": Answer(400, "ThrottlingException"),
    "500 after the write": Answer(500, "InternalServerError", carried_out=True),
}


class Member(Model):
    class Meta:
        table_name = TABLE

    email = TextAttribute()
    name = TextAttribute(null=True)
    visits = IntegerAttribute(default=0)

    unique_email = Unique("email", normalize=casefolded)


class Note(Model):
    class Meta:
        table_name = "tests-faulty-notes"

    text = TextAttribute()
    tags: Any = UnicodeSetAttribute(null=True)


def ann(**values: Any) -> Member:
    return Member.create(email="ann@example.org", **values)


@dataclass(frozen=True)
class Call:
    """One call on Ann, the request that it sends, and what is stored after it."""

    name: str
    api: str
    act: Callable[[Member], Any]
    leaves: dict[str, Any] | None


def _rename(member: Member) -> None:
    member.name = "Ann"
    member.save()


CALLS = [
    Call("change", "UpdateItem", lambda m: m.change(name="Ann"), {"name": "Ann"}),
    Call("save", "UpdateItem", _rename, {"name": "Ann"}),
    Call("remove", "UpdateItem", lambda m: m.change(visits=5, name=None), {"visits": 5}),
    Call(
        "change of a unique value",
        "TransactWriteItems",
        lambda m: m.change(email="new@example.org"),
        {"email": "new@example.org"},
    ),
    Call("delete", "TransactWriteItems", Member.delete, None),
]
each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)


def assert_done(call: Call, member: Member) -> None:
    stored = stored_items(TABLE)
    if call.leaves is None:
        assert stored == {}
        return
    read = Member.get(member.pk)
    assert {name: getattr(read, name) for name in call.leaves} == call.leaves
    assert member.stored == read.stored
    assert stored.keys() == {member.pk, f"email#{read.email}"}


@each_call
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.fault_of("moto", "ignores request tokens")
def test_a_call_happens_once_under_faults_that_pass(
    proxy: FaultProxy, call: Call, fault: Any
) -> None:
    member = ann()
    proxy.forget()
    proxy.plan(call.api, fault, times=2)

    call.act(member)

    assert proxy.count(call.api) >= 3
    assert_done(call, member)


@each_call
def test_a_call_whose_caller_died_can_be_repeated_from_an_old_copy(
    proxy: FaultProxy, impatient: float, call: Call
) -> None:
    member = ann()
    copy = Member.get(member.pk)
    proxy.plan(call.api, DropReply(), times=1000)
    with pytest.raises(Unavailable) as unanswered:
        call.act(member)
    assert unanswered.value.maybe_written
    proxy.forget()

    call.act(copy)

    assert_done(call, copy)


@pytest.mark.parametrize("request_id", ["form-1", None])
@pytest.mark.fault_of("moto", "ignores request tokens")
def test_an_item_is_created_once_if_replies_are_lost(
    proxy: FaultProxy, request_id: str | None
) -> None:
    proxy.plan("TransactWriteItems", DropReply(), times=2)

    member = ann(request_id=request_id)

    assert stored_items(TABLE).keys() == {member.pk, "email#ann@example.org"}


def test_a_creation_whose_caller_died_is_repeated_by_its_request_id(
    proxy: FaultProxy, impatient: float
) -> None:
    proxy.plan("TransactWriteItems", DropReply(), times=1000)
    with pytest.raises(Unavailable):
        ann(request_id="form-1")
    proxy.forget()

    member = ann(request_id="form-1")

    assert stored_items(TABLE).keys() == {member.pk, "email#ann@example.org"}


def test_an_insertion_whose_reply_was_lost_is_recognized_after_another_write(
    proxy: FaultProxy,
) -> None:
    note = Note(tags={"a", "b", "c"}, text="mine")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: Note.get(note.pk).change(text="theirs")))

    note.insert()

    assert note.text == "theirs"


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda m: m.change(name="Ann"), Stale),
        (lambda m: m.change(email="new@example.org"), Stale),
        (Member.delete, Stale),
        (lambda m: m.change(email="bob@example.org"), Taken),
    ],
)
def test_a_call_that_is_overtaken_between_two_requests_changes_nothing(
    proxy: FaultProxy, call: Callable[[Member], Any], error: type[Exception]
) -> None:
    member = ann()

    def overtake() -> None:
        if error is Taken:
            Member.create(email="bob@example.org")
        else:
            Member.get(member.pk).change(visits=9)

    proxy.forget()
    for operation in ("UpdateItem", "TransactWriteItems"):
        proxy.plan(operation, Meanwhile(overtake))

    with pytest.raises(error):
        call(member)

    read = Member.get(member.pk)
    assert (read.email, read.name) == ("ann@example.org", None)


def test_an_add_whose_reply_was_lost_is_not_sent_again(proxy: FaultProxy) -> None:
    member = ann()
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as unanswered:
        member.change(add={"visits": 1})

    assert unanswered.value.maybe_written
    assert Member.get(member.pk).visits == 1


def test_a_change_under_a_condition_whose_reply_was_lost_may_be_written(proxy: FaultProxy) -> None:
    member = ann()
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as unanswered:
        member.change(name="Ann", condition=Member.visits == 0)

    assert unanswered.value.maybe_written
    assert Member.get(member.pk).name == "Ann"


def test_a_refused_transaction_of_two_items_writes_neither(proxy: FaultProxy) -> None:
    one, two = ann(), Member.create(email="bob@example.org")
    Member.get(two.pk).change(visits=1)
    before = stored_items(TABLE)

    def swap() -> None:
        with Transaction() as write:
            one.change(email="bob@example.org", write=write)
            two.change(email="ann@example.org", write=write)

    with pytest.raises(Stale):
        swap()

    assert stored_items(TABLE) == before
    two.refresh()
    swap()
    assert Member.find(email="bob@example.org") == one


def test_a_damaged_unique_value_can_be_changed_and_its_item_deleted(engine: str) -> None:
    member = ann()
    key = {"pk": {"S": member.pk}}
    send(
        "UpdateItem",
        {
            "TableName": Member.table(),
            "Key": key,
            "UpdateExpression": "SET email = :email",
            "ExpressionAttributeValues": {":email": {"S": "x" * 3000}},
        },
    )
    read = Member.get(member.pk)

    read.change(email="bob@example.org")
    assert "email#bob@example.org" in stored_items(TABLE)
    read.delete()

    assert member.pk not in stored_items(TABLE)
