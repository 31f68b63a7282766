"""Leases: checks, renewals, releases and transactions under them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamo import Rejected, Transaction
from dynamo.runtime.clock import now
from locks import Lease, LeaseLost, LockError, requests
from locks.models import LockItem
from tests.faults.kinds import Answer
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, put, stored, taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


class NotNew(Exception):
    """The item exists already."""


def write_under(lease: Lease) -> None:
    """Commit a transaction that depends on the lease."""
    with Transaction() as write:
        lease.hold_in(write)
        item = LockItem("written", owner="nobody")
        write.put(item, LockItem.name.does_not_exist(), otherwise=NotNew())


def is_written() -> bool:
    return bool(stored("written"))


def test_a_lease_lasts_from_before_its_request_and_a_little_less_than_it_says() -> None:
    before = now()
    lease = taken("a", lease_seconds=10)

    assert now() + lease.remaining_seconds <= before + 10 * 0.9991 + (now() - before)
    assert 0 < lease.remaining_seconds < 10 * 0.9991


def test_a_lost_lease_is_logged_once(at_once: Any, caplog: pytest.LogCaptureFixture) -> None:
    lease = abandoned("a", lease_seconds=0.3)
    lease._sent_at -= 1

    def notice(_number: int) -> None:
        for call in (lease.check, lease.renew):
            with pytest.raises(LeaseLost):
                call()

    at_once(notice)

    said = f"The lease on 'a' (fence {lease.fence}) is lost: it was not renewed in time."
    lines = [record for record in caplog.records if record.name.startswith("locks.")]
    assert [line.getMessage() for line in lines] == [said]


def end_late(lease: Lease) -> None:
    lease._sent_at -= lease.lease_seconds
    with pytest.raises(LeaseLost):
        lease.check()


CALLS: dict[str, Callable[[Lease], object]] = {
    "check": Lease.check,
    "renew": Lease.renew,
    "leave": lambda lease: lease.leave(b""),
    "in a transaction": write_under,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("end", "reason"),
    [(end_late, r": it was not renewed in time\.$"), (Lease.release, r": it was released\.$")],
)
def test_a_lease_that_is_over_never_starts_again_and_writes_nothing(
    requests_sent: Requests,
    end: Callable[[Lease], None],
    reason: str,
    call: Callable[[Lease], object],
) -> None:
    lease = taken("a")
    end(lease)
    requests_sent.clear()

    for _time in range(2):
        with pytest.raises(LeaseLost, match=reason):
            call(lease)
        lease._sent_at += 10_000

    assert lease.remaining_seconds == 0
    assert requests_sent.operations == []


def test_a_renewal_starts_the_lease_again_under_a_new_version_and_stores_the_time() -> None:
    lease = taken("a")
    before = stored("a") | {"renewedAt": {"S": "2026-01-01T00:00:00.000+00:00"}}
    put("a", **before)
    lease._sent_at -= 300
    left = lease.remaining_seconds

    lease.renew()

    after = stored("a")
    assert lease.remaining_seconds > left + 200
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"recordVersionNumber", "renewedAt"}
    renewed_at = datetime.fromisoformat(after["renewedAt"]["S"])
    assert datetime.now(UTC) - renewed_at < timedelta(minutes=10)


def test_a_lease_is_lost_if_another_program_marks_its_lock_as_released() -> None:
    lease = taken("a")
    before = {name: value for name, value in stored("a").items() if name != "key"}
    put("a", **before, isReleased={"S": "1"})

    with pytest.raises(LeaseLost, match="another process"):
        lease.renew()


def test_a_release_after_the_lease_frees_the_lock_and_raises() -> None:
    lease = taken("a")
    lease._sent_at -= lease.lease_seconds

    with pytest.raises(LeaseLost, match="not renewed in time"):
        lease.release()

    assert stored("a")["isReleased"] == {"S": "1"}


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_a_transaction_under_a_lease_costs_two_units_more(requests_sent: Requests) -> None:
    lease = taken("a")
    lease.renew()  # its record version is another one by now
    requests_sent.clear()

    write_under(lease)

    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)
    assert is_written()


ENDS: dict[str, Callable[[Lease], object]] = {
    "released": Lease.release,
    "removed": lambda lease: lease.release(remove=True),
    "broken": lambda _lease: requests.break_seen("a", stored("a"), delete=False),
    "taken by this process": lambda lease: put(
        "a", **stored("a") | {"fencingToken": {"N": str(lease.fence + 1)}}
    ),
    "taken by another": lambda _lease: put("a", **stored("a") | {"ownerName": {"S": "another"}}),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_transaction_is_refused_after_the_lock_was_lost(end: Callable[[Lease], object]) -> None:
    lease = taken("a")
    write = Transaction()
    lease.hold_in(write)
    end(lease)

    with pytest.raises(LeaseLost):
        write.commit()


def test_renewals_and_a_release_at_the_same_time_leave_the_lock_free(at_once: Any) -> None:
    for _round in range(10):
        lease = taken("a")

        def either(number: int, lease: Any = lease) -> None:
            if number == 3:
                lease.release()
                return
            try:
                lease.renew()
            except LockError:
                assert "released" in repr(lease)

        at_once(either, 6)
        assert lease.released
        assert not lease.lost.is_set()
        assert stored("a")["isReleased"] == {"S": "1"}


def test_the_versions_of_many_failed_renewals_fit_into_a_condition(proxy: FaultProxy) -> None:
    lease = taken("a")
    proxy.plan("UpdateItem", Answer(400, "AccessDeniedException"), times=300)
    for _number in range(300):
        with pytest.raises(Rejected):
            lease.renew()

    lease.renew()
    lease.release()

    # DynamoDB takes 100 operands of IN, including the left one.
    operands = [1 + seen.body["ConditionExpression"].count(":v") for seen in proxy.seen]
    assert max(operands) == 100
    assert stored("a")["isReleased"] == {"S": "1"}
