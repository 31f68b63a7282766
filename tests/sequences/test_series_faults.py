"""Issuing while requests fail, for several callers. Faults of one call: `tests.faults.matrix`."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from dynamo.exceptions import Unavailable
from dynamo.transactions import Write
from tests.faults.kinds import Answer, CloseBefore, DropReply, Fault, Meanwhile, Reply
from tests.faults.proxy import FaultProxy
from tests.numbered import (
    Entry,
    Ticket,
    assert_whole,
    behind,
    new_series,
    put_counter,
    put_item,
    stored_items,
    stored_numbers,
    ticket,
    waiting,
)
from tests.requests import told
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("proxy")


CONFLICT = Answer(
    400, "TransactionCanceledException", reasons=["TransactionConflict", "None", "None"]
)
THROTTLED = Answer(400, "TransactionCanceledException", reasons=["None", "ThrottlingError", "None"])


@pytest.fixture
def series() -> str:
    return new_series()


def note(name: str) -> Write:
    """A further write whose condition is false once it is written."""
    return Write.put(Entry(name, 1), Entry.series.does_not_exist(), otherwise=KeyError(name))


def test_followers_of_a_failed_leader_get_their_items_though_their_further_writes_are_stored(
    series: str, proxy: FaultProxy
) -> None:
    ticket(series)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: None))
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Answer(400, "ExpiredTokenException"))

    def attempt(_number: int) -> bool:
        try:
            return bool(ticket(series, also=[note(new_series())]))
        except Unavailable:
            return False

    assert sorted(behind_a_first(series, attempt, 4)) == [False, True, True, True]
    assert_whole(Ticket, series, 5)


# Another transaction on the counter ---------------------------------------------------------------


def issue_elsewhere(series: str) -> None:
    """Store the second item of a series, as another process."""
    put_item(Ticket, stored_items(Ticket, series)[0], number={"N": "2"})
    put_counter(Ticket, series, 2)


def test_a_group_that_met_another_transaction_is_built_again(
    series: str, proxy: FaultProxy
) -> None:
    ticket(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", CONFLICT)
    proxy.plan("GetItem", Meanwhile(lambda: issue_elsewhere(series)))

    item = ticket(series)

    assert item.number == 3
    # The change of the other process costs one read, and not a second refusal.
    assert (proxy.count("TransactWriteItems"), proxy.count("GetItem")) == (2, 1)
    assert_whole(Ticket, series, 3)


def test_items_that_arrive_while_a_group_waits_join_it(series: str, proxy: FaultProxy) -> None:
    ticket(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", CONFLICT)
    others: list[Future[Ticket]] = []

    def come() -> None:
        others.extend(pool.submit(ticket, series) for _ in range(3))
        wait_until(lambda: waiting(Ticket, series) == 3)

    proxy.plan("GetItem", Meanwhile(come))

    with ThreadPoolExecutor(3) as pool:
        first = ticket(series)
        numbers = [first.number, *(each.result().number for each in others)]

    assert sorted(numbers) == [2, 3, 4, 5]
    assert proxy.count("TransactWriteItems") == 2
    assert_whole(Ticket, series, 5)


@pytest.mark.fault_of("moto", "ignores request tokens")
@pytest.mark.parametrize("first", [DropReply(), CloseBefore()])
def test_after_a_lost_reply_a_conflict_repeats_the_same_request(
    series: str, proxy: FaultProxy, first: Fault
) -> None:
    ticket(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", first)
    proxy.plan("TransactWriteItems", CONFLICT)

    item = ticket(series)

    # The first attempt may have been carried out, so the same bytes are sent with the same token.
    one, again, last = (seen.body for seen in proxy.seen)
    assert one == again == last
    assert item.number == 2
    assert stored_numbers(Ticket, series) == [1, 2]


def test_a_throttled_group_is_built_again_without_a_read(series: str, proxy: FaultProxy) -> None:
    ticket(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", THROTTLED, 2)

    assert ticket(series).number == 2

    tokens = [seen.body["ClientRequestToken"] for seen in proxy.seen]
    assert len(set(tokens)) == 3
    assert_whole(Ticket, series, 2)


def test_after_a_rejection_the_counter_is_read_and_items_go_on_from_it(
    series: str, proxy: FaultProxy
) -> None:
    ticket(series)
    issue_elsewhere(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", Answer(400, "ValidationException"))

    assert ticket(series).number == 3

    assert [seen.operation for seen in proxy.seen] == [
        "TransactWriteItems",
        "GetItem",
        "TransactWriteItems",
    ]
    assert_whole(Ticket, series, 3)


# Groups -------------------------------------------------------------------------------------------


def behind_a_first(series: str, attempt: Callable[[int], Any], count: int) -> list[Any]:
    """The outcomes of `count` attempts, of which all but the first wait behind it, in order."""

    def at(number: int) -> Callable[[], Any]:
        return lambda: attempt(number)

    outcomes: list[Any] = []
    with behind(Ticket, series, lambda: outcomes.append(attempt(0))) as then:
        others = [then(at(number)) for number in range(1, count)]
    return [*outcomes, *(each.result() for each in others)]


def test_followers_whose_leader_is_interrupted_after_its_commit_get_the_stored_items(
    series: str,
) -> None:
    # The group of three: a counter, three items, three guard items.
    due = [7]

    def interrupt(request: Any, **_signal: Any) -> None:
        if len(request.get("TransactItems", ())) in due:
            due.clear()
            raise KeyboardInterrupt

    with told(interrupt), behind(Ticket, series, lambda: ticket(series)) as then:
        leader, *followers = [then(lambda: ticket(series)) for _ in range(3)]

    assert isinstance(leader.exception(), KeyboardInterrupt)
    assert sorted(follower.result().number for follower in followers) == [3, 4]
    assert_whole(Ticket, series, 4)


def test_a_repeated_request_reads_guard_and_item_at_one_instant(
    series: str, proxy: FaultProxy
) -> None:
    item = ticket(series, request_id="a")
    key = {"series": {"S": series}, "number": {"N": "1"}}
    # DynamoDB may answer so while the transaction of another process is being carried out.
    proxy.plan("GetItem", Reply(lambda _body: {}), when=lambda body: body["Key"] == key)

    assert ticket(series, request_id="a").stored == item.stored


def test_a_rejected_repetition_after_a_lost_reply_may_have_been_written(
    series: str, proxy: FaultProxy
) -> None:
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Answer(400, "ExpiredTokenException"))

    with pytest.raises(Unavailable) as failed:
        ticket(series, request_id="a")

    assert failed.value.maybe_written
    assert ticket(series, request_id="a").number == 1
    assert_whole(Ticket, series, 1)


@pytest.mark.usefixtures("impatient")
def test_a_refusal_that_shows_no_item_does_not_loop_past_the_deadline(
    series: str, proxy: FaultProxy
) -> None:
    ticket(series)
    refused = Answer(
        400, "TransactionCanceledException", reasons=["None", "None", "ConditionalCheckFailed"]
    )
    proxy.plan("TransactWriteItems", refused, 100_000)

    with pytest.raises(Unavailable):
        ticket(series, request_id="a")

    proxy.forget()
    assert ticket(series, request_id="a").number == 2
