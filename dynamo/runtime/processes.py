"""Objects that each process makes once, and calls in daemon threads.

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

#: The most threads of one `Background` that can hang at the same time.
MOST_THREADS = 4

Made = TypeVar("Made")
Value = TypeVar("Value")


_callbacks: list[Callable[[], object]] = []


def on_new_process(callback: Callable[[], object]) -> None:
    """Call `callback` in every forked child, and in every process restored from a snapshot."""
    os.register_at_fork(after_in_child=callback)
    _callbacks.append(callback)


def begin_process() -> None:
    """Forget the objects and random values of this process, after it was restored from a snapshot.

    AWS Lambda's SnapStart restores many processes from one. As after a fork, two processes must not
    use the same connections, random values or cached numbers.
    """
    for callback in _callbacks:
        callback()


class PerProcess(Generic[Made]):
    """An object that `make` creates on first use (never None). Thread-safe."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: Made | None = None
        self._lock = threading.Lock()
        # The child needs its own object and lock: the object may hold sockets, and at the fork
        # another thread may hold the lock.
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

    Callers choose how long they wait. This is needed because neither a credential provider nor the
    system's name resolution obeys a time-out.

    One call is in progress at a time. A call that has not ended after `stuck_seconds` no longer
    counts. In this case, the next `start` makes another call in a new thread, until `MOST_THREADS`
    threads hang.

    Make one per process, and another one in a forked child.
    """

    def __init__(self, name: str, call: Callable[[], Value], *, stuck_seconds: float) -> None:
        self._name = name
        self._call = call
        self._stuck_seconds = stuck_seconds
        self._changed = threading.Condition()
        self._threads = 0
        #: The start time of the current call; None if there is none.
        self._began_at: float | None = None
        #: The number of calls that have ended, and the time of the last end (`time.monotonic()`).
        self.ended = 0
        self.ended_at = -math.inf
        #: The result and the time of the last successful call.
        self.value: Value | None = None
        self.value_at = 0.0
        #: The error of the last call; None if it succeeded.
        self.error: Exception | None = None

    def start(self) -> None:
        """Make a call now, unless one is in progress."""
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
        """The duration of the current call until now; 0 if there is none."""
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
        except (
            Exception
        ) as error:  # the outermost call of a thread; callers get the exception as `error`
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
