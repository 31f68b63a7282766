"""Listing locks and breaking them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamo import Unavailable
from locks import Lease, LeaseLost, Lock, LockChanged, UnknownLock, claim_once
from locks.registry import State, all_locks, break_lock, look
from tests.faults.kinds import DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.locks.items import put, stored, taken

pytestmark = pytest.mark.usefixtures("engine")


def test_the_age_of_a_renewal_is_in_seconds_and_a_lock_is_silent_after_its_lease() -> None:
    put("a", renewedAt={"S": "2026-11-21T10:00:00.000+00:00"}, leaseDuration={"S": "20000"})
    put("b", renewedAt={"S": "2026-11-21T10:00:00"})
    at = datetime(2026, 11, 21, 10, 0, 30, tzinfo=UTC)

    assert {lock.age_seconds(at) for lock in all_locks()} == {30}
    assert all(lock.age_seconds(at - timedelta(days=1)) for lock in all_locks())
    silent = [look("a").is_silent(at - timedelta(seconds=number)) for number in (0, 10, 11)]
    assert silent == [True, False, False]


_NO_TEXT = ("ownerName", "leaseDuration", "recordVersionNumber", "isReleased", "renewedAt")
DAMAGE: dict[str, dict[str, Any]] = {
    "all of another type": {name: {"N": "1"} for name in _NO_TEXT} | {"fencingToken": {"S": "x"}},
    "texts that say nothing": {
        "leaseDuration": {"S": "soon"},
        "renewedAt": {"S": "soon"},
        "fencingToken": {"N": "1.5"},
    },
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_lock_is_listed_and_broken_and_then_taken(damage: dict[str, Any]) -> None:
    put("a", **damage)

    [lock] = all_locks()
    assert (lock.state, lock.lease_seconds, lock.renewed_at) == (State.HELD, None, None)
    assert break_lock("a") is State.HELD

    with Lock("a", wait_seconds=0) as lease:
        lease.renew()


def test_a_broken_lease_is_free_at_once_and_its_holder_learns_it_at_its_next_renewal() -> None:
    lease = taken("a")
    put("other")

    assert break_lock("a") is State.HELD

    assert taken("a", wait_seconds=0).fence == lease.fence + 1
    with pytest.raises(LeaseLost, match="broken"):
        lease.renew()
    with pytest.raises(LeaseLost):
        lease.release()


def is_break(body: dict[str, Any]) -> bool:
    condition = body.get("ConditionExpression", "")
    return ":seen" in condition or "not_exists(recordVersionNumber)" in condition


def claimed_again() -> None:
    assert claim_once("a")


def by_java(owner: str) -> None:
    """Without a fencing token."""
    put("a", ownerName={"S": owner}, leaseDuration={"S": "9"}, recordVersionNumber={"S": "theirs"})


def broken_and_taken() -> Lease:
    break_lock("a")
    return taken("a")


#: What is broken, whether the reply to the first request is lost, and who has the lock before the
#: request arrives (again).
NEXT_HOLDERS: dict[str, tuple[Callable[[], object], bool, Callable[[], object]]] = {
    "a lease": (lambda: taken("a"), False, broken_and_taken),
    "a damaged lock": (
        lambda: put("a", ownerName={"S": "we"}, leaseDuration={"S": "1000"}),
        *(False, broken_and_taken),
    ),
    "a lease, with a lost reply": (lambda: taken("a"), True, lambda: taken("a")),
    "a claim, with a lost reply": (claimed_again, True, claimed_again),
}


@pytest.mark.parametrize(
    ("given", "is_lost", "happens"), NEXT_HOLDERS.values(), ids=NEXT_HOLDERS.keys()
)
def test_the_lock_of_the_next_holder_is_not_broken(
    proxy: FaultProxy, given: Callable[[], object], is_lost: bool, happens: Callable[[], object]
) -> None:
    given()
    after: list[Any] = []
    if is_lost:
        proxy.plan("*", DropReply(), when=is_break)
    proxy.plan("*", Meanwhile(lambda: after.extend((happens(), stored("a")))), when=is_break)
    state = look("a").state

    assert break_lock("a") is state

    [lease, item] = after
    assert stored("a") == item
    if isinstance(lease, Lease):
        lease.renew()


def claim_again(_claim: Any) -> None:
    break_lock("a")
    claim_once("a")


def change_hands(lease: Lease) -> None:
    lease.renew()
    assert look("a").fence == lease.fence
    lease.release()
    taken("a")


@pytest.mark.parametrize(
    ("given", "happens"),
    [
        (lambda: claim_once("a"), claim_again),
        (lambda: taken("a"), change_hands),
        (lambda: by_java("first"), lambda _none: by_java("second")),
    ],
    ids=["a claim", "a lease", "a lease of the Java client"],
)
def test_only_the_holder_that_was_shown_is_broken(
    given: Callable[[], Any], happens: Callable[[Any], None]
) -> None:
    holder = given()
    shown = look("a")
    happens(holder)
    now = look("a")

    with pytest.raises(LockChanged):
        break_lock("a", as_seen=shown)

    assert look("a") == now


def test_a_claim_that_is_deleted_meanwhile_is_unknown(proxy: FaultProxy) -> None:
    claim_once("a")
    proxy.plan("DeleteItem", Meanwhile(lambda: break_lock("a")))

    with pytest.raises(UnknownLock):
        break_lock("a")


def test_a_lock_that_changes_at_every_try_is_not_broken(proxy: FaultProxy) -> None:
    lease = taken("a")
    for _attempt in range(5):
        proxy.plan("UpdateItem", Meanwhile(lease.renew), when=is_break)

    with pytest.raises(Unavailable):
        break_lock("a")
    lease.check()
