"""The thread that renews: while there are leases, in the process that has them, and no longer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from locks import heartbeats, leases
from locks.clock import now
from locks.exceptions import LeaseLost
from locks.lock import Lock
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.locks.items import beating, put, stored, taken
from tests.requests import Requests
from tests.waiting import wait_until

#: Longer than a machine stands still; renewed after a hundredth of it (`_renewed_often`).
LEASE_SECONDS = 60


@pytest.fixture(autouse=True)
def _no_thread_of_others(engine: str) -> None:
    wait_until(lambda: not beating())


@pytest.fixture(autouse=True)
def _renewed_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a quarter of a lease that is long enough to outlast a stall."""
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.01)


def version_of(name: str) -> str:
    version: str = stored(name)["recordVersionNumber"]["S"]
    return version


def wait_for_renewals(name: str, times: int = 1) -> None:
    """Come back when the lock was renewed so often from now on."""
    versions = {version_of(name)}

    def renewed() -> bool:
        versions.add(version_of(name))
        return len(versions) > times

    wait_until(renewed)


def test_the_thread_begins_with_the_first_lease_and_ends_with_the_last() -> None:
    assert beating() == []
    one, two = taken("a"), taken("b")
    assert len(beating()) == 1

    one.release()
    time.sleep(0.1)
    assert len(beating()) == 1

    two.release()
    wait_until(lambda: not beating())


def test_a_lease_is_renewed_again_and_again_and_each_time_begins_anew() -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    ends_at = now() + lease.remaining_seconds

    wait_for_renewals("a", 3)

    assert now() + lease.remaining_seconds > ends_at
    assert not lease.lost.is_set()


def test_one_thread_renews_all_leases_each_in_its_time(requests_sent: Requests) -> None:
    lengths = (6000, 60, 20, 80, 20.1)
    leases = [taken(f"{length}", lease_seconds=length) for length in lengths]
    requests_sent.clear()

    for length in lengths[1:]:
        wait_for_renewals(f"{length}", 2)

    assert len(beating()) == 1
    renewed = {
        request["Key"]["key"]["S"]
        for operation, request in zip(requests_sent.operations, requests_sent.requests, strict=True)
        if operation == "UpdateItem"
    }
    # The longest is due in a minute.
    assert renewed == {f"{length}" for length in lengths[1:]}
    assert [lease for lease in leases if lease.lost.is_set()] == []


def test_a_lease_after_a_pause_of_the_thread_is_renewed_too() -> None:
    taken("a").release()
    lease = taken("b", lease_seconds=LEASE_SECONDS)

    wait_for_renewals("b", 2)

    assert not lease.lost.is_set()


def test_the_thread_leaves_a_lease_alone_that_is_lost_and_renews_the_others() -> None:
    kept, lost = (taken(name, lease_seconds=LEASE_SECONDS) for name in "ab")
    put("b", ownerName={"S": "another"}, recordVersionNumber={"S": "theirs"})

    wait_until(lost.lost.is_set)
    wait_for_renewals("a", 2)

    assert not kept.lost.is_set()
    assert version_of("b") == "theirs"
    kept.release()
    wait_until(lambda: not beating())


@pytest.mark.usefixtures("impatient")
def test_the_thread_tries_again_while_the_lease_lasts(proxy: FaultProxy) -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
    wait_until(lambda: heartbeats._of_process._failures.get(lease, 0) >= 2)
    proxy.forget()

    wait_for_renewals("a")

    assert not lease.lost.is_set()


def test_a_lease_whose_renewals_all_fail_is_lost_by_its_own_clock(proxy: FaultProxy) -> None:
    began = now()
    lease = taken("a", lease_seconds=1)
    proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)

    wait_until(lease.lost.is_set)

    assert now() - began >= 0.9
    proxy.forget()
    with pytest.raises(LeaseLost, match="not renewed in time"):
        lease.check()
    wait_until(lambda: not beating())


def test_an_unanswered_lease_leaves_the_others_their_time(proxy: FaultProxy) -> None:
    # The thread waits for an answer for a quarter of the shorter lease.
    long, short = taken("long"), taken("short", lease_seconds=12)
    long_key = {"key": {"S": "long"}}
    proxy.plan(
        "UpdateItem",
        Answer(400, "ThrottlingException"),
        times=10_000,
        when=lambda body: body["Key"] == long_key,
    )
    heartbeats._of_process._due[long] = 0
    wait_until(lambda: long_key in [seen.body.get("Key") for seen in proxy.seen[2:]])

    wait_for_renewals("short", 2)

    assert not long.lost.is_set()
    assert not short.lost.is_set()


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
    # Not due while the test lasts.
    lease = taken("a", lease_seconds=60_000)
    version = version_of("a")

    def child() -> None:
        assert beating() == []
        assert lease.remaining_seconds == 0
        for call in (lease.check, lease.renew):
            with pytest.raises(LeaseLost, match="process that took it"):
                call()
        lease.release()

    assert _in_a_child(child) == 0
    assert version_of("a") == version
    lease.check()
    lease.renew()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_amid_a_renewal_does_not_wait_for_it() -> None:
    lease = taken("a")

    def child() -> None:
        signal.alarm(60)
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
        wait_for_renewals("b", 2)
        own.check()

    assert _in_a_child(child) == 0
    assert not lease.lost.is_set()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_leaves_its_parents_block_leaves_the_lock_alone() -> None:
    lock = Lock("a")
    with lock:
        assert _in_a_child(lambda: lock.__exit__(None, None, None)) == 0
        assert "isReleased" not in stored("a")
