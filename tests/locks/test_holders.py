"""Watching the holder of a lock until it is gone, and deleting its lock then."""

import math
from typing import Any

import pytest

from dynamo import DamagedItem
from dynamo.runtime.clock import now
from locks import Lease, LeaseLost, Lock
from locks.holders import Holder, HolderWatch
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, put, stored, taken, unaware
from tests.locks.test_leases import is_written, write_under
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def watch_of(lease: Lease) -> HolderWatch:
    return HolderWatch(Holder(lease.name, lease.fence))


@pytest.mark.parametrize("lock", ["absent", "free", "another's"])
def test_a_holder_that_does_not_have_its_lock_any_more_is_gone_at_once(lock: str) -> None:
    lease = taken("a")
    watch = watch_of(lease)
    lease.release(remove=lock == "absent")
    if lock == "another's":
        taken("a")
    before = stored("a")

    assert watch.is_gone()
    assert stored("a") == before


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_each_look_costs_one_read_and_the_first_begins_the_watch(requests_sent: Requests) -> None:
    watch = watch_of(abandoned("a", lease_seconds=600))
    assert watch.ends_at == math.inf
    requests_sent.clear()
    before = now()

    assert not watch.is_gone()

    ends_at = watch.ends_at
    assert before + 600 <= ends_at <= now() + 600
    assert not watch.is_gone()
    assert (watch.ends_at, watch.has_renewed) == (ends_at, False)
    assert (requests_sent.operations, requests_sent.units) == (["GetItem"] * 2, 2)


def test_a_holder_that_did_not_renew_for_a_whole_lease_is_gone_and_can_write_no_more() -> None:
    lease = abandoned("a", lease_seconds=0.3)
    began = now()

    assert watch_of(lease).wait_until_gone(60)

    assert 0.3 <= now() - began < 60
    assert stored("a") == {}
    with pytest.raises(LeaseLost, match="another process holds"):
        write_under(unaware(lease))
    with pytest.raises(LeaseLost, match="another process holds"):
        lease.renew()
    assert stored("a") == {}
    assert not is_written()


def test_a_renewal_just_before_the_deletion_keeps_the_lock(proxy: FaultProxy) -> None:
    lease = abandoned("a", lease_seconds=0.3)
    watch = watch_of(lease)
    # The renewal was under way for longer than the lease.
    proxy.plan("DeleteItem", Meanwhile(lambda: unaware(lease).renew()))

    assert not watch.wait_until_gone(0.02)

    assert proxy.count("DeleteItem") == 1
    assert watch.has_renewed
    assert stored("a")["recordVersionNumber"] == {"S": lease._versions[0]}


def test_the_lock_of_the_next_holder_is_not_deleted(proxy: FaultProxy) -> None:
    lease = abandoned("a", lease_seconds=0.3)
    after: list[Any] = []
    proxy.plan(
        "DeleteItem", Meanwhile(lambda: after.extend(Lock("a")._take(instead_of=lease.taken)))
    )

    assert watch_of(lease).wait_until_gone(0.02)

    assert proxy.count("DeleteItem") == 1
    after[0].renew()


def test_a_holder_that_renews_or_has_a_claim_is_not_waited_for(proxy: FaultProxy) -> None:
    lease = abandoned("a", lease_seconds=600)
    watch = watch_of(lease)
    ends_at = now() + 600
    proxy.plan("GetItem", Meanwhile(lambda: None))
    proxy.plan("GetItem", Meanwhile(lease.renew))

    assert not watch.wait_until_gone(0.02)
    assert proxy.count("GetItem") == 2
    assert watch.has_renewed
    assert watch.ends_at > ends_at

    put("b", ownerName={"S": "x"}, fencingToken={"N": "7"}, recordVersionNumber={"S": "v"})
    assert not HolderWatch(Holder("b", 7)).wait_until_gone(600)


def test_a_damaged_lock_is_reported_at_each_look() -> None:
    put("a", leaseDuration={"S": "x"}, fencingToken={"N": "7"}, recordVersionNumber={"S": "v"})
    watch = HolderWatch(Holder("a", 7))

    for _look in range(2):
        with pytest.raises(DamagedItem, match="of locks is damaged: leaseDuration: 'x'"):
            watch.is_gone()
