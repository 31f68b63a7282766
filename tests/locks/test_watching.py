"""Another's lease, watched until it is certainly over."""

from __future__ import annotations

import pytest

from dynamo.clock import now
from dynamo.exceptions import DamagedItem
from locks import records
from locks.exceptions import LeaseLost
from locks.holders import Watch
from locks.lock import claim_once
from locks.models import LockItem
from tests.clocks import LeapingClock
from tests.locks.items import abandoned, put, taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def look(watch: Watch, name: str = "a") -> LockItem:
    seen = records.read(name)
    assert seen is not None
    watch.look_at(seen, now())
    return seen


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_a_look_costs_one_read(requests_sent: Requests) -> None:
    taken("a")
    requests_sent.clear()

    look(Watch())

    assert (requests_sent.operations, requests_sent.units) == (["GetItem"], 1)


def test_a_lease_that_is_renewed_is_never_over(clock: LeapingClock) -> None:
    lease = abandoned("a", lease_seconds=600)
    watch = Watch()

    for _look in range(5):
        look(watch)
        assert not watch.is_over(now())
        clock.leap(400)
        lease.renew()
    lease.check()


def test_an_abandoned_lease_is_over_one_lease_after_the_first_look_and_not_sooner(
    clock: LeapingClock,
) -> None:
    lease = abandoned("a", lease_seconds=600)
    clock.leap(400)
    watch = Watch()
    look(watch)

    clock.leap(550)
    look(watch)
    assert not watch.is_over(now())
    clock.leap(50)
    look(watch)
    assert watch.is_over(now())
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
