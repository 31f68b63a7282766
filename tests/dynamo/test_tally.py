"""Tallies: the cost of a page, a command or a block, with each request counted once."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dynamo.client import bulk
from dynamo.client.sending import send
from dynamo.client.tally import MOST_CALLS, CountingPool, Tally, collect, current
from dynamo.runtime.deadline import page_deadline
from dynamo.transactions import read_together
from locks import Lock, leases
from locks.models import LockItem
from sequences import next_value
from tests.dynamo.bands import Band
from tests.faults.kinds import Answer, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.requests import Requests
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")

GET = {"TableName": Band.table(), "Key": {"pk": {"S": "nobody"}}}


def counted(tally: Tally) -> tuple[int, float, float]:
    return tally.requests, tally.read_units, tally.write_units


@pytest.mark.fault_of("moto", "names no units of a transaction")
def test_reads_and_writes_are_counted_separately() -> None:
    with collect() as writes:
        band = Band.create(pk="1", name="Tommy", site="tommy.example")
    with collect() as reads:
        Band.get("1")
        read_together([band])
    with collect() as change:
        band.change(name="The Who")

    assert counted(writes) == (1, 0, 6)
    assert counted(reads) == (2, 3, 0)
    assert counted(change) == (1, 0, 6)
    assert str(reads) == "2 requests, 3 RCU"
    assert str(change) == "1 request, 6 WCU"


@pytest.mark.usefixtures("path", "own_client")
def test_a_request_counts_once_on_each_of_two_nested_tallies() -> None:
    with collect() as outer:
        send("GetItem", GET)
        with collect() as inner:
            send("GetItem", GET)
            send("DescribeTable", {"TableName": Band.table()})

    assert (outer.requests, inner.requests) == (3, 2)
    assert outer.seconds >= inner.seconds > 0
    assert current() is None


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_retries_and_conflicts_are_counted(proxy: FaultProxy) -> None:
    proxy.plan("GetItem", Answer(500, "InternalServerError"))
    proxy.plan("PutItem", Answer(400, "TransactionConflictException"))
    proxy.plan("PutItem", DropReply())

    with collect() as tally:
        send("GetItem", GET)
        send("PutItem", {"TableName": Band.table(), "Item": {"pk": {"S": "a"}}})

    assert (tally.requests, tally.retries, tally.conflicts) == (5, 3, 1)
    # A lost reply has no units.
    assert str(tally) == "5 requests, 1 RCU, 1 WCU, 3 retries, 1 conflict"


def test_an_interrupted_request_counts_as_unanswered(proxy: FaultProxy) -> None:
    interrupt = Meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT))
    proxy.plan("GetItem", interrupt)

    with collect(keep_calls=True) as tally, pytest.raises(KeyboardInterrupt):
        send("GetItem", GET)

    assert [call.outcome for call in tally.calls] == ["unanswered"]


def test_a_pool_as_that_of_a_scan_counts_on_the_tally_of_the_caller_without_its_deadline() -> None:
    with collect() as scan, page_deadline(-1):
        assert [*bulk.pages(Band.table(), ["pk"])] == [[]] * bulk.SEGMENTS
    with CountingPool(2) as pool:
        with collect() as other:
            pool.submit(send, "GetItem", GET).result()
        pool.submit(send, "GetItem", GET).result()

    assert (scan.requests, other.requests) == (bulk.SEGMENTS, 1)


def test_callers_that_share_a_request_count_it_once(
    at_once: Callable[..., list[Any]], requests_sent: Requests
) -> None:
    def draw(_number: int) -> Tally:
        barrier.wait()
        with collect() as tally:
            next_value("tickets")
        return tally

    barrier = threading.Barrier(16)
    tallies = at_once(draw, 16)

    assert sum(tally.requests for tally in tallies) == len(requests_sent.operations)
    assert sum(tally.write_units for tally in tallies) == requests_sent.units
    assert sum(tally.joined for tally in tallies) == 16 - len(requests_sent.operations)


def test_renewals_of_a_lease_count_on_the_tally_of_its_acquirer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The lease is renewed soon, but lasts longer than a stall of the machine.
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.002)
    with collect() as tally:
        lease = Lock("report", lease_seconds=60).acquire()
    with collect() as other:
        wait_until(lambda: tally.requests >= 3)
    lease.release()

    assert other.requests == 0


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_call_has_the_line_of_code_that_made_it() -> None:
    with collect(keep_calls=True) as tally, collect():
        Lock("report").try_acquire()
        send("GetItem", GET)

    taken, _read = tally.calls
    assert (taken.operation, taken.table, taken.outcome) == ("UpdateItem", LockItem.table(), "ok")
    assert taken.write_units == 1
    assert taken.milliseconds > 0
    # It is not the line of the library that sends the request.
    assert {call.asked_by.partition(":")[0] for call in tally.calls} == {"dynamo/test_tally.py"}


def test_a_limited_number_of_calls_is_kept() -> None:
    with collect(keep_calls=True) as tally:
        tally.calls.extend([object()] * (MOST_CALLS - 1))  # type: ignore[list-item]  # only counted
        send("GetItem", GET)
        send("GetItem", GET)

    assert len(tally.calls) == MOST_CALLS
    assert tally.requests == 2
