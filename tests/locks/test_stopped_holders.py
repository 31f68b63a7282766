"""A holder that is stopped, and the cost of many waiters."""

from __future__ import annotations

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynamo._internal.clock import now
from locks._internal.lock import Lock
from tests.lock_workers import ask, holding
from tests.locks.items import taken
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_a_holder_that_was_stopped_has_lost_its_lease() -> None:
    with holding("a", 1) as (stopped, fence):
        assert ask(stopped) == "held"

        stopped.send_signal(signal.SIGSTOP)
        began = now()
        lease = taken("a", poll_seconds=0.05, wait_seconds=60)
        assert now() - began >= 1
        stopped.send_signal(signal.SIGCONT)

        assert ask(stopped) == "lost"
        assert lease.fence > fence
        lease.renew()


@pytest.mark.fault_of("moto", "loses updates that meet")
def test_many_waiters_all_get_a_released_lock_at_bounded_cost(requests_sent: Requests) -> None:
    waiters, poll_seconds = 20, 0.2
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
    # Each sends one write, and then reads at least half a poll apart.
    assert sent["GetItem"] <= waiters * (took / (poll_seconds / 2) + 1)
    # The first try and the release of each, and one try for each read that found it free.
    assert sent["UpdateItem"] <= 2 * waiters + 1 + sent["GetItem"]
