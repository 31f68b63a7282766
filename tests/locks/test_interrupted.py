"""Interrupted requests: the possible effect of the request is undone or recognized."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from dynamo.transactions import Transaction
from locks._internal.leases import Lease
from locks._internal.lock import Lock
from locks._internal.registry import State, break_lock
from locks.exceptions import LeaseLost
from tests.faults.kinds import Answer, Delay
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, put, stored, taken
from tests.requests import told
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


@contextmanager
def at_the_next_write(action: Callable[[], None], operation: str = "UpdateItem") -> Iterator[None]:
    """Do it once, after the reply to the next such write and before our code sees the reply."""
    due, awaited = [action], operation

    def arrived(operation: str, **_signal: Any) -> None:
        if operation == awaited and due:
            due.pop()()

    with told(arrived):
        yield


def leave(ending: BaseException) -> Callable[[], None]:
    def now() -> None:
        raise ending

    return now


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(143)], ids=["ctrl-c", "exit"])
@pytest.mark.parametrize("name", ["absent", "free"])
def test_an_interrupted_acquisition_leaves_the_lock_free(ending: BaseException, name: str) -> None:
    if name == "free":
        put(name, isReleased={"S": "1"}, fencingToken={"N": "7"})

    with at_the_next_write(leave(ending)), pytest.raises(type(ending)) as raised:
        Lock(name).acquire()

    assert raised.value is ending
    assert stored(name)["isReleased"] == {"S": "1"}
    assert Lock(name).try_acquire() is not None


def test_interrupted_while_taking_the_lock_of_a_crashed_holder_it_is_left_free() -> None:
    dead = abandoned("a", lease_seconds=0.3)

    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        Lock("a")._take(instead_of=dead.taken)

    assert stored("a")["isReleased"] == {"S": "1"}
    assert stored("a")["fencingToken"] == {"N": str(dead.fence + 1)}


def test_an_interrupted_try_does_not_free_anothers_lock() -> None:
    holder = Lock("a").acquire()

    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        Lock("a").try_acquire()

    holder.renew()


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(143)], ids=["ctrl-c", "exit"])
@pytest.mark.parametrize("write", [Lease.renew, lambda lease: lease.leave(b"half")])
def test_a_lease_whose_renewal_is_interrupted_is_still_held_and_can_be_released(
    ending: BaseException, write: Callable[[Lease], None]
) -> None:
    lease = taken("a")
    before = stored("a")

    with at_the_next_write(leave(ending)), pytest.raises(type(ending)):
        write(lease)

    assert stored("a")["recordVersionNumber"] != before["recordVersionNumber"]
    with Transaction() as transaction:
        lease.hold_in(transaction)
    lease.release()
    assert lease.released
    assert stored("a")["isReleased"] == {"S": "1"}


def test_a_lease_whose_renewal_is_interrupted_can_be_renewed() -> None:
    lease = taken("a")
    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        lease.renew()

    lease.renew()

    assert not lease.lost.is_set()


def test_a_body_that_is_interrupted_in_a_renewal_frees_the_lock() -> None:
    def work() -> None:
        with Lock("a") as lease, at_the_next_write(leave(KeyboardInterrupt())):
            lease.renew()

    with pytest.raises(KeyboardInterrupt) as raised:
        work()

    assert getattr(raised.value, "__notes__", []) == []
    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("is_taken_since", [True, False])
def test_an_interrupted_release_can_be_repeated(remove: bool, is_taken_since: bool) -> None:
    lease = taken("a")
    operation = "DeleteItem" if remove else "UpdateItem"
    interrupted = at_the_next_write(leave(KeyboardInterrupt()), operation)
    with interrupted, pytest.raises(KeyboardInterrupt):
        lease.release(remove=remove)
    assert not lease.released
    since = taken("a") if is_taken_since else None

    lease.release(remove=remove)

    assert lease.released
    if since is not None:
        since.renew()


def test_a_break_that_is_interrupted_is_recognized_when_it_is_repeated() -> None:
    lease = taken("a")
    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        break_lock("a")

    assert break_lock("a") is State.RELEASED

    with pytest.raises(LeaseLost):
        lease.renew()
    assert taken("a").fence == lease.fence + 1


def test_an_interrupted_acquisition_tries_only_once_to_release(proxy: FaultProxy) -> None:
    def nobody_answers() -> None:
        proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
        raise KeyboardInterrupt

    with at_the_next_write(nobody_answers), pytest.raises(KeyboardInterrupt):
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
