"""What belongs to one process: objects made once, and calls in daemon threads.

A forked child has neither the threads nor the sockets of its parent, so it makes its own.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

#: How many threads of one `Background` can hang at the same time.
MOST_THREADS = 4

Made = TypeVar("Made")
Value = TypeVar("Value")


_callbacks: list[Callable[[], object]] = []


def on_new_process(callback: Callable[[], object]) -> None:
    """Call `callback` in every forked child, and in every process restored from a snapshot."""
    os.register_at_fork(after_in_child=callback)
    _callbacks.append(callback)


def begin_process() -> None:
    """Forget what this process drew and made: for a process that is restored from a snapshot.

    AWS Lambda's SnapStart restores many processes from one. As after a fork, no two may use the
    same connections, random values and remembered numbers.
    """
    for callback in _callbacks:
        callback()


class PerProcess(Generic[Made]):
    """Calling it returns what `make` returned (never None), made on first use. Thread-safe."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: Made | None = None
        self._lock = threading.Lock()
        # The object may hold sockets, and at a fork another thread may hold the lock.
        on_new_process(self.reset)

    def __call__(self) -> Made:
        """The object of this process; only the first use takes a lock."""
        made = self._made
        if made is None:
            with self._lock:
                made = self._made
                if made is None:
                    made = self._made = self._make()
        return made

    def made(self) -> Made | None:
        """The object of this process, if it was made."""
        return self._made

    def reset(self) -> None:
        """Forget the object; the next use makes a new one."""
        self._made = None
        self._lock = threading.Lock()


class Background(Generic[Value]):
    """Makes `call`, which may hang, in a daemon thread and keeps its result. Thread-safe.

    Callers wait only as long as they can afford: neither a credential provider nor the system's
    name resolution obeys a time-out.

    One call is under way at a time. A call that has not ended after `stuck_seconds` no longer
    counts: the next `start` makes another one in a new thread, until `MOST_THREADS` threads hang.

    Make one per process, and another one in a forked child.
    """

    def __init__(self, name: str, call: Callable[[], Value], *, stuck_seconds: float) -> None:
        self._name = name
        self._call = call
        self._stuck_seconds = stuck_seconds
        self._changed = threading.Condition()
        self._threads = 0
        #: When the current call began; None if there is none.
        self._began_at: float | None = None
        #: How many calls have ended, and when the last one did (`time.monotonic()`).
        self.ended = 0
        self.ended_at = -math.inf
        #: What the last successful call returned, and when.
        self.value: Value | None = None
        self.value_at = 0.0
        #: What the last call raised; None if it succeeded.
        self.error: Exception | None = None

    def start(self) -> None:
        """Make a call now, unless one is under way."""
        with self._changed:
            if self._began_at is not None and not self._is_stuck():
                return
            thread = threading.Thread(target=self._make, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self.error = error  # the system cannot start a thread now
                return
            # The new thread waits for the lock that is held here.
            self._began_at = time.monotonic()
            self._threads += 1

    def _is_stuck(self) -> bool:
        if self.seconds_under_way < self._stuck_seconds or self._threads >= MOST_THREADS:
            return False
        log.warning("%s: no result after %.0f s; trying again.", self._name, self.seconds_under_way)
        return True

    @property
    def seconds_under_way(self) -> float:
        """For how long the current call has been under way; 0 if there is none."""
        began_at = self._began_at
        return 0.0 if began_at is None else time.monotonic() - began_at

    def wait(self, ended: int, seconds: float) -> None:
        """Wait until more than `ended` calls have ended, for at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self.ended > ended, max(0.0, seconds))

    def _make(self) -> None:
        with self._changed:
            began_at = self._began_at
        value, failure = None, None
        try:
            value = self._call()
        except Exception as error:  # the top of a thread; callers get the exception as `error`
            failure = error
        with self._changed:
            self._threads -= 1
            # Another call may have replaced this one, which was stuck.
            if self._began_at == began_at:
                self._began_at = None
            self.ended += 1
            self.ended_at = time.monotonic()
            self.error = failure
            if failure is None:
                self.value, self.value_at = value, self.ended_at
            self._changed.notify_all()
