"""Many processes and one lock: killed, frozen, or fifty at a time."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynamo.clock import now
from locks.lock import Lock
from tests.lock_workers import FencedFile, StaleFence, ask, heard, started
from tests.locks.items import taken
from tests.requests import Requests

FULL = os.environ.get("STRESS") == "full"

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.stress
@pytest.mark.fault_of("moto", "loses updates that meet")
def test_many_processes_and_threads_count_under_one_lock_and_none_is_missing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "number"
    file.write_text("0")
    processes, times = (8, 250) if FULL else (2, 16)

    with started("count", "a", file, 4, times, count=processes) as workers:
        fences = [json.loads(heard(worker)) for worker in workers]

    assert file.read_text() == str(processes * times)
    every = list(itertools.chain(*fences))
    assert len(set(every)) == processes * times


@pytest.mark.stress
@pytest.mark.fault_of("moto", "loses updates that meet")
def test_holders_frozen_past_their_lease_spoil_nothing_that_looks_at_fences(
    tmp_path: Path,
) -> None:
    file = tmp_path / "number"
    processes, times, lease_seconds = (8, 250, 0.5) if FULL else (2, 30, 1.0)

    with started(
        "fenced", "a", file, 4 if FULL else 2, times, lease_seconds, count=processes
    ) as workers:
        for worker in workers:
            assert heard(worker) == "ready"
        for _freeze in range(40 if FULL else 2):
            victim = random.choice(workers)
            victim.send_signal(signal.SIGSTOP)
            time.sleep(lease_seconds * 1.5)
            victim.send_signal(signal.SIGCONT)
            time.sleep(random.uniform(0, 0.1))
        written = sum(int(heard(worker)) for worker in workers)

    # Each process loses what its few threads had in hand when it was frozen, and no more.
    assert written >= processes * times * 0.5
    assert FencedFile(file).read(2**62) == written


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_a_frozen_holder_that_thaws_has_lost_its_lease_and_its_late_write_is_refused(
    tmp_path: Path,
) -> None:
    resource = tmp_path / "resource"
    with started("hold", "a", 1) as [frozen]:
        fence = int(heard(frozen))
        assert ask(frozen, f"write {resource} 1") == "fine"

        frozen.send_signal(signal.SIGSTOP)
        began = now()
        lease = taken("a", poll_seconds=0.05, wait_seconds=60)
        assert now() - began >= 1
        FencedFile(resource).write(lease.fence, 2)
        frozen.send_signal(signal.SIGCONT)

        assert ask(frozen, f"write {resource} 3") == "StaleFence"
        assert ask(frozen, "check") == "LeaseLost"
        assert lease.fence > fence
        lease.renew()
    assert FencedFile(resource).read(lease.fence) == 2


def test_the_lock_of_a_killed_holder_is_had_one_lease_after_the_first_look_and_not_sooner() -> None:
    lease_seconds = 1.5
    with started("hold", "a", lease_seconds) as [holder]:
        heard(holder)
        # It has renewed by then.
        time.sleep(lease_seconds)
        holder.kill()
        holder.wait()
        began = now()

        lease = taken("a", poll_seconds=0.05, wait_seconds=60)

    assert now() - began >= lease_seconds
    lease.check()


def test_fifty_waiters_cost_a_read_a_poll_each_and_do_not_come_as_a_herd(
    requests_sent: Requests,
) -> None:
    waiters, poll_seconds, seconds = 50, 0.5, 3
    holder = taken("a", lease_seconds=600)
    requests_sent.clear()
    began = now()

    def wait(_number: int) -> bool:
        lock = Lock("a", poll_seconds=poll_seconds, wait_seconds=seconds, lease_seconds=600)
        return lock.try_acquire() is not None or _waited_in_vain(lock)

    with ThreadPoolExecutor(waiters) as pool:
        list(pool.map(wait, range(waiters)))
    took = now() - began

    sent = Counter(requests_sent.operations)
    # A write each to try, another to wait, and then reads: at least half a poll lies between two.
    assert sent["UpdateItem"] == 2 * waiters
    most = waiters * (took / (poll_seconds / 2) + 1)
    assert sent["GetItem"] <= most
    per_waiter_and_second = sent["GetItem"] / waiters / seconds
    # On average one a poll; a slow machine asks less often, never more.
    assert per_waiter_and_second <= 1.25 / poll_seconds
    holder.check()


def _waited_in_vain(lock: Lock) -> bool:
    from locks.exceptions import LockTaken

    try:
        lock.acquire()
    except LockTaken:
        return True
    return False


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_fifty_waiters_all_get_a_released_lock_at_bounded_cost(requests_sent: Requests) -> None:
    waiters, poll_seconds = 50, 0.2
    holder = taken("a")
    requests_sent.clear()
    began = now()

    def wait(_number: int) -> int:
        lock = Lock("a", poll_seconds=poll_seconds, wait_seconds=300, lease_seconds=600)
        with lock as lease:
            return lease.fence

    with ThreadPoolExecutor(waiters) as pool:
        waiting = [pool.submit(wait, number) for number in range(waiters)]
        time.sleep(0.3)
        holder.release()
        fences = sorted(each.result() for each in waiting)
    took = now() - began

    assert fences == list(range(fences[0], fences[0] + waiters))
    sent = Counter(requests_sent.operations)
    assert sent["GetItem"] <= waiters * (took / (poll_seconds / 2) + 1)
    # The first look and the release of each, and tries: one for each look that found it free.
    assert sent["UpdateItem"] <= 2 * waiters + 1 + sent["GetItem"]


def test_stale_fences_are_refused_by_the_resource_of_these_tests(tmp_path: Path) -> None:
    resource = FencedFile(tmp_path / "resource")
    resource.write(5, 1)

    with pytest.raises(StaleFence):
        resource.write(4, 2)
    with pytest.raises(StaleFence):
        resource.read(4)
    assert resource.read(5) == 1
