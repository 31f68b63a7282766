"""Locks of the tasks of an event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynamo.runtime import threads
from dynamo.runtime.processes import PerProcess
from locks import Lock, LockTaken
from locks.leases import _of_process
from tests.faults.proxy import FaultProxy
from tests.locks.items import stored, taken
from tests.requests import Requests
from tests.tasks import cancel_during
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


def is_released(name: str) -> bool:
    return "isReleased" in stored(name)


def test_of_many_waiting_tasks_one_at_a_time_has_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    # More than the pool has threads, so waiters in threads would keep the holder from releasing.
    monkeypatch.setattr(threads, "_pool", PerProcess(lambda: ThreadPoolExecutor(4)))
    inside: list[int] = []
    fences: list[int] = []
    lock = Lock("a", wait_seconds=600, poll_seconds=0.05)

    async def work(number: int) -> None:
        async with lock as lease:
            inside.append(number)
            assert inside == [number]
            lease.check()
            fences.append(lease.fence)
            await asyncio.sleep(0)
            inside.remove(number)

    async def work_all() -> None:
        await asyncio.gather(*map(work, range(16)))

    asyncio.run(work_all())

    assert fences == sorted(set(fences))
    assert len(fences) == 16
    assert is_released("a")


@pytest.mark.parametrize(
    ("wait_seconds", "patience_seconds", "error"), [(0, 60, LockTaken), (600, 0.5, TimeoutError)]
)
def test_a_task_that_stops_waiting_for_a_lock_sent_one_write(
    requests_sent: Requests, wait_seconds: float, patience_seconds: float, error: type[Exception]
) -> None:
    taken("a")
    requests_sent.clear()

    async def wait() -> None:
        async with (
            asyncio.timeout(patience_seconds),
            Lock("a", wait_seconds=wait_seconds, poll_seconds=600),
        ):
            pass

    with pytest.raises(error):
        asyncio.run(wait())
    assert requests_sent.operations.count("UpdateItem") == 1


def test_a_lock_that_was_acquired_for_a_cancelled_task_is_released(proxy: FaultProxy) -> None:
    async def enter() -> None:
        async with Lock("a"):
            raise AssertionError("the task was cancelled before")

    asyncio.run(cancel_during(proxy, "UpdateItem", enter()))

    wait_until(lambda: is_released("a"))
    wait_until(lambda: not _of_process()._due)


@pytest.mark.parametrize("when", ["in the block", "while it releases"])
def test_a_cancelled_task_releases_its_lock(when: str) -> None:
    async def hold(entered: asyncio.Event) -> None:
        async with Lock("a"):
            entered.set()
            if when == "in the block":
                await asyncio.Future()

    async def cancel() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(hold(entered))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    wait_until(lambda: is_released("a"))
