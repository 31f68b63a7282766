"""Lost requests and replies: a write that was carried out is recognized."""

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dynamo._internal.client.deadline import within
from dynamo._internal.client.sending import send
from dynamo.exceptions import Unavailable
from locks._internal import leases
from locks._internal.lock import Lock
from locks.exceptions import LeaseLost
from tests.clocks import LeapingClock
from tests.faults.kinds import Answer, CloseBefore, DropReply, Fault, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, beating, put, stored, taken
from tests.waiting import wait_until


@pytest.mark.parametrize("fault", [DropReply(), CloseBefore()])
def test_taking_the_lock_of_a_crashed_holder_is_recognized_and_counts_the_token_up_once(
    proxy: FaultProxy, fault: Fault
) -> None:
    crashed = abandoned("a", lease_seconds=0.3)
    proxy.plan("UpdateItem", fault, when=lambda body: ":seen" in body["ExpressionAttributeValues"])

    lease = taken("a", poll_seconds=0.02, wait_seconds=60)

    assert lease.fence == crashed.fence + 1
    lease.renew()


@contextmanager
def unanswered(proxy: FaultProxy, *, arrives: bool) -> Iterator[None]:
    """No request of the block is answered, at its deadline, and each is carried out or not."""
    fault = Answer(500, "InternalServerError", carried_out=arrives)
    proxy.plan("UpdateItem", fault, times=10_000)
    with within(0):
        yield
    proxy.forget()


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lease_survives_renewals_without_replies(proxy: FaultProxy, arrives: bool) -> None:
    lease = taken("a")
    for _time in range(2):
        with unanswered(proxy, arrives=arrives), pytest.raises(Unavailable):
            lease.renew()
    lease.check()

    lease.renew()
    lease.release()

    assert stored("a")["isReleased"] == {"S": "1"}


def test_after_a_release_without_a_reply_the_lease_is_over_and_repeating_it_does_no_harm(
    proxy: FaultProxy,
) -> None:
    lease = taken("a")
    with unanswered(proxy, arrives=True), pytest.raises(Unavailable):
        lease.release()
    theirs = taken("a", wait_seconds=0)

    with pytest.raises(LeaseLost, match="it was released"):
        lease.check()
    lease.release()
    theirs.renew()


@pytest.mark.parametrize("outcome", ["done", "failed", "lease lost"])
def test_a_with_block_whose_release_gets_no_answer_warns_or_ends_with_its_own_error(
    proxy: FaultProxy, caplog: pytest.LogCaptureFixture, outcome: str
) -> None:
    def work() -> None:
        with within(0), Lock("a", lease_seconds=600) as lease:
            proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
            if outcome == "failed":
                raise ZeroDivisionError
            if outcome == "lease lost":
                lease._sent_at -= 600

    if outcome == "done":
        work()
        assert [each for each in caplog.messages if "'a' was not released" in each]
    elif outcome == "failed":
        with pytest.raises(ZeroDivisionError) as error:
            work()
        assert "no answer" in error.value.__notes__[0]
    else:
        with pytest.raises(LeaseLost):
            work()
    proxy.forget()
    assert "isReleased" not in stored("a")


def test_a_lease_is_over_while_its_release_is_under_way(proxy: FaultProxy) -> None:
    lease = taken("a")
    refused = threading.Event()

    def try_to_go_on() -> None:
        with pytest.raises(LeaseLost):
            lease.check()
        refused.set()

    proxy.plan("UpdateItem", Meanwhile(try_to_go_on))
    lease.release()

    assert refused.is_set()


def test_an_acquisition_without_a_reply_leaves_no_lease(proxy: FaultProxy) -> None:
    with unanswered(proxy, arrives=True), pytest.raises(Unavailable):
        Lock("a", lease_seconds=0.4).acquire()

    # It is not renewed, so it expires.
    taken("a", poll_seconds=0.02, wait_seconds=60)
    assert len(leases._of_process()._due) == 1


def test_a_lock_whose_reply_arrives_after_the_lease_is_acquired_again(
    proxy: FaultProxy, clock: LeapingClock
) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: clock.leap(60)))

    lease = taken("a", lease_seconds=60)

    lease.check()
    assert proxy.count("UpdateItem") == 2


def test_replies_slower_than_a_lease_are_an_error(proxy: FaultProxy, clock: LeapingClock) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: clock.leap(60)), times=10)

    with pytest.raises(LeaseLost):
        taken("a", lease_seconds=60)

    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_thread_that_cannot_start_leaves_the_lock_free(
    proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: not beating())
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "lock heartbeats":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        Lock("a").acquire()

    assert stored("a")["isReleased"] == {"S": "1"}
    assert proxy.count("UpdateItem") == 2


def _requests(proxy: FaultProxy) -> list[dict[str, Any]]:
    return [copy.deepcopy(seen.body) for seen in proxy.seen if seen.operation == "UpdateItem"]


def test_a_lock_that_a_delayed_duplicate_takes_expires(proxy: FaultProxy) -> None:
    first = taken("a")
    first.release()
    duplicate = _requests(proxy)[0]
    values = duplicate["ExpressionAttributeValues"]
    [lease_duration] = [name for name in values if values[name] == {"S": "600000"}]
    # As if the lease was a short one, which could end before its release.
    values[lease_duration] = {"S": "300"}
    send("UpdateItem", duplicate, repeatable=True)
    assert Lock("a").try_acquire() is None

    lease = taken("a", poll_seconds=0.02, wait_seconds=60)

    assert lease.fence > first.fence
    with pytest.raises(LeaseLost):
        first.check()


def test_an_acquisition_with_a_lost_reply_and_another_holder_since_failed(
    proxy: FaultProxy,
) -> None:
    proxy.plan("UpdateItem", DropReply())
    proxy.plan("UpdateItem", Meanwhile(lambda: put("a", ownerName={"S": "another"})))

    assert Lock("a").try_acquire() is None


def test_a_waiter_reads_the_lock_if_the_refusal_does_not_show_it(proxy: FaultProxy) -> None:
    taken("a", owner="the holder")
    refusal = Answer(400, "ConditionalCheckFailedException")
    proxy.plan("UpdateItem", refusal)

    assert Lock("a").try_acquire() is None
    assert proxy.count("GetItem") == 1


@pytest.mark.parametrize("remove", [True, False])
def test_after_a_release_with_a_lost_reply_another_process_may_hold_the_lock(
    proxy: FaultProxy, remove: bool
) -> None:
    lease = taken("a")
    after: list[Any] = []
    operation = "DeleteItem" if remove else "UpdateItem"
    proxy.plan(operation, DropReply())
    proxy.plan(
        operation, Meanwhile(lambda: after.append(taken("a"))), when=lambda body: not _takes(body)
    )

    lease.release(remove=remove)

    assert lease.released
    after[0].renew()


def _takes(body: dict[str, Any]) -> bool:
    return "fencingToken" in body.get("ExpressionAttributeNames", {}).values()
