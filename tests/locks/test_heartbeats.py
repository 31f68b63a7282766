"""The thread that renews: while there are leases, in the process that has them, and no longer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from locks import heartbeats
from locks.clock import now
from locks.exceptions import LeaseLost
from locks.lock import Lock
from tests.faults import Answer, FaultProxy
from tests.lock_workers import heard, started
from tests.locks.items import beating, put, stored, taken, wait_until

#: Short, and still four renewals more than a busy machine stands still.
LEASE_SECONDS = 1.5


@pytest.fixture(autouse=True)
def _no_thread_of_others(engine: str) -> None:
    wait_until(lambda: not beating())


def test_the_thread_begins_with_the_first_lease_and_ends_with_the_last() -> None:
    assert beating() == []
    one, two = taken("a"), taken("b")
    assert len(beating()) == 1

    one.release()
    time.sleep(0.1)
    assert len(beating()) == 1

    two.release()
    wait_until(lambda: not beating())


def test_a_lease_is_renewed_for_as_long_as_it_is_held() -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    version = stored("a")["recordVersionNumber"]

    time.sleep(1.5 * LEASE_SECONDS)

    lease.check()
    assert stored("a")["recordVersionNumber"] != version


def test_one_thread_renews_all_leases_each_in_its_time() -> None:
    leases = [taken(f"{length}", lease_seconds=length) for length in (60, 1.5, 20, 1.8, 1.501)]

    time.sleep(3)

    assert len(beating()) == 1
    for lease in leases:
        lease.check()


def test_a_lease_after_a_pause_of_the_thread_is_renewed_too() -> None:
    taken("a").release()
    lease = taken("b", lease_seconds=LEASE_SECONDS)

    time.sleep(1.5 * LEASE_SECONDS)

    lease.check()


def test_the_thread_leaves_a_lease_alone_that_is_lost_and_renews_the_others() -> None:
    kept, lost = (taken(name, lease_seconds=LEASE_SECONDS) for name in "ab")
    put("b", ownerName={"S": "another"}, recordVersionNumber={"S": "theirs"})

    wait_until(lost.lost.is_set)
    time.sleep(1.2 * LEASE_SECONDS)

    kept.check()
    assert stored("b")["recordVersionNumber"] == {"S": "theirs"}
    kept.release()
    wait_until(lambda: not beating())


def test_the_thread_tries_again_while_the_lease_lasts(proxy: FaultProxy) -> None:
    lease = taken("a", lease_seconds=2)
    proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=6)

    time.sleep(2.5)

    lease.check()


def test_a_lease_whose_renewals_all_fail_is_lost_by_its_own_clock(proxy: FaultProxy) -> None:
    lease = taken("a", lease_seconds=1)
    began = now()
    proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)

    wait_until(lease.lost.is_set)

    assert now() - began >= 0.9
    proxy.forget()
    with pytest.raises(LeaseLost, match="not renewed in time"):
        lease.check()
    wait_until(lambda: not beating())


def test_an_unanswered_lease_leaves_the_others_their_time(proxy: FaultProxy) -> None:
    long, short = taken("long", lease_seconds=60), taken("short", lease_seconds=1.2)
    long_key = {"key": {"S": "long"}}
    proxy.plan(
        "UpdateItem",
        Answer(400, "ThrottlingException"),
        times=10_000,
        when=lambda body: body["Key"] == long_key,
    )
    heartbeats._of_process._due[long] = 0

    time.sleep(2)

    short.check()
    long.check()


def _in_a_child(work: Callable[[], object]) -> int:
    """Do it in a fork of this process; the exit code."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_neither_has_nor_renews_nor_releases_its_parents_lease() -> None:
    lease = taken("a", lease_seconds=20)
    version = stored("a")["recordVersionNumber"]

    def child() -> None:
        assert beating() == []
        assert lease.remaining_seconds == 0
        for call in (lease.check, lease.renew):
            with pytest.raises(LeaseLost, match="process that took it"):
                call()
        lease.release()

    assert _in_a_child(child) == 0
    assert stored("a")["recordVersionNumber"] == version
    lease.check()
    lease.renew()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_amid_a_renewal_does_not_wait_for_it() -> None:
    lease = taken("a")

    def child() -> None:
        signal.alarm(20)
        lease.release()
        with pytest.raises(LeaseLost):
            lease.renew()
        with pytest.raises(LeaseLost):
            lease.leave(b"")

    with lease._writing, heartbeats._of_process._changed:
        assert _in_a_child(child) == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_takes_leases_of_its_own_and_renews_them() -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)

    def child() -> None:
        assert Lock("a").try_acquire() is None
        own = taken("b", lease_seconds=LEASE_SECONDS)
        assert own.owner != lease.owner
        assert len(beating()) == 1
        time.sleep(1.5 * LEASE_SECONDS)
        own.check()

    assert _in_a_child(child) == 0
    lease.check()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_leaves_its_parents_block_leaves_the_lock_alone() -> None:
    lock = Lock("a")
    with lock:
        assert _in_a_child(lambda: lock.__exit__(None, None, None)) == 0
        assert "isReleased" not in stored("a")


def test_a_process_ends_with_a_lease_in_its_hands() -> None:
    with started("hold", "a", 20) as [worker]:
        heard(worker)
        assert worker.stdin is not None
        worker.stdin.write("end\n")

        assert worker.wait(20) == 0
    assert "isReleased" not in stored("a")
