"""What a process makes once: by many threads, over a fork, and after a reset."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from dynamo.processes import PerProcess
from tests.forked import in_a_child


def numbers() -> PerProcess[int]:
    """Makes 0, then 1, and so on."""
    return PerProcess(count().__next__)


def test_nothing_is_made_before_the_first_use() -> None:
    made: list[str] = []
    PerProcess(lambda: made.append("made"))

    assert made == []


def test_it_is_made_once_also_where_it_counts_as_false() -> None:
    number = numbers()

    assert [number(), number(), number()] == [0, 0, 0]


def test_threads_that_start_at_once_share_one(at_once: Callable[..., list[Any]]) -> None:
    calls = count()
    all_there = threading.Barrier(8)
    second_call = threading.Event()

    def make() -> int:
        call = next(calls)
        if call:
            second_call.set()
        # As long as another thread could be making one as well.
        second_call.wait(0.2)
        return call

    shared = PerProcess(make)

    def first_use(_n: int) -> int:
        all_there.wait()
        return shared()

    assert at_once(first_use) == [0] * 8


def test_what_could_not_be_made_is_made_by_the_next_use() -> None:
    calls = count()

    def make() -> int:
        call = next(calls)
        if not call:
            raise OSError("no answer")
        return call

    shared = PerProcess(make)
    with pytest.raises(OSError, match="no answer"):
        shared()

    assert shared() == 1


def test_after_a_reset_the_next_use_makes_another() -> None:
    number = numbers()
    number()

    number.reset()

    assert [number(), number()] == [1, 1]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_makes_its_own_and_the_parent_keeps_the_first() -> None:
    maker = PerProcess(lambda: [os.getpid()])
    before = maker()

    def child() -> None:
        assert maker() == maker() == [os.getpid()]
        assert maker() is not before

    assert in_a_child(child) == 0
    assert maker() is before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_a_thread_makes_it_does_not_block_the_child() -> None:
    making, go_on = threading.Event(), threading.Event()
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
