"""Faults beside which others change the item. Faults alone: `test_operation_faults.py`."""

from typing import Any

import pytest
from pynamodb.attributes import UnicodeSetAttribute

from dynamo import IntegerAttribute, Model, TextAttribute, Unavailable, Unique, casefolded
from dynamo._internal.client.sending import send
from tests.faults.kinds import DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import stored_items

TABLE = "tests-faulty-members"


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


def test_an_insertion_whose_reply_was_lost_is_recognized_after_another_write(
    proxy: FaultProxy,
) -> None:
    note = Note(tags={"a", "b", "c"}, text="mine")
    proxy.plan("PutItem", DropReply())
    proxy.plan("PutItem", Meanwhile(lambda: Note.get(note.pk).change(text="theirs")))

    note.insert()

    assert note.text == "theirs"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"add": {"visits": 1}}, (None, 1)),
        ({"name": "Ann", "condition": Member.visits == 0}, ("Ann", 0)),
    ],
    ids=["add", "under a condition"],
)
def test_a_change_that_cannot_be_recognized_is_not_sent_again(
    proxy: FaultProxy, change: dict[str, Any], expected: tuple[str | None, int]
) -> None:
    member = ann()
    proxy.plan("UpdateItem", DropReply())

    with pytest.raises(Unavailable) as unanswered:
        member.change(**change)

    assert unanswered.value.maybe_written
    read = Member.get(member.pk)
    assert (read.name, read.visits) == expected


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
