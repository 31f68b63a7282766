"""What belongs to a process: values that are made once, and calls in background threads."""

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from dynamo.runtime.processes import MOST_THREADS, Background, PerProcess
from tests.forked import in_a_child
from tests.waiting import wait_until


def test_a_value_is_made_once_even_if_it_is_false_and_again_after_a_failure_or_a_reset() -> None:
    calls = count(-1)

    def make() -> int:
        call = next(calls)
        if call < 0:
            raise OSError("no answer")
        return call

    number = PerProcess(make)
    with pytest.raises(OSError, match="no answer"):
        number()

    assert [number(), number(), number()] == [0, 0, 0]
    number.reset()
    assert [number(), number()] == [1, 1]


def test_concurrent_threads_share_a_value(at_once: Callable[..., list[Any]]) -> None:
    calls = count()
    all_there = threading.Barrier(8)
    second_call = threading.Event()

    def make() -> int:
        call = next(calls)
        if call:
            second_call.set()
        # Long enough for another thread to make a second one.
        second_call.wait(0.2)
        return call

    shared = PerProcess(make)

    def first_use(_n: int) -> int:
        all_there.wait()
        return shared()

    assert at_once(first_use) == [0] * 8


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_thread_makes_the_value_does_not_block_the_child() -> None:
    making = threading.Event()
    go_on = threading.Event()
    parent = os.getpid()

    def make() -> int:
        if os.getpid() == parent:
            making.set()
            go_on.wait(120)
        return os.getpid()

    shared = PerProcess(make)
    maker = threading.Thread(target=shared)
    maker.start()
    making.wait(120)

    def child() -> None:
        assert shared() == os.getpid()

    try:
        assert in_a_child(child) == 0
    finally:
        go_on.set()
        maker.join()
    assert shared() == parent


# Background threads -------------------------------------------------------------------------------


def test_calls_that_hang_are_replaced_up_to_a_limit_of_threads() -> None:
    may_end = threading.Event()
    begun = threading.Semaphore(0)

    def hang() -> str:
        begun.release()
        may_end.wait(120)
        return "an answer"

    hangs = Background("hanging", hang, stuck_seconds=0)
    for _number in range(MOST_THREADS):
        hangs.start()
        assert begun.acquire(timeout=60)
    for _number in range(50):
        hangs.start()
    threads = [item for item in threading.enumerate() if item.name == "hanging"]
    may_end.set()
    wait_until(lambda: hangs.ended == MOST_THREADS)

    assert len(threads) == MOST_THREADS
    assert hangs.value == "an answer"
    wait_until(lambda: not any(thread.is_alive() for thread in threads))
