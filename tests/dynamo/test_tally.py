"""What a page, a command or a block of code cost: each request on one tally, none twice."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings as django_settings

from accounts.models import User
from accounts.services import change_email
from dynamo.client import sending
from dynamo.client.deadline import page, page_is_over
from dynamo.client.sending import send
from dynamo.tally import MOST_CALLS, CountingPool, Tally, counting, current
from dynamo.transactions import read_together
from locks import leases
from locks.lock import Lock
from locks.models import LockItem
from sequences.counters import next_value
from tests.factories import make_user
from tests.faults.kinds import Answer, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import issued, new_account
from tests.requests import Requests
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")

GET = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}


def counted(tally: Tally) -> tuple[int, float, float]:
    return tally.requests, tally.read_units, tally.write_units


@pytest.mark.fault_of("moto", "names no units of a transaction")
def test_reads_and_writes_are_counted_apart() -> None:
    with counting() as writes:
        ann = make_user(username="ann")
    with counting() as reads:
        User.get(ann.pk)
        read_together([ann])
    with counting() as change:
        change_email(ann, "ann@new.example")

    assert counted(writes) == (1, 0, 6)
    assert counted(reads) == (2, 3, 0)
    assert counted(change) == (1, 0, 6)
    assert str(reads) == "2 requests, 3 RCU"
    assert str(change) == "1 request, 6 WCU"


@pytest.mark.parametrize("lean", [True, False])
def test_both_ways_to_dynamodb_are_counted(monkeypatch: pytest.MonkeyPatch, lean: bool) -> None:
    monkeypatch.setattr(django_settings, "DYNAMODB_LEAN", lean)
    sending.reset()
    try:
        with counting() as tally:
            send("GetItem", GET)
            send("DescribeTable", {"TableName": "users"})
    finally:
        sending.reset()

    assert tally.requests == 2
    assert tally.write_units == 0
    assert tally.seconds > 0


def test_a_tally_within_another_counts_on_both_and_once_on_each() -> None:
    with counting() as outer:
        send("GetItem", GET)
        with counting() as inner:
            send("GetItem", GET)

    assert (outer.requests, inner.requests) == (2, 1)
    assert current() is None


def test_repetitions_and_conflicts_are_told(proxy: FaultProxy) -> None:
    proxy.plan("GetItem", Answer(500, "InternalServerError"))
    proxy.plan("PutItem", Answer(400, "TransactionConflictException"))

    with counting() as tally:
        send("GetItem", GET)
        send("PutItem", {"TableName": "users", "Item": {"pk": {"S": "a"}}})

    assert (tally.requests, tally.retries, tally.conflicts) == (4, 2, 1)
    assert str(tally).endswith("2 retries, 1 conflict")


def test_a_lost_reply_counts_and_has_no_units(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", DropReply())

    with counting() as tally:
        send("PutItem", {"TableName": "users", "Item": {"pk": {"S": "a"}}})

    assert counted(tally) == (2, 0, 1)


def test_an_interrupted_request_counts_as_unanswered(proxy: FaultProxy) -> None:
    interrupt = Meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT))
    proxy.plan("GetItem", interrupt)

    with counting(keep_calls=True) as tally, pytest.raises(KeyboardInterrupt):
        send("GetItem", GET)

    assert [call.outcome for call in tally.calls] == ["unanswered"]


def test_threads_of_a_pool_count_on_who_gave_them_work_and_keep_no_deadline_of_his() -> None:
    def work(_number: int) -> bool:
        send("GetItem", GET)
        return page_is_over()

    with CountingPool(2) as pool:
        with counting() as first, page(-1):
            late = list(pool.map(work, range(3)))
        with counting() as second:
            pool.submit(work, 0).result()
        pool.submit(work, 0).result()

    assert (first.requests, second.requests) == (3, 1)
    assert not any(late)


def test_callers_who_share_a_request_count_it_once(
    at_once: Callable[..., list[Any]], requests_sent: Requests
) -> None:
    def draw(_number: int) -> Tally:
        barrier.wait()
        with counting() as tally:
            next_value("tickets")
        return tally

    barrier = threading.Barrier(16)
    tallies = at_once(draw, 16)

    assert sum(tally.requests for tally in tallies) == len(requests_sent.operations)
    assert sum(tally.write_units for tally in tallies) == requests_sent.units
    assert sum(tally.joined for tally in tallies) == 16 - len(requests_sent.operations)


@pytest.mark.fault_of("moto", "names no units of a transaction")
def test_invoices_of_one_transaction_count_it_once(
    at_once: Callable[..., list[Any]], requests_sent: Requests
) -> None:
    account = new_account()

    def one(number: int) -> Tally:
        with counting() as tally:
            issued(account, customer=f"Bob {number}")
        return tally

    tallies = at_once(one, 8)

    assert sum(tally.requests for tally in tallies) == len(requests_sent.operations)
    units = sum(tally.read_units + tally.write_units for tally in tallies)
    assert units == requests_sent.units


def test_renewals_count_on_who_took_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    # Soon, of a lease that outlasts a stall.
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.002)
    with counting() as tally:
        lease = Lock("report", lease_seconds=60).acquire()
    with counting() as other:
        wait_until(lambda: tally.requests >= 3)
    lease.release()

    assert other.requests == 0


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_a_call_names_the_line_that_asked() -> None:
    with counting(keep_calls=True) as tally, counting():
        Lock("report").try_acquire()
        send("GetItem", GET)

    taken, read = tally.calls
    assert (taken.operation, taken.table, taken.outcome) == ("UpdateItem", LockItem.table(), "ok")
    assert taken.write_units == 1
    assert taken.milliseconds > 0
    assert taken.asked_by.startswith("locks/records.py:")
    assert read.asked_by.partition(":")[0] == "dynamo/test_tally.py"


def test_no_more_than_so_many_calls_are_kept() -> None:
    with counting(keep_calls=True) as tally:
        tally.calls.extend([object()] * (MOST_CALLS - 1))  # type: ignore[list-item]  # only counted
        send("GetItem", GET)
        send("GetItem", GET)

    assert len(tally.calls) == MOST_CALLS
    assert tally.requests == 2


def test_all_commands_threads_count_on_the_command(requests_sent: Requests) -> None:
    from dynamo import bulk

    with counting() as tally:
        for _page in bulk.pages("users", ["pk"]):
            pass

    assert tally.requests == len(requests_sent.operations) == bulk.SEGMENTS
