"""Issuing while requests fail, for several callers. Faults of one call: `tests.faults.matrix`."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from dynamo.client.writes import Write
from dynamo.exceptions import Unavailable
from tests.faults.kinds import Answer, CloseBefore, DropReply, Fault, Meanwhile
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


def test_followers_of_a_failed_leader_get_their_items(series: str, proxy: FaultProxy) -> None:
    ticket(series)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: None))
    proxy.plan("TransactWriteItems", DropReply())
    proxy.plan("TransactWriteItems", Answer(400, "ExpiredTokenException"))

    def attempt() -> Ticket:
        return ticket(series, also=[note(new_series())])

    with behind(Ticket, series, attempt) as then:
        leader, *followers = [then(attempt) for _ in range(3)]

    assert isinstance(leader.exception(), Unavailable)
    assert all(follower.result().number for follower in followers)
    assert_whole(Ticket, series, 5)


# Another transaction on the counter ---------------------------------------------------------------


def issue_elsewhere(series: str) -> None:
    """Store the second item of a series, as another process."""
    put_item(Ticket, stored_items(Ticket, series)[0], number={"N": "2"})
    put_counter(Ticket, series, 2)


def test_a_group_with_a_conflict_is_built_again_with_those_that_arrived_meanwhile(
    series: str, proxy: FaultProxy
) -> None:
    ticket(series)
    proxy.seen.clear()
    proxy.plan("TransactWriteItems", CONFLICT)
    others: list[Future[Ticket]] = []

    def come() -> None:
        issue_elsewhere(series)
        others.extend(pool.submit(ticket, series) for _ in range(3))
        wait_until(lambda: waiting(Ticket, series) == 3)

    proxy.plan("GetItem", Meanwhile(come))

    with ThreadPoolExecutor(3) as pool:
        first = ticket(series)
        numbers = [first.number, *(other.result().number for other in others)]

    assert sorted(numbers) == [3, 4, 5, 6]
    # The change of the other process costs one read, and not a second refusal.
    assert (proxy.count("TransactWriteItems"), proxy.count("GetItem")) == (2, 1)
    assert_whole(Ticket, series, 6)


@pytest.mark.fault_of("moto", "ignores request tokens")
@pytest.mark.parametrize("first", [DropReply(), CloseBefore()])
def test_a_conflict_repeats_a_lost_request(series: str, proxy: FaultProxy, first: Fault) -> None:
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


def test_after_a_rejection_the_counter_is_read(series: str, proxy: FaultProxy) -> None:
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


@pytest.mark.usefixtures("impatient")
def test_a_refusal_without_an_item_ends_at_the_deadline(series: str, proxy: FaultProxy) -> None:
    ticket(series)
    refused = Answer(
        400, "TransactionCanceledException", reasons=["None", "None", "ConditionalCheckFailed"]
    )
    proxy.plan("TransactWriteItems", refused, 100_000)

    with pytest.raises(Unavailable, match="the series is contended or throttled"):
        ticket(series, request_id="a")

    proxy.forget()
    assert ticket(series, request_id="a").number == 2
