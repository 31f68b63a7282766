"""The threads that renew leases: they run while the process holds leases, and no longer."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from locks import LeaseLost, Lock, leases
from tests.clocks import LeapingClock
from tests.faults.kinds import Answer, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.forked import in_a_child
from tests.locks.items import beating, put, stored, taken
from tests.requests import Requests, told
from tests.waiting import wait_until

#: Longer than a machine may stall; renewed after 0.2 s.
LEASE_SECONDS = 60

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(autouse=True)
def _no_thread_of_others(engine: str) -> None:
    wait_until(lambda: not beating())


@pytest.fixture(autouse=True)
def _renewed_often(_no_thread_of_others: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that tests wait neither for a part of a long lease nor for the thread's next look."""
    monkeypatch.setattr(leases, "RENEWED_AFTER", 0.2 / LEASE_SECONDS)
    monkeypatch.setattr(leases, "MOST_FAILURES", 10 * LEASE_SECONDS)
    monkeypatch.setattr(leases, "LOOK_SECONDS", 0.1)


def version_of(name: str) -> str:
    version: str = stored(name)["recordVersionNumber"]["S"]
    return version


def wait_for_renewals(name: str, times: int = 1) -> None:
    """Wait until the lock has been renewed `times` times from now on."""
    versions = {version_of(name)}

    def renewed() -> bool:
        versions.add(version_of(name))
        return len(versions) > times

    wait_until(renewed)


def test_the_thread_begins_with_the_first_lease_and_ends_with_the_last() -> None:
    assert beating() == []
    one = taken("a")
    two = taken("b")
    # A process that ends does not wait for it.
    assert [thread.daemon for thread in beating()] == [True]

    one.release()
    time.sleep(0.1)
    assert len(beating()) == 1

    two.release()
    wait_until(lambda: not beating())


def test_the_thread_wakes_when_a_renewal_is_due() -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    heartbeats = leases._of_process()

    wait_until(lambda: abs(heartbeats._wakes_at - lease.renewal_due_at) < 0.05)


def test_short_leases_one_after_the_other_share_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LOOK_SECONDS", 1.0)
    threads = set()
    began = time.monotonic()
    for _number in range(20):
        lease = taken("short", lease_seconds=60_000)
        threads.update(beating())
        lease.release()

    # Each look between two leases ends a thread, and the next lease starts another one.
    assert len(threads) <= 2 + (time.monotonic() - began) / leases.LOOK_SECONDS


def test_one_thread_renews_all_leases_except_a_lost_one(requests_sent: Requests) -> None:
    taken("released before").release()
    # The renewal of the first is due in three minutes.
    leases = [taken(f"{length}", lease_seconds=length) for length in (60_000, 60, 20, 80)]
    lost = taken("lost", lease_seconds=LEASE_SECONDS)
    put("lost", ownerName={"S": "another"}, recordVersionNumber={"S": "theirs"})
    wait_until(lost.lost.is_set)
    requests_sent.clear()

    for item in leases[1:]:
        wait_for_renewals(item.name, 2)

    assert len(beating()) == 1
    renewed = {request["Key"]["key"]["S"] for request in requests_sent.of("UpdateItem")}
    assert renewed == {lease.name for lease in leases[1:]}
    assert [lease for lease in leases if lease.lost.is_set()] == []
    assert version_of("lost") == "theirs"


@pytest.mark.usefixtures("impatient")
def test_the_thread_tries_again_while_the_lease_lasts(proxy: FaultProxy) -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
    wait_until(lambda: lease.failures >= 2)
    proxy.forget()

    wait_for_renewals("a")

    assert not lease.lost.is_set()


@contextmanager
def unanswered(proxy: FaultProxy, *names: str) -> Iterator[None]:
    """Hold back the replies to renewals of these locks until the block ends.

    The block begins when one of each has been sent.
    """
    end = threading.Event()
    sent = set()

    def is_held_back(body: dict[str, Any]) -> bool:
        name = body["Key"]["key"]["S"]
        sent.update({name} & {*names})
        return name in names

    proxy.plan("UpdateItem", Meanwhile(lambda: end.wait(120)), times=10_000, when=is_held_back)
    try:
        wait_until(lambda: sent == set(names))
        yield
    finally:
        end.set()


def test_renewals_that_get_no_answer_delay_no_other_lease(proxy: FaultProxy) -> None:
    slow = [taken(name, lease_seconds=LEASE_SECONDS) for name in ("slow 1", "slow 2", "slow 3")]
    lease = taken("a", lease_seconds=LEASE_SECONDS)

    with unanswered(proxy, *(item.name for item in slow)):
        wait_for_renewals("a", 3)

    assert [item for item in (*slow, lease) if item.lost.is_set()] == []


def test_a_lease_without_an_answer_is_lost_at_its_end(
    proxy: FaultProxy, clock: LeapingClock
) -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)

    with unanswered(proxy, "a"):
        clock.leap(LEASE_SECONDS)

        wait_until(lease.lost.is_set)
        wait_until(lambda: not beating())


def test_no_error_ends_the_renewals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)
    errors: list[Exception] = [ValueError("rubbish"), KeyError("Credentials")]
    start, refused = threading.Thread.start, [1, 2]

    def fail(operation: str, **_signal: Any) -> None:
        if operation == "UpdateItem" and errors:
            raise errors.pop()

    def refuse_twice(thread: threading.Thread) -> None:
        if thread.name == "lock renewal" and refused:
            refused.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    with told(fail):
        wait_until(lambda: not errors)
        monkeypatch.setattr(threading.Thread, "start", refuse_twice)
        wait_until(lambda: not refused)
        wait_for_renewals("a", 2)

    assert not lease.lost.is_set()
    assert [message for message in caplog.messages if "'a' is not renewed yet" in message]


@forks
def test_a_forked_child_neither_has_nor_renews_nor_releases_its_parents_lease() -> None:
    # Not due while the test lasts.
    lock = Lock("a", lease_seconds=60_000)

    def child() -> None:
        assert beating() == []
        assert lease.remaining_seconds == 0
        for call in (lease.check, lease.renew, lambda: lease.leave(b"")):
            with pytest.raises(LeaseLost, match="process that acquired it"):
                call()
        lease.release()
        lock.__exit__(None, None, None)

    with lock as lease:
        version = version_of("a")
        assert in_a_child(child) == 0
        # During a renewal it does not wait for it.
        with lease._writing, lease._changing, leases._of_process()._changed:
            assert in_a_child(child) == 0
        assert version_of("a") == version
        lease.check()
        lease.renew()


@forks
def test_a_forked_child_takes_leases_of_its_own_and_renews_them() -> None:
    lease = taken("a", lease_seconds=LEASE_SECONDS)

    def child() -> None:
        assert Lock("a").try_acquire() is None
        own = taken("b", lease_seconds=LEASE_SECONDS)
        assert own.owner != lease.owner
        assert len(beating()) == 1
        wait_for_renewals("b", 2)
        own.check()

    assert in_a_child(child) == 0
    assert not lease.lost.is_set()
