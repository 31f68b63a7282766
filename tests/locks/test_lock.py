"""Acquiring a lock, waiting for it, and releasing it."""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from dynamo import DamagedItem, Rejected
from dynamo.runtime.clock import now
from locks import BadLockName, LeaseLost, Lock, LockTaken, claim_once, lease_lost, lock_awaited
from locks.registry import break_lock
from tests.locks.items import put, stored, taken
from tests.requests import Requests
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("error", [None, ZeroDivisionError()], ids=["done", "failed"])
def test_a_lock_is_held_in_its_with_block_and_free_afterwards(
    requests_sent: Requests, error: Exception | None
) -> None:
    def work() -> None:
        with Lock("a", lease_seconds=20) as lease:
            lease.check()
            assert Lock("a").try_acquire() is None
            # A check costs nothing, a try that fails one request.
            assert requests_sent.operations == ["UpdateItem"] * 2
            assert "isReleased" not in stored("a")
            if error is not None:
                raise error

    with nullcontext() if error is None else pytest.raises(ZeroDivisionError):
        work()

    assert stored("a")["isReleased"] == {"S": "1"}
    assert Lock("a").try_acquire() is not None


def test_an_item_has_what_the_client_for_java_writes_and_a_fence() -> None:
    lease = taken("a", lease_seconds=2.5, owner="we", data=b"x")

    item = stored("a")
    assert item.pop("recordVersionNumber").keys() == item.pop("renewedAt").keys() == {"S"}
    assert item == {
        "key": {"S": "a"},
        "ownerName": {"S": "we"},
        "leaseDuration": {"S": "2500"},
        "data": {"B": b"x"},
        "fencingToken": {"N": str(lease.fence)},
    }


@pytest.mark.parametrize("has_version", [True, False])
def test_the_lock_of_a_crashed_holder_is_free_after_one_lease(has_version: bool) -> None:
    version = {"recordVersionNumber": {"S": "v"}} if has_version else {}
    put("a", ownerName={"S": "x"}, leaseDuration={"S": "600"}, **version)
    began = now()

    lease = taken("a", poll_seconds=0.05, wait_seconds=60)

    assert now() - began >= 0.6
    lease.check()


def test_a_waiter_that_gives_up_is_told_who_holds_the_lock() -> None:
    taken("a", owner="x\x1b[2J\ny", lease_seconds=20)

    with pytest.raises(LockTaken) as refused:
        Lock("a", wait_seconds=0.1, poll_seconds=0.05).acquire()

    assert str(refused.value) == "The lock 'a' is held by x\\x1b[2J\\ny."
    assert (refused.value.name, refused.value.owner) == ("a", "x\x1b[2J\ny")
    assert refused.value.lease_seconds == 20


def test_the_pauses_of_a_waiter_are_random_from_half_to_one_and_a_half_of_a_poll() -> None:
    taken("a")
    steps = Lock("a", poll_seconds=0.2)._acquiring(600)

    pauses = [next(steps) for _look in range(200)]

    assert 0.1 <= min(pauses) < 0.12  # type: ignore[type-var]  # no lease is among them
    assert 0.28 < max(pauses) <= 0.3  # type: ignore[type-var]


@pytest.mark.parametrize("remove", [False, True])
def test_a_waiter_gets_a_lock_that_is_released(requests_sent: Requests, remove: bool) -> None:
    holder = taken("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(taken, "a", wait_seconds=60, poll_seconds=0.02)
        wait_until(lambda: "GetItem" in requests_sent.operations)
        assert not waiting.done()
        holder.release(remove=remove)

    assert stored("a")["fencingToken"] == {"N": str(waiting.result().fence)}
    assert remove or waiting.result().fence == holder.fence + 1
    assert "isReleased" not in stored("a")
    assert all(request["ConsistentRead"] for request in requests_sent.of("GetItem"))


def test_attributes_that_we_do_not_know_are_kept() -> None:
    put("a", isReleased={"S": "1"}, colour={"S": "blue"}, fencingToken={"N": "7"})

    lease = taken("a")
    lease.renew()
    lease.release()

    assert lease.fence == 8
    assert stored("a")["colour"] == {"S": "blue"}


def test_data_of_any_bytes_is_stored_for_the_next_holder() -> None:
    with Lock("a", data=b"") as lease:
        assert lease.data == b""
        lease.leave(bytes(range(256)))
        assert lease.data == bytes(range(256))

    with Lock("a") as lease:
        assert lease.data == bytes(range(256))


@pytest.mark.fault_of("moto", "carries out part of an update that it refuses")
def test_data_that_is_not_bytes_or_too_large_is_refused_and_the_lock_is_kept() -> None:
    with pytest.raises(TypeError, match="bytes, not str"):
        Lock("a", data="text")  # type: ignore[arg-type]
    with Lock("a") as lease:
        with pytest.raises(TypeError, match="bytes, not int"):
            lease.leave(5)  # type: ignore[arg-type]
        with pytest.raises(Rejected):
            lease.leave(b"x" * 500_000)
        lease.check()
        lease.renew()


@pytest.mark.parametrize("name", ["予約 🔒", "\x00\x1b\n", "#%/'\"", "é" * 1024])
def test_a_name_may_have_any_characters(name: str) -> None:
    with Lock(name) as lease:
        assert lease.name == name
        assert Lock(name).try_acquire() is None


@pytest.mark.parametrize("name", ["", "x" * 2049, "é" * 1025, "\ud800", None, b"x"])
@pytest.mark.parametrize("call", [Lock, claim_once, break_lock])
def test_a_name_that_cannot_be_a_key_is_refused(call: Callable[[Any], object], name: Any) -> None:
    with pytest.raises(BadLockName):
        call(name)


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        *(("lease_seconds", value) for value in (0, 0.05, float("nan"), float("inf"))),
        *(("poll_seconds", value) for value in (0, float("inf"))),
        *(("wait_seconds", value) for value in (-1, float("nan"))),
    ],
)
def test_durations_out_of_range_are_refused(name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"must"):
        Lock("a", **{name: seconds})  # type: ignore[arg-type]


def test_the_default_owner_is_the_same_for_all_locks_of_a_process() -> None:
    owner = taken("a").owner

    assert taken("b").owner == owner
    assert len(owner.split(":")[-1]) == 12


@pytest.mark.parametrize(
    ("name", "value", "more"),
    [
        *(("leaseDuration", {"S": text}, {}) for text in ("", "-5", "1e3", "9" * 5000, "٣")),
        ("fencingToken", {"N": "1.5"}, {}),
        ("fencingToken", {"N": "1.5"}, {"isReleased": {"S": "1"}}),
        ("recordVersionNumber", {"N": "1"}, {}),
    ],
)
def test_the_error_of_a_damaged_lock_names_the_attribute(
    name: str, value: dict[str, Any], more: dict[str, Any]
) -> None:
    put("a", **{"ownerName": {"S": "x"}, "recordVersionNumber": {"S": "v"}, name: value}, **more)

    with pytest.raises(DamagedItem, match=rf"'a' of locks is damaged: {name}"):
        Lock("a").try_acquire()


def test_signals_report_waits_and_losses(caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[str, str]] = []

    def note(
        name: str, outcome: str = "", reason: str = "", seconds: float = 0, **_signal: Any
    ) -> None:
        assert seconds >= 0
        told.append((name, outcome or reason))
        raise RuntimeError("of the receiver")

    lock_awaited.connect(note)
    lease_lost.connect(note)
    try:
        lease = Lock("a").acquire()
        assert Lock("a").try_acquire() is None
        break_lock("a")
        with pytest.raises(LeaseLost):
            lease.renew()
    finally:
        lock_awaited.disconnect(note)
        lease_lost.disconnect(note)

    assert told == [("a", "acquired"), ("a", "taken"), ("a", "taken")]
    assert caplog.text.count("of the receiver") >= 3


# Claims, which are never released -----------------------------------------------------------------


def test_only_the_first_caller_claims(max_requests: Any) -> None:
    with max_requests(3):
        assert claim_once("a")
        assert not claim_once("a")
        assert claim_once("b")
    assert stored("a").keys() == {"key", "ownerName", "recordVersionNumber", "renewedAt"}


def test_an_item_with_nothing_but_a_key_is_a_claim() -> None:
    put("a")

    assert not claim_once("a")
    assert Lock("a").try_acquire() is None


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_threads_that_share_a_lock_get_it_one_after_another(requests_sent: Requests) -> None:
    waiters, poll_seconds = 20, 0.2
    holder = taken("a")
    lock = Lock("a", poll_seconds=poll_seconds, wait_seconds=300, lease_seconds=600)
    inside: list[int] = []
    requests_sent.clear()
    began = now()

    def wait(number: int) -> int:
        with lock as lease:
            inside.append(number)
            assert inside == [number]
            inside.remove(number)
            return lease.fence

    with ThreadPoolExecutor(waiters) as pool:
        waiting = [pool.submit(wait, number) for number in range(waiters)]
        time.sleep(0.3)
        holder.release()
        fences = sorted(item.result() for item in waiting)
    took = now() - began

    assert fences == list(range(fences[0], fences[0] + waiters))
    sent = Counter(requests_sent.operations)
    # Each sends one write, and then reads at least half a poll apart.
    assert sent["GetItem"] <= waiters * (took / (poll_seconds / 2) + 1)
    # The first try and the release of each, and one try for each read that found it free.
    assert sent["UpdateItem"] <= 2 * waiters + 1 + sent["GetItem"]
