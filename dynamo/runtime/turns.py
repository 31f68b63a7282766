"""Turns: a process makes a few pages at once, if a middleware says so by `in_turn`.

A page that waits for something scarce passes its turn on. Otherwise a crowd of such pages would
hold all turns, and pages that do not need it would wait as well. What takes a core for long is
computed in threads of its own or in another process, so that crowds do not take the cores
from other pages either.

A turn is not a place at a `Gate`. A gate shares its places among keys, and to do so it wakes
everything that waits whenever one leaves. Pages are all alike and many wait, so they have a
semaphore, which wakes one. And a page that passed its turn on may go on without another one.
"""

import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from dynamo.exceptions import Busy
from dynamo.runtime.deadline import page_seconds_left

#: The niceness (nice(2)) of `threads_after_pages`, above that of threads that make pages.
NICENESS = 10


class TooManyPages(Busy):
    """The process is making as many pages as it may, and this one did not get its turn."""

    operation: str = "a page"


class _Turn:
    """One page's turn."""

    def __init__(self, turns: threading.Semaphore) -> None:
        self._turns = turns
        self.is_held = False

    def take(self, *, waits: bool = True) -> None:
        self.is_held = self._turns.acquire(waits, page_seconds_left() if waits else None)
        if waits and not self.is_held:
            raise TooManyPages

    def end(self) -> None:
        # A page that passed its turn on may not have got another one.
        if self.is_held:
            self.is_held = False
            self._turns.release()


_turn: ContextVar[_Turn | None] = ContextVar("turn", default=None)


@contextmanager
def in_turn(turns: threading.Semaphore) -> Iterator[None]:
    """Run the body, a page, in one of `turns`.

    Raises:
        TooManyPages: none was free before the page's deadline.
    """
    turn = _Turn(turns)
    turn.take()
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)
        turn.end()


@contextmanager
def turn_passed_on(*, waits_after: bool = True) -> Iterator[None]:
    """Let another page have this one's turn while the body waits; then wait for a turn again.

    Without `waits_after` the page goes on in any case, with a turn if one is free. This is for a
    body that cannot be undone, after which a 503 would be wrong.

    Do not hold a lock meanwhile: the other page may need it. Does nothing outside a page, and in
    the body of another call.

    Raises:
        TooManyPages: after the body, none was free before the page's deadline.
    """
    turn = _turn.get()
    if turn is None or not turn.is_held:
        yield
        return
    turn.end()
    try:
        yield
    finally:
        turn.take(waits=waits_after)


def threads_after_pages(count: int, name: str) -> ThreadPoolExecutor:
    """Threads to compute in. On Linux the system prefers those that make pages."""
    return ThreadPoolExecutor(count, thread_name_prefix=name, initializer=let_pages_go_first)


def let_pages_go_first() -> None:
    """Let the system prefer other threads to this one and those that it starts, on Linux."""
    # Elsewhere it would be the whole process; a sandbox may forbid it.
    if sys.platform == "linux":
        with suppress(OSError):
            os.nice(NICENESS)
