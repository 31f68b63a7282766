"""Locks shared with the lock client for Java: each excludes the other."""

import time
from collections.abc import Callable

import pytest

from dynamo.runtime.clock import now
from locks import Lock, LockTaken
from locks.registry import State, break_lock, look
from tests.locks import java
from tests.locks.items import stored, taken
from tests.locks.java import JavaLease

pytestmark = pytest.mark.usefixtures("engine")


def test_the_java_client_cannot_take_a_lock_that_we_hold() -> None:
    lease = taken("a")
    seen = stored("a")["recordVersionNumber"]["S"]
    lease.renew()

    assert java.acquire("a") is None
    assert java.acquire_released("a") is None
    assert java.acquire_expired("a", seen) is None
    lease.check()
    lease.renew()


def test_we_cannot_take_a_lock_that_the_java_client_holds() -> None:
    theirs = java.taken("a")
    seen = stored("a")
    assert theirs.heartbeat()

    with pytest.raises(LockTaken, match="held by java"):
        Lock("a", wait_seconds=0).acquire()
    assert Lock("a")._take(instead_of=seen)[0] is None
    assert theirs.heartbeat()


@pytest.mark.parametrize("end", [JavaLease.release, JavaLease.delete])
def test_a_released_lock_goes_from_client_to_client(end: Callable[[JavaLease], bool]) -> None:
    taken("a").release()

    theirs = java.acquire_released("a")

    assert theirs is not None
    assert Lock("a").try_acquire() is None
    assert end(theirs)
    lease = taken("a", wait_seconds=0)
    assert not theirs.heartbeat()
    lease.renew()


def test_we_take_the_lock_of_a_java_client_one_lease_after_its_last_heartbeat() -> None:
    theirs = java.taken("a", lease_milliseconds=500, data=b"left")
    began = now()

    lease = Lock("a", wait_seconds=60, poll_seconds=0.05).acquire()

    assert now() - began >= 0.5
    assert lease.data == b"left"
    assert not theirs.heartbeat()
    assert not theirs.release()
    assert not theirs.delete()
    lease.renew()


def test_after_a_java_client_the_fencing_token_starts_from_the_clock() -> None:
    first = taken("a")
    first.release()
    theirs = java.taken("a")
    assert "fencingToken" not in stored("a")
    assert theirs.release()

    second = taken("a")

    assert second.fence > first.fence + 1
    assert second.fence < (time.time_ns() // 1000) + 2


def test_locks_of_the_java_client_are_listed_and_broken() -> None:
    theirs = java.taken("a")

    assert look("a").state is State.HELD
    break_lock("a")

    assert not theirs.heartbeat()
    assert java.acquire("a") is not None
