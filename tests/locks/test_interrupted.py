"""A signal while a lock is being taken: what the request may have done is undone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from dynamo.signals import request_sent
from locks.lock import Lock
from tests.faults.kinds import Answer, Delay
from tests.faults.proxy import FaultProxy
from tests.locks.items import abandoned, put, stored
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


@contextmanager
def at_the_next_write(action: Callable[[], None]) -> Iterator[None]:
    """Do it once, when the next UpdateItem was answered and nobody has read the answer yet."""
    due = [action]

    def arrived(operation: str, **_signal: Any) -> None:
        if operation == "UpdateItem" and due:
            due.pop()()

    request_sent.connect(arrived)
    try:
        yield
    finally:
        request_sent.disconnect(arrived)


def leave(ending: BaseException) -> Callable[[], None]:
    def now() -> None:
        raise ending

    return now


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), SystemExit(143)], ids=["ctrl-c", "exit"])
@pytest.mark.parametrize("name", ["absent", "free"])
def test_an_interrupted_acquisition_leaves_the_lock_free(ending: BaseException, name: str) -> None:
    if name == "free":
        put(name, isReleased={"S": "1"}, fencingToken={"N": "7"})

    with at_the_next_write(leave(ending)), pytest.raises(type(ending)) as raised:
        Lock(name).acquire()

    assert raised.value is ending
    assert stored(name)["isReleased"] == {"S": "1"}
    assert Lock(name).try_acquire() is not None


def test_an_interrupted_take_over_leaves_the_lock_free() -> None:
    dead = abandoned("a", lease_seconds=0.3)

    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        Lock("a")._take(over=dead.taken)

    assert stored("a")["isReleased"] == {"S": "1"}
    assert stored("a")["fencingToken"] == {"N": str(dead.fence + 1)}


def test_an_interrupted_try_does_not_free_anothers_lock() -> None:
    holder = Lock("a").acquire()

    with at_the_next_write(leave(KeyboardInterrupt())), pytest.raises(KeyboardInterrupt):
        Lock("a").try_acquire()

    holder.renew()


def test_an_interrupted_acquisition_tries_to_release_once_and_still_ends(
    proxy: FaultProxy,
) -> None:
    def nobody_answers() -> None:
        proxy.plan("UpdateItem", Answer(500, "InternalServerError"), times=10_000)
        raise KeyboardInterrupt

    with at_the_next_write(nobody_answers), pytest.raises(KeyboardInterrupt):
        Lock("a").acquire()

    assert proxy.count("UpdateItem") == 2


def test_a_signal_that_comes_before_the_reply_leaves_the_lock_free(proxy: FaultProxy) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(143)

    def takes(body: dict[str, Any]) -> bool:
        return ":clock" in body["ExpressionAttributeValues"]

    def send_it_when_the_work_is_done() -> None:
        wait_until(lambda: stored("a"))
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, end)
    proxy.plan("UpdateItem", Delay(20), when=takes)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send_it_when_the_work_is_done)
            with pytest.raises(SystemExit):
                Lock("a").acquire()
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert stored("a")["isReleased"] == {"S": "1"}
