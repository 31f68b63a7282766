"""Another's lease, watched until it is certainly over, and then shut out."""

from __future__ import annotations

import time

import pytest

from dynamo.exceptions import DamagedItem
from locks import records
from locks.clock import now
from locks.exceptions import LeaseLost
from locks.lock import claim_once
from locks.models import LockItem
from locks.watching import Watch
from tests.locks.items import abandoned, put, stored, taken
from tests.locks.test_leases import is_written, write_under
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def look(watch: Watch, name: str = "a") -> LockItem:
    seen = records.read(name)
    assert seen is not None
    watch.look_at(seen, now())
    return seen


def watched_to_its_end(name: str = "a") -> LockItem:
    watch = Watch()
    seen = look(watch, name)
    time.sleep(max(0, watch.ends_at - now()))
    assert watch.is_over(now())
    return seen


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_a_look_costs_one_read(requests_sent: Requests) -> None:
    taken("a")
    requests_sent.clear()

    look(Watch())

    assert (requests_sent.operations, requests_sent.units) == (["GetItem"], 1)


def test_a_lease_that_is_renewed_is_never_over() -> None:
    lease = taken("a", lease_seconds=0.4)
    watch = Watch()

    for _look in range(5):
        look(watch)
        assert not watch.is_over(now())
        time.sleep(0.25)
    lease.check()


def test_an_abandoned_lease_is_over_one_lease_after_the_first_look_and_not_sooner() -> None:
    lease = abandoned("a", lease_seconds=0.4)
    time.sleep(0.3)
    began = now()

    watched_to_its_end()

    assert now() - began >= 0.4
    with pytest.raises(LeaseLost):
        lease.check()


def test_many_looks_at_one_version_do_not_put_its_end_off() -> None:
    abandoned("a", lease_seconds=0.4)
    watch = Watch()
    look(watch)
    ends_at = watch.ends_at

    look(watch)

    assert watch.ends_at == ends_at


def test_a_claim_is_never_over() -> None:
    claim_once("a")
    watch = Watch()

    look(watch)

    assert watch.ends_at == float("inf")


def test_a_damaged_lease_is_said_at_each_look() -> None:
    put("a", leaseDuration={"S": "x"}, recordVersionNumber={"S": "v"})
    watch = Watch()

    for _look in range(2):
        with pytest.raises(DamagedItem):
            look(watch)
    assert not watch.is_over(now())


def test_a_lock_that_was_watched_to_its_end_is_deleted_and_its_holder_shut_out() -> None:
    lease = abandoned("a")
    seen = watched_to_its_end()

    assert records.delete("a", seen.stored)

    # The clock of one who was stopped between its check and its write.
    lease._sent_at = now()
    with pytest.raises(LeaseLost):
        write_under(lease)
    with pytest.raises(LeaseLost):
        lease.renew()
    assert stored("a") == {}
    assert not is_written()


def test_a_holder_that_renews_at_the_last_moment_is_not_deleted() -> None:
    lease = abandoned("a")
    seen = watched_to_its_end()
    # As a renewal that was under way for a long time would.
    lease._sent_at = now()
    lease.renew()

    assert not records.delete("a", seen.stored)
    lease.renew()


def test_the_next_holder_is_not_deleted_for_the_one_before() -> None:
    abandoned("a")
    seen = watched_to_its_end()
    theirs = taken("a", poll_seconds=0.02, wait_seconds=60)

    assert not records.delete("a", seen.stored)
    theirs.renew()
