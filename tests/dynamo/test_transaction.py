"""Transactions: all writes or none, and each refusal with its error and the stored item."""

import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.utils.functional import SimpleLazyObject
from pynamodb.attributes import UnicodeAttribute
from pynamodb.expressions.condition import Condition

from dynamo import AlreadyDone, IntegerAttribute, Refused, Rejected, Transaction, Unavailable
from dynamo.client.plain import PlainModel
from dynamo.client.writes import Refusal, Write
from dynamo.exceptions import TransactionConflict
from dynamo.transactions import read_together
from dynamo.wire.updates import conditional
from tests.faults.kinds import Answer, CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.items import insert, stored_items
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

CANCELLED = "TransactionCanceledException"


class Page(PlainModel):
    """A small item in a table of its own."""

    class Meta:
        table_name = "tests-pages"

    pk = UnicodeAttribute(hash_key=True)
    text = UnicodeAttribute(null=True)
    reads = IntegerAttribute(null=True)


class Torn(Exception):
    """The error of a refusal."""


ABSENT: Condition = Page.pk.does_not_exist()
PRESENT: Condition = Page.pk.exists()


def page(pk: str, text: str = "old") -> Page:
    """A page that is stored."""
    new = Page(pk, text=text)
    insert(new)
    return new


def texts() -> dict[str, str]:
    """The stored text of each page, by its key."""
    return {pk: item["text"]["S"] for pk, item in stored_items(Page.table()).items()}


def transaction_of_all_kinds() -> Transaction:
    """A put of `new`, an update of `changed`, a deletion of `deleted`, a check of `checked`."""
    write = Transaction()
    write.put(Page("new", text="new"), ABSENT, otherwise=Torn("new"))
    write.update(Page("changed"), [Page.text.set("new")], PRESENT, otherwise=Torn("changed"))
    write.delete(Page("deleted"), PRESENT, otherwise=Torn("deleted"))
    write.check(Page("checked"), PRESENT, otherwise=Torn("checked"))
    return write


@pytest.mark.parametrize("method", ["batch_get", "batch_write", "delete", "save"])
def test_a_method_of_pynamodb_without_a_condition_is_not_supported(method: str) -> None:
    stored = page("1")

    with pytest.raises(TypeError):
        getattr(stored, method)()

    assert texts() == {"1": "old"}


@pytest.mark.parametrize(
    ("count", "text_bytes", "reason"),
    [
        (100, 1, None),
        (101, 1, "101 writes.*At most 100 can be done together: split it. Nothing was written.$"),
        (11, 380_000, None),
        (11, 382_000, r"4,20\d,\d{3} bytes.*At most 4,194,304"),
    ],
)
def test_a_transaction_that_is_too_large_is_refused_before_it_is_sent(
    count: int, text_bytes: int, reason: str | None, requests_sent: Requests
) -> None:
    write = Transaction()
    for number in range(count):
        write.put(Page(str(number), text="x" * text_bytes), ABSENT, otherwise=Torn())

    with nullcontext() if reason is None else pytest.raises(ValueError, match=reason):
        write.commit()

    assert requests_sent.operations == ([] if reason else ["TransactWriteItems"])
    assert len(stored_items(Page.table())) == (0 if reason else count)


@pytest.mark.parametrize("missing", [None, "changed", "deleted", "checked"])
def test_one_request_makes_all_writes_or_none_and_raises_the_error_of_the_refused_one(
    missing: str | None, requests_sent: Requests
) -> None:
    for pk in {"changed", "deleted", "checked"} - {missing}:
        page(pk)
    before = texts()
    requests_sent.clear()

    with pytest.raises(Torn, match=missing) if missing else nullcontext():
        transaction_of_all_kinds().commit()

    assert requests_sent.operations[0] == "TransactWriteItems"
    assert "TransactWriteItems" not in requests_sent.operations[1:]
    assert texts() == (before if missing else {"new": "new", "changed": "new", "checked": "old"})


def test_several_refusals_are_reported_together_each_with_the_stored_item() -> None:
    page("new")
    write = transaction_of_all_kinds()

    with pytest.raises(Refused) as refused:
        write.commit()

    errors = [refusal.error for refusal in write.refusals]
    assert list(refused.value.exceptions) == errors
    assert [str(error) for error in errors] == ["new", "changed", "deleted", "checked"]
    new = {"pk": {"S": "new"}, "text": {"S": "old"}}
    assert [refusal.stored for refusal in write.refusals] == [new, None, None, None]
    deleted = write.refusals[2]
    assert write.refusal_of(deleted.write.about) is deleted
    assert write.refusal_of(Page("deleted")) is None
    assert texts() == {"new": "old"}


@pytest.mark.parametrize("fails", [True, False], ids=["after an error", "without a write"])
def test_a_block_that_fails_or_writes_nothing_sends_nothing(
    fails: bool, requests_sent: Requests
) -> None:
    with pytest.raises(ZeroDivisionError) if fails else nullcontext(), Transaction() as write:
        if fails:
            write.put(Page("new", text="new"), ABSENT, otherwise=Torn())
            raise ZeroDivisionError

    assert requests_sent.operations == []


def test_a_block_that_failed_writes_nothing_later_either() -> None:
    write = Transaction()

    def fail() -> None:
        with write:
            WRITES["put"](write)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    for call in (write.commit, write.try_commit, partial(WRITES["delete"], write)):
        with pytest.raises(TypeError, match=r"block of this transaction failed"):
            call()
    with pytest.raises(TypeError, match=r"failed"), write:
        pass
    assert texts() == {}


#: Each adds a write of one item.
WRITES = {
    "put": lambda write: write.put(Page("one", text="new"), ABSENT, otherwise=Torn("put")),
    "update": lambda write: write.update(
        Page("one"), [Page.text.set("new")], Page.text == "old", otherwise=Torn("update")
    ),
    "delete": lambda write: write.delete(Page("one"), PRESENT, otherwise=Torn("delete")),
    "check": lambda write: write.check(Page("one"), PRESENT, otherwise=Torn("check")),
}


@pytest.mark.parametrize("one", WRITES)
@pytest.mark.parametrize("other", WRITES)
def test_a_check_joins_another_write_of_its_item_but_two_writes_are_refused(
    one: str, other: str
) -> None:
    are_one = "check" in (one, other) and "delete" not in (one, other)
    write = Transaction()
    WRITES[one](write)

    with nullcontext() if are_one else pytest.raises(ValueError, match="already writes the item"):
        WRITES[other](write)

    [left] = write
    assert left.kind.casefold() in {one, other, "conditioncheck"}
    assert are_one or left.kind.casefold().endswith(one)


@pytest.mark.parametrize("kind", ["put", "update", "check"])
def test_a_check_that_joined_another_write_is_a_condition_of_it(kind: str) -> None:
    if kind != "put":
        page("one")
    before = texts()
    write = Transaction()
    WRITES[kind](write)
    write.check(Page("one"), Page.text == "another", otherwise=Torn("check"))

    # A put satisfies it.
    with nullcontext() if kind == "put" else pytest.raises(Torn):
        write.commit()

    assert texts() == ({"one": "new"} if kind == "put" else before)


# Reasons that a local engine never gives ----------------------------------------------------------


def put_two(reasons: list[Any], proxy: FaultProxy, times: int, **options: Any) -> Transaction:
    """A transaction of two puts that is canceled `times` times for `reasons`."""
    proxy.plan("TransactWriteItems", Answer(400, CANCELLED, reasons=reasons), times=times)
    write = Transaction(**options)
    for pk in ("one", "two"):
        write.put(Page(pk, text="new"), ABSENT, otherwise=Torn(pk))
    return write


def assert_refused(write: Transaction, error: type[Exception], match: str | None = None) -> Any:
    """Assert that the commit raises this error, reports no refusal and writes nothing."""
    with pytest.raises(error, match=match) as raised:
        write.commit()
    assert (write.refusals, texts()) == ([], {})
    return raised.value


@pytest.mark.parametrize(
    "passing", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]
)
@pytest.mark.parametrize("other", ["None", "ConditionalCheckFailed"])
def test_a_transaction_is_repeated_if_one_of_its_reasons_is_temporary(
    proxy: FaultProxy, passing: str, other: str
) -> None:
    write = put_two([other, passing], proxy, times=2)

    write.commit()

    assert proxy.count("TransactWriteItems") == 3
    assert (write.refusals, texts()) == ([], {"one": "new", "two": "new"})


@pytest.mark.parametrize(
    ("passing", "throttled"), [("TransactionConflict", False), ("ThrottlingError", True)]
)
def test_without_repeating_conflicts_a_conflict_is_an_error(
    proxy: FaultProxy, passing: str, throttled: bool
) -> None:
    write = put_two(["ConditionalCheckFailed", passing], proxy, 1, repeat_conflicts=False)

    assert assert_refused(write, TransactionConflict).throttled == throttled
    assert proxy.count("TransactWriteItems") == 1


@pytest.mark.fault_of("moto", "ignores request tokens")
def test_after_a_lost_reply_a_conflict_is_repeated_in_any_case(proxy: FaultProxy) -> None:
    proxy.plan("TransactWriteItems", DropReply())
    write = put_two(["None", "TransactionConflict"], proxy, 1, repeat_conflicts=False)

    write.commit()

    one, again, last = (seen.body for seen in proxy.seen)
    assert one == again == last
    assert texts() == {"one": "new", "two": "new"}


@pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded", "NewCode"])
def test_a_permanent_reason_is_a_rejection_with_its_message(proxy: FaultProxy, code: str) -> None:
    reasons = [{"Code": "ConditionalCheckFailed"}, {"Code": code, "Message": "this is why"}]

    assert_refused(
        put_two(reasons, proxy, times=1), Rejected, f"TransactWriteItems.*{code}: this is why"
    )

    assert proxy.count("TransactWriteItems") == 1


# Conditional deletions ----------------------------------------------------------------------------


def delete_if_mine(write: Transaction, pk: str) -> None:
    request = Page(pk)._address()
    mine = Page.text == "mine"
    left = "ConditionCheck", conditional(request, ~mine)
    write.add(Write(Page(pk), "Delete", conditional(request, mine), None, left))


def is_the_second_try(body: dict[str, Any]) -> bool:
    """Whether a deletion was turned into a condition, as after a refusal."""
    return any("ConditionCheck" in action for action in body["TransactItems"])


@pytest.mark.parametrize("is_refused", [False, True])
def test_an_item_that_does_not_meet_the_condition_is_kept_and_the_others_are_written_or_refused(
    is_refused: bool,
) -> None:
    page("theirs", text="theirs")
    page("mine", text="mine")
    write = Transaction()
    write.put(Page("new", text="new"), PRESENT if is_refused else ABSENT, otherwise=Torn("new"))
    for pk in ("theirs", "gone", "mine"):
        delete_if_mine(write, pk)

    with pytest.raises(Torn) if is_refused else nullcontext():
        write.commit()

    written = {"mine": "mine"} if is_refused else {"new": "new"}
    assert texts() == {"theirs": "theirs", **written}
    assert [str(refusal.error) for refusal in write.refusals] == ["new"] * is_refused


def test_a_deletion_is_left_out_only_if_the_item_still_does_not_meet_the_condition(
    proxy: FaultProxy,
) -> None:
    # Between the refusal and the second try, what was missing comes back.
    proxy.plan(
        "TransactWriteItems", Meanwhile(lambda: page("one", text="mine")), when=is_the_second_try
    )

    with Transaction() as write:
        write.put(Page("new", text="new"), ABSENT, otherwise=Torn())
        delete_if_mine(write, "one")

    assert texts() == {"new": "new"}
    assert proxy.count("TransactWriteItems") == 3


# A single write -----------------------------------------------------------------------------------

#: How to add a single write, by the plain request that it is sent as.
SINGLE: dict[str, Callable[[Transaction], None]] = {
    "PutItem": lambda write: write.put(Page("one", text="new"), ABSENT, otherwise=Torn("one")),
    "UpdateItem": lambda write: write.update(
        Page("one"),
        [Page.text.set("new"), Page.reads.remove()],
        Page.text == "old",
        otherwise=Torn("one"),
    ),
    "DeleteItem": lambda write: write.delete(
        Page("one"), Page.text == "old", otherwise=Torn("one")
    ),
}

each_single = pytest.mark.parametrize("operation", SINGLE)


def test_the_traceback_of_a_refused_write_shows_nothing_of_the_stored_item() -> None:
    page("one", "secret")

    with pytest.raises(Torn) as refusal, Transaction() as write:
        write.update(Page("one"), [Page.text.set("new")], ABSENT, otherwise=Torn())

    assert "secret" not in "".join(traceback.format_exception(refusal.value))
    assert "secret" not in repr(refusal.value.__cause__)


@pytest.mark.parametrize("pks", [["theirs"], ["mine"], ["theirs", "gone"], ["gone"]])
def test_all_deletions_of_a_transaction_may_be_left_out(pks: list[str]) -> None:
    page("theirs", text="theirs")
    page("mine", text="mine")

    with Transaction() as write:
        for pk in pks:
            delete_if_mine(write, pk)

    assert texts().keys() == {"theirs", "mine"} - ({*pks} & {"mine"})


def test_a_single_check_is_a_transaction(requests_sent: Requests) -> None:
    write = Transaction()
    write.check(Page("one"), PRESENT, otherwise=Torn("one"))

    with pytest.raises(Torn):
        write.commit()

    assert requests_sent.operations == ["TransactWriteItems"]


@each_single
def test_a_refused_single_write_is_its_own_error_and_nothing_is_written(operation: str) -> None:
    page("one", text="theirs")
    write = Transaction()
    SINGLE[operation](write)

    with pytest.raises(Torn, match="one"):
        write.commit()

    [refusal] = write.refusals
    assert refusal.stored == {"pk": {"S": "one"}, "text": {"S": "theirs"}}
    assert texts() == {"one": "theirs"}


@each_single
def test_a_single_write_is_a_plain_request_and_happens_once_after_lost_requests_and_replies(
    proxy: FaultProxy, operation: str
) -> None:
    if operation != "PutItem":
        page("one")
    proxy.plan(operation, CloseBefore())
    proxy.plan(operation, DropReply())

    with Transaction() as write:
        SINGLE[operation](write)

    assert proxy.count(operation) == 3
    assert texts() == ({} if operation == "DeleteItem" else {"one": "new"})


@each_single
def test_a_single_write_with_a_lost_reply_is_unknown_after_another_write(
    proxy: FaultProxy, operation: str
) -> None:
    if operation != "PutItem":
        page("one")

    def follow() -> None:
        if operation == "DeleteItem":
            page("one", text="theirs")
        else:
            Page("one").update([Page.text.set("theirs")])

    proxy.plan(operation, DropReply())
    proxy.plan(operation, Meanwhile(follow))

    with pytest.raises(Unavailable) as unknown, Transaction() as write:
        SINGLE[operation](write)

    assert unknown.value.maybe_written
    assert texts() == {"one": "theirs"}


# Writes that were done before ---------------------------------------------------------------------


def rename(write: Transaction, name: str, text: str) -> None:
    """Change the text of a page from the old one; a page that has `text` counts as done."""

    def otherwise(refusal: Refusal) -> Exception | None:
        stored = refusal.stored or {}
        return None if stored.get("text") == {"S": text} else Torn(name)

    write.update(Page(name), [Page.text.set(text)], Page.text == "old", otherwise=otherwise)


@pytest.mark.parametrize(
    ("before", "outcome", "after"),
    [
        ("new", nullcontext(), "new"),
        # A part is stored, so it is unknown what else was done.
        ("old", pytest.raises(AlreadyDone), "old"),
        ("theirs", pytest.raises(Torn, match="two"), "theirs"),
    ],
)
def test_changes_that_are_stored_already_are_a_success_only_if_all_are(
    before: str, outcome: AbstractContextManager[Any], after: str
) -> None:
    page("one", text="new")
    page("two", text=before)

    with outcome, Transaction() as write:
        rename(write, "one", "new")
        rename(write, "two", "new")

    assert texts() == {"one": "new", "two": after}


@pytest.mark.parametrize(("stored", "reported"), [(["whole", "part"], "whole"), (["part"], "part")])
def test_the_refusal_of_a_part_is_reported_unless_its_whole_is_refused(
    stored: list[str], reported: str
) -> None:
    for pk in stored:
        page(pk)
    write = Transaction()
    whole = Page("whole", text="new")
    write.put(whole, ABSENT, otherwise=Torn("whole"))
    part = Write.put(Page("part", text="new"), ABSENT, otherwise=Torn("part"))
    write.add(replace(part, part_of=whole))

    with pytest.raises(Torn, match=reported):
        write.commit()


def test_a_lazy_object_as_the_user_of_a_request_stands_for_its_own_writes() -> None:
    whole = Page("whole", text="new")
    lazy = SimpleLazyObject(lambda: whole)
    told = []
    with Transaction() as write:
        write.put(whole, ABSENT, otherwise=Torn("whole"))
        write.on_commit(lazy, told.append)
    again = Transaction()
    again.put(whole, ABSENT, otherwise=Torn("whole"))

    with pytest.raises(Torn):
        again.commit()

    assert len(told) == 1
    assert again.refusal_of(SimpleLazyObject(lambda: whole)) is again.refusals[0]


# Reading together ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [None, Answer(400, CANCELLED, reasons=["None", "TransactionConflict"]), DropReply()],
    ids=["at once", "after a conflict", "after a lost reply"],
)
def test_items_are_read_together_in_the_order_asked_for(proxy: FaultProxy, fault: Any) -> None:
    page("one", text="1")
    page("two", text="2")
    if fault:
        proxy.plan("TransactGetItems", fault, times=2)

    read = read_together([Page("two"), Page("none"), Page("one")])

    assert [item and item["text"]["S"] for item in read] == ["2", None, "1"]
    assert proxy.count("TransactGetItems") == (3 if fault else 1)
