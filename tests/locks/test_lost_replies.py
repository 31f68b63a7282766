"""Lost requests and replies, interrupted calls: a write that was carried out is recognized."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from dynamo import Transaction, Unavailable
from dynamo.runtime.deadline import within
from locks import Lease, LeaseLost, Lock, leases
from tests.clocks import LeapingClock
from tests.faults.kinds import Answer, Delay, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, beating, put, stored, taken
from tests.requests import told
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


@contextmanager
def unanswered(proxy: FaultProxy, *, arrives: bool = True) -> Iterator[None]:
    """A block that ends with Unavailable: its requests get no answer, carried out or not."""
    fault = Answer(500, "InternalServerError", carried_out=arrives)
    proxy.plan("UpdateItem", fault, times=10_000)
    with within(0), pytest.raises(Unavailable):
        yield
    proxy.forget()


@pytest.mark.parametrize("arrives", [True, False])
def test_a_lease_survives_renewals_without_replies(proxy: FaultProxy, arrives: bool) -> None:
    lease = taken("a")
    for _time in range(2):
        with unanswered(proxy, arrives=arrives):
            lease.renew()
    lease.check()

    lease.renew()
    lease.release()

    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_release_without_a_reply_ends_the_lease_and_can_be_repeated(proxy: FaultProxy) -> None:
    lease = taken("a")
    with unanswered(proxy):
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
        assert [message for message in caplog.messages if "'a' was not released" in message]
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
    with unanswered(proxy):
        Lock("a", lease_seconds=0.4).acquire()

    # It is not renewed, so it expires.
    taken("a", poll_seconds=0.02, wait_seconds=60)
    assert len(leases._of_process()._due) == 1


@pytest.mark.parametrize("late", [1, 10], ids=["the first", "all"])
def test_a_lock_whose_reply_arrives_after_the_lease_is_acquired_again_but_not_for_ever(
    proxy: FaultProxy, clock: LeapingClock, late: int
) -> None:
    proxy.plan("UpdateItem", Meanwhile(lambda: clock.leap(60)), times=late)

    if late == 1:
        taken("a", lease_seconds=60).check()
        assert proxy.count("UpdateItem") == 2
    else:
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


def test_an_acquisition_with_a_lost_reply_and_another_holder_since_fails(proxy: FaultProxy) -> None:
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
def test_after_a_lost_release_another_process_may_hold_the_lock(
    proxy: FaultProxy, remove: bool
) -> None:
    lease = taken("a")
    after: list[Lease] = []
    operation = "DeleteItem" if remove else "UpdateItem"
    proxy.plan(operation, DropReply())
    proxy.plan(operation, Meanwhile(lambda: after.append(taken("a"))))

    lease.release(remove=remove)

    assert lease.released
    after[0].renew()


# Interrupted by Ctrl-C or a signal ----------------------------------------------------------------


@contextmanager
def at_the_next_write(action: Callable[[], None], operation: str = "UpdateItem") -> Iterator[None]:
    """Do it once, after the reply to the next such write and before our code sees the reply."""
    due, awaited = [action], operation

    def arrived(operation: str, **_signal: Any) -> None:
        if operation == awaited and due:
            due.pop()()

    with told(arrived):
        yield


def interrupt() -> None:
    raise KeyboardInterrupt


@contextmanager
def interrupted(operation: str = "UpdateItem") -> Iterator[None]:
    """A block that Ctrl-C ends after the reply to its next such write."""
    with at_the_next_write(interrupt, operation), pytest.raises(KeyboardInterrupt):
        yield


def acquire(_given: object) -> Lease:
    return Lock("a").acquire()


def take_from(dead: Lease) -> object:
    return Lock("a")._take(instead_of=dead.taken)


#: What is stored before, and the acquisition.
TAKEN: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "absent": (lambda: None, acquire),
    "free": (lambda: put("a", isReleased={"S": "1"}, fencingToken={"N": "7"}), acquire),
    "of a crashed holder": (lambda: abandoned("a"), take_from),
}


@pytest.mark.parametrize(("given", "take"), TAKEN.values(), ids=TAKEN)
def test_an_interrupted_acquisition_leaves_the_lock_free(
    given: Callable[[], Any], take: Callable[[Any], object]
) -> None:
    before = given()
    fence = int(stored("a").get("fencingToken", {"N": "0"})["N"])

    with interrupted():
        take(before)

    assert stored("a")["isReleased"] == {"S": "1"}
    after = Lock("a").acquire()
    assert not fence or after.fence == fence + 2


def test_an_interrupted_try_does_not_free_anothers_lock() -> None:
    holder = Lock("a").acquire()

    with interrupted():
        Lock("a").try_acquire()

    holder.renew()


@pytest.mark.parametrize("is_renewed", [True, False])
@pytest.mark.parametrize("write", [Lease.renew, lambda lease: lease.leave(b"half")])
def test_a_lease_whose_renewal_is_interrupted_is_still_held_and_can_be_renewed_or_released(
    write: Callable[[Lease], None], is_renewed: bool
) -> None:
    lease = taken("a")
    before = stored("a")

    with interrupted():
        write(lease)

    assert stored("a")["recordVersionNumber"] != before["recordVersionNumber"]
    with Transaction() as transaction:
        lease.hold_in(transaction)
    if is_renewed:
        lease.renew()
        assert not lease.lost.is_set()
    lease.release()
    assert lease.released
    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("is_taken_since", [True, False])
def test_an_interrupted_release_can_be_repeated(remove: bool, is_taken_since: bool) -> None:
    lease = taken("a")
    with interrupted("DeleteItem" if remove else "UpdateItem"):
        lease.release(remove=remove)
    assert not lease.released
    since = taken("a") if is_taken_since else None

    lease.release(remove=remove)

    assert lease.released
    if since is not None:
        since.renew()


def test_an_interrupted_acquisition_tries_only_once_to_release(proxy: FaultProxy) -> None:
    def let_nobody_answer() -> None:
        proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
        raise KeyboardInterrupt

    with at_the_next_write(let_nobody_answer), pytest.raises(KeyboardInterrupt):
        Lock("a").acquire()

    assert proxy.count("UpdateItem") == 2


def test_a_signal_that_comes_before_the_reply_leaves_the_lock_free(proxy: FaultProxy) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(143)

    def takes(body: dict[str, Any]) -> bool:
        return "fencingToken" in body.get("ExpressionAttributeNames", {}).values()

    def send_it_when_the_work_is_done() -> None:
        wait_until(lambda: stored("a"))
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, end)
    proxy.plan("UpdateItem", Delay(20), when=takes)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send_it_when_the_work_is_done)
            with pytest.raises(SystemExit):
                Lock("a").acquire()
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert stored("a")["isReleased"] == {"S": "1"}
