"""Callers that wait for the same thing while a request is under way share the next request.

The first caller leads: it sends its request at once, alone. Callers that arrive while the request
is under way wait. When it is done, one of them leads and sends one request for all that wait, and
so on. There is no thread and no timer. Without load it costs nothing; under load, the more callers
wait, the more of them share a request.

Known from databases as group commit: DeWitt et al., "Implementation Techniques for Main Memory
Database Systems", SIGMOD 1984.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from django.utils.asyncio import async_unsafe

from dynamo._internal.client.deadline import operation_ends_at, within
from dynamo._internal.processes import on_new_process
from dynamo._internal.tally import current
from dynamo.exceptions import Unavailable

Key = TypeVar("Key", bound=Hashable)
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Caller(Generic[Ask, Answer]):
    """One caller: what it asks, and its answer or error once it is served."""

    ask: Ask
    ends_at: float
    is_tried: bool = False
    is_served: bool = False
    has_left: bool = False
    _outcome: Answer | Exception | None = None
    #: Held while the caller waits. Each has its own, so that only callers with work wake up.
    _sleep: threading.Lock = field(default_factory=_held_lock)

    def is_here(self) -> bool:
        """Whether the caller still waits. If so, a request may be sent for it from now on.

        A caller that gives up at its deadline sets `has_left` and then reads `is_tried`; this
        method sets and reads them in the other order. So no request is sent for a caller that was
        told that nothing was.
        """
        self.is_tried = True
        return not self.has_left

    def serve(self, outcome: Answer | Exception) -> None:
        """Set the caller's answer, or an error of its own. The first outcome stays."""
        if not self.is_served:
            self._outcome = outcome
            self.is_served = True

    def answer(self) -> Answer:
        """Return the answer, or raise the error. Call it once the caller is served."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome  # type: ignore[return-value]  # set by `serve`

    def sleep(self) -> bool:
        """Wait to be woken; return False if the deadline passed first."""
        return self._sleep.acquire(timeout=max(0.0, self.ends_at - time.monotonic()))

    def wake(self) -> None:
        """Wake the caller. The combiner's lock must be held."""
        if self._sleep.locked():
            self._sleep.release()


#: How long after its deadline a leader may still be waiting for the reply to its last request.
OVERDUE_SECONDS = 5.0


@dataclass(eq=False)
class _Queue(Generic[Ask, Answer]):
    """The callers of one key: the leader, and those that wait for the next request."""

    leader: Caller[Ask, Answer] | None = None
    waiting: deque[Caller[Ask, Answer]] = field(default_factory=deque)

    @property
    def is_led(self) -> bool:
        """Whether a leader is at work. One that is long overdue ended without handing over."""
        leader = self.leader
        return leader is not None and time.monotonic() < leader.ends_at + OVERDUE_SECONDS


class Combiner(Generic[Key, Ask, Answer]):
    """Serves callers of a key together. Make one for the life of the process.

    `serve(key, callers)` sends a request for as many of `callers` as fit, from the front, and calls
    `serve` of each caller that the request decides. It must ask `is_here` of each before it sends.
    The other callers share a later request with those that arrive meanwhile. It runs in the thread
    and under the deadline of one caller, the leader, and is repeated until the leader is served.
    An exception that it raises goes to the leader alone. The next leader serves the others, so it
    may be called again for an ask that was carried out.

    `prepare(key)` is called before each request. It may wait; callers that arrive meanwhile join.
    """

    def __init__(
        self,
        serve: Callable[[Key, list[Caller[Ask, Answer]]], None],
        prepare: Callable[[Key], None] | None = None,
    ) -> None:
        self._serve = serve
        self._prepare = prepare
        self._begin()
        on_new_process(self._begin)

    def _begin(self) -> None:
        # A forked child has none of the threads that wait here.
        self._lock = threading.Lock()
        self._queues: dict[Key, _Queue[Ask, Answer]] = {}

    # Else a caller in an event loop would wait there for the request of another thread.
    @async_unsafe
    def __call__(self, key: Key, ask: Ask) -> Answer:
        """Return the answer to `ask`.

        Raises:
            Unavailable: the deadline of the operation passed while the caller waited.
            Exception: the error that `serve` set for this caller, or raised while it led.
        """
        caller: Caller[Ask, Answer] = Caller(ask, operation_ends_at())
        try:
            queue = self._queue_to_lead(key, caller)
            if queue is not None:
                self._lead(key, queue, caller)
            elif (tally := current()) is not None:
                tally.note_joined()
        except Exception:
            # The request that failed may have decided this caller before.
            if not caller.is_served:
                raise
        finally:
            self._leave(key, caller)
        return caller.answer()

    def _queue_to_lead(self, key: Key, caller: Caller[Ask, Answer]) -> _Queue[Ask, Answer] | None:
        """Wait until the caller is served; return None then, or its queue if it must lead."""
        with self._lock:
            queue = self._queues.setdefault(key, _Queue())
            if not queue.is_led:
                queue.leader = caller
                return queue
            queue.waiting.append(caller)
        while True:
            in_time = caller.sleep()
            with self._lock:
                if caller.is_served:
                    return None
                if queue.leader is caller:
                    return queue
                if not in_time:
                    caller.has_left = True
                    raise Unavailable(
                        "a combined request", "no turn in time", maybe_written=caller.is_tried
                    )

    def _lead(self, key: Key, queue: _Queue[Ask, Answer], leader: Caller[Ask, Answer]) -> None:
        with within(leader.ends_at - time.monotonic()):
            while not leader.is_served:
                if self._prepare is not None:
                    self._prepare(key)
                with self._lock:
                    callers = [leader, *queue.waiting]
                    queue.waiting.clear()
                try:
                    self._serve(key, callers)
                finally:
                    self._put_back(queue, callers[1:])

    def _put_back(self, queue: _Queue[Ask, Answer], followers: list[Caller[Ask, Answer]]) -> None:
        """Wake the followers that are served. The others come first in the next request."""
        with self._lock:
            unserved = []
            for follower in followers:
                if follower.is_served:
                    follower.wake()
                elif not follower.has_left:
                    unserved.append(follower)
            queue.waiting.extendleft(reversed(unserved))

    def _leave(self, key: Key, caller: Caller[Ask, Answer]) -> None:
        """Take the caller out. A leader hands over to the first caller that waits."""
        with self._lock:
            caller.has_left = True
            queue = self._queues.get(key)
            if queue is None:
                return
            if caller in queue.waiting:
                queue.waiting.remove(caller)
            if queue.leader is caller:
                queue.leader = queue.waiting.popleft() if queue.waiting else None
                if queue.leader is not None:
                    queue.leader.wake()
                else:
                    del self._queues[key]
