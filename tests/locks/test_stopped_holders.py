"""Holders that are killed or stopped, and the cost of fifty waiters."""

from __future__ import annotations

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynamo._internal.clock import now
from locks._internal.lock import Lock
from locks.exceptions import LockTaken
from tests.lock_workers import FencedFile, ask, heard, started
from tests.locks.items import taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_a_holder_that_was_stopped_has_lost_its_lease_and_its_late_write_is_refused(
    tmp_path: Path,
) -> None:
    resource = tmp_path / "resource"
    with started("hold", "a", 1) as [stopped]:
        fence = int(heard(stopped))
        assert ask(stopped, f"write {resource} 1") == "fine"

        stopped.send_signal(signal.SIGSTOP)
        began = now()
        lease = taken("a", poll_seconds=0.05, wait_seconds=60)
        assert now() - began >= 1
        FencedFile(resource).write(lease.fence, 2)
        stopped.send_signal(signal.SIGCONT)

        assert ask(stopped, f"write {resource} 3") == "StaleFence"
        assert ask(stopped, "check") == "LeaseLost"
        assert lease.fence > fence
        lease.renew()
    assert FencedFile(resource).read(lease.fence) == 2


def test_the_lock_of_a_killed_process_is_acquired_one_lease_after_the_first_look() -> None:
    lease_seconds = 1.5
    with started("hold", "a", lease_seconds) as [holder]:
        heard(holder)
        # It has renewed its lease by then.
        time.sleep(lease_seconds)
        holder.kill()
        holder.wait()
        began = now()

        lease = taken("a", poll_seconds=0.05, wait_seconds=60)

    assert now() - began >= lease_seconds
    lease.check()


def test_fifty_waiters_cost_one_read_per_poll_each(
    requests_sent: Requests,
) -> None:
    waiters, poll_seconds, seconds = 50, 0.5, 3
    holder = taken("a", lease_seconds=600)
    requests_sent.clear()
    began = now()

    def wait(_number: int) -> None:
        lock = Lock("a", poll_seconds=poll_seconds, wait_seconds=seconds, lease_seconds=600)
        with pytest.raises(LockTaken):
            lock.acquire()

    with ThreadPoolExecutor(waiters) as pool:
        list(pool.map(wait, range(waiters)))
    took = now() - began

    sent = Counter(requests_sent.operations)
    # Each sends one write, and then reads at least half a poll apart.
    assert sent["UpdateItem"] == waiters
    most = waiters * (took / (poll_seconds / 2) + 1)
    assert sent["GetItem"] <= most
    per_waiter_and_second = sent["GetItem"] / waiters / seconds
    # One per poll on average; a slow machine reads less often, never more often.
    assert per_waiter_and_second <= 1.25 / poll_seconds
    holder.check()


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
    # The first try and the release of each, and one try for each read that found it free.
    assert sent["UpdateItem"] <= 2 * waiters + 1 + sent["GetItem"]
