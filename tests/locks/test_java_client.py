"""One table and one lock for us and the lock client for Java: mutual exclusion holds both ways."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dynamo.clock import now
from dynamo.models import Item
from locks import records
from locks.exceptions import LeaseLost, LockTaken
from locks.holders import Watch
from locks.lock import Lock
from locks.registry import State, break_lock, look
from tests.locks import java
from tests.locks.items import abandoned, stored, taken

pytestmark = pytest.mark.usefixtures("engine")


def test_it_cannot_take_what_we_hold() -> None:
    lease = taken("a")
    lease.renew()

    assert java.acquire("a") is None
    assert java.acquire_released("a") is None
    assert java.acquire_expired("a", "another version") is None
    lease.check()
    lease.renew()


def test_we_cannot_take_what_it_holds() -> None:
    theirs = java.acquire("a")
    assert theirs is not None

    with pytest.raises(LockTaken, match="held by java"):
        Lock("a", wait_seconds=0).acquire()
    assert theirs.heartbeat()


def test_it_takes_what_we_released() -> None:
    taken("a").release()

    assert java.acquire_released("a") is not None
    assert Lock("a").try_acquire() is None


@pytest.mark.parametrize("delete", [True, False])
def test_we_take_what_it_released_at_once(delete: bool) -> None:
    theirs = java.acquire("a")
    assert theirs is not None
    assert theirs.release(delete=delete)

    lease = taken("a", wait_seconds=0)

    assert not theirs.heartbeat()
    lease.renew()


def test_it_reads_from_our_item_all_that_it_needs() -> None:
    lease = taken("a", lease_seconds=2.5, data=b"x")

    item = java.read("a")

    assert int(item["leaseDuration"]["S"]) == 2500
    assert item["ownerName"]["S"] == lease.owner
    assert item["recordVersionNumber"]["S"]
    assert item["data"]["B"] == b"x"
    assert "isReleased" not in item


def test_it_takes_our_abandoned_lock_by_its_version_and_we_notice() -> None:
    lease = abandoned("a", lease_seconds=20)
    seen = java.read("a")["recordVersionNumber"]["S"]

    theirs = java.acquire_expired("a", seen)

    assert theirs is not None
    with pytest.raises(LeaseLost, match="another holds"):
        lease.renew()
    with pytest.raises(LeaseLost):
        lease.release()
    assert theirs.heartbeat()


def test_a_renewal_of_ours_tells_it_that_we_live() -> None:
    lease = taken("a")
    seen = java.read("a")["recordVersionNumber"]["S"]
    lease.renew()

    assert java.acquire_expired("a", seen) is None


def test_its_heartbeat_tells_us_that_it_lives() -> None:
    theirs = java.acquire("a")
    assert theirs is not None
    seen = java.read("a")
    assert theirs.heartbeat()

    assert Lock("a")._take(over=seen)[0] is None


def test_we_take_its_lock_when_it_has_not_renewed_for_its_lease_and_not_sooner() -> None:
    theirs = java.acquire("a", lease_milliseconds=500, data=b"left")
    assert theirs is not None
    began = now()

    lease = Lock("a", wait_seconds=60, poll_seconds=0.05).acquire()

    assert now() - began >= 0.5
    assert lease.data == b"left"
    assert not theirs.heartbeat()
    assert not theirs.release()
    assert not theirs.release(delete=True)
    lease.renew()


def test_it_drops_the_fence_which_begins_again_from_the_clock() -> None:
    first = taken("a")
    first.release()
    theirs = java.acquire("a")
    assert theirs is not None
    assert "fencingToken" not in stored("a")
    assert theirs.release()

    second = taken("a")

    assert second.fence > first.fence + 1
    assert second.fence < (time.time_ns() // 1000) + 2


def test_a_transaction_under_a_lease_that_it_took_is_refused() -> None:
    from tests.locks.test_leases import is_written, write_under

    lease = abandoned("a")
    assert java.acquire_expired("a", java.read("a")["recordVersionNumber"]["S"])

    with pytest.raises(LeaseLost):
        write_under(lease)
    assert not is_written()


def test_its_locks_are_listed_and_broken() -> None:
    theirs = java.acquire("a")
    assert theirs is not None

    assert look("a").state is State.HELD
    break_lock("a")

    assert not theirs.heartbeat()
    assert java.acquire("a") is not None


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_of_eight_rivals_of_both_kinds_one_has_a_free_lock(at_once: Any) -> None:
    for _round in range(10):
        winners = [
            winner
            for winner in at_once(
                lambda number: (
                    java.acquire("a", owner=f"java{number}")
                    if number % 2
                    else Lock("a").try_acquire()
                )
            )
            if winner is not None
        ]

        assert len(winners) == 1
        winners[0].release()


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_of_eight_rivals_of_both_kinds_one_has_an_abandoned_lock(at_once: Any) -> None:
    for number in range(10):
        name = f"a{number}"
        abandoned(name, lease_seconds=0.2)
        seen = records.read(name)
        assert seen is not None
        watch = Watch()
        watch.look_at(seen, now())
        version, item = str(seen.version), seen.stored
        time.sleep(max(0, watch.ends_at - now()))

        def attempt(
            number: int, name: str = name, seen: Item = item, version: str = version
        ) -> object:
            if number % 2:
                return java.acquire_expired(name, version, owner=f"java{number}")
            return Lock(name)._take(over=seen)[0]

        assert sum(winner is not None for winner in at_once(attempt)) == 1
