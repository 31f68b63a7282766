"""Callers who wait for the same thing while a request is under way are served by the next one.

The first caller sends its request at once, alone. Whoever comes while that is under way waits;
when it is done the first of them sends one request for all who wait, and so on. There is no thread
and no timer to gather callers, and nobody waits for company: under no load it costs nothing, and
the more callers there are the more of them share a request.

A group may be prepared: where there is something to wait for before it is sent (another process,
whose turn it is), the one who sends waits for it, and whoever comes meanwhile joins the group.

Known from databases as group commit: DeWitt et al., "Implementation Techniques for Main Memory
Database Systems", SIGMOD 1984.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, Literal, TypeVar

from dynamo.deadline import operation_ends_at, within
from dynamo.exceptions import Unavailable
from dynamo.tally import current


class _Word(Enum):
    AGAIN = "serve this one again"


Again = Literal[_Word.AGAIN]
AGAIN: Final = _Word.AGAIN
"""What came of an ask of which nothing came yet: it is in the next group, with who came since."""

Key = TypeVar("Key", bound=Hashable)
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


def _held() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class _Caller(Generic[Ask, Answer]):
    """One caller: what it asks, until when it waits, and what came of it.

    `tried` says that some request was sent for it, so that it may be carried out.
    """

    ask: Ask
    ends_at: float
    # A bare lock, as an Event that Ctrl-C meets while it is waited for can stay locked inside.
    sleep: threading.Lock = field(default_factory=_held)
    tried: bool = False
    served: bool = False
    outcome: Answer | Exception | None = None

    def sleep_until_woken(self) -> bool:
        """Whether it was woken before its deadline."""
        return self.sleep.acquire(timeout=max(0.0, self.ends_at - time.monotonic()))

    def wake(self) -> None:
        """Wake it, or let its next sleep end at once. Only under the combiner's lock."""
        if self.sleep.locked():
            self.sleep.release()


@dataclass(frozen=True, eq=False)
class _Queue(Generic[Ask, Answer]):
    """The callers of one key: who sends, for whom besides itself, and who waits for the next turn.

    It is never changed, only replaced, in a single assignment: an exception that arrives from
    outside between two instructions (Ctrl-C) finds one leader, never none and never two.
    """

    leader: _Caller[Ask, Answer]
    followers: tuple[_Caller[Ask, Answer], ...] = ()
    waiting: tuple[_Caller[Ask, Answer], ...] = ()


class Combiner(Generic[Key, Ask, Answer]):
    """Serves callers together, by key. Made once, for the life of the process.

    `serve(key, asks)` sends for all of `asks` and returns an outcome for each, in their order: its
    answer, the error that it alone gets, or `AGAIN`. It runs in the thread and under the deadline
    of the one caller who sends, and what it raises concerns that one: the others are served again,
    by the next of them. So it may be called again for an ask whose first request was carried out.

    `fits(asks)` says how many of `asks`, from the front, go into one request (at least one). It
    must be quick, and not wait: others wait for it.

    `prepare(key)`, where it is given, is called by the one who sends before it gathers the others,
    under its deadline: whoever comes while it waits shares the request. What it raises counts as
    raised by `serve`.
    """

    def __init__(
        self,
        serve: Callable[[Key, list[Ask]], Sequence[Answer | Exception | Again]],
        fits: Callable[[list[Ask]], int] = len,
        prepare: Callable[[Key], None] | None = None,
    ) -> None:
        self._serve = serve
        self._fits = fits
        self._prepare = prepare
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        # Also in a forked child: whoever was waiting there is a thread that the child has not.
        self._lock = threading.Lock()
        self._queues: dict[Key, _Queue[Ask, Answer]] = {}

    def __call__(self, key: Key, ask: Ask) -> Answer:
        """What comes of `ask`.

        Raises:
            Unavailable: nobody's request came back before this caller's deadline.
            Exception: the outcome that `serve` gave for `ask`, or what it raised.
        """
        caller: _Caller[Ask, Answer] = _Caller(ask, operation_ends_at())
        try:
            if self._enter(key, caller) or self._wait(key, caller):
                self._send(key, caller)
                self._leave(key, caller)
            elif (tally := current()) is not None:
                tally.note_joined()
        except BaseException:
            # Harmless where it had left already, and right where it had only begun to.
            self._leave(key, caller)
            raise
        if isinstance(caller.outcome, Exception):
            raise caller.outcome
        return caller.outcome  # type: ignore[return-value]  # set by whoever sent

    def _enter(self, key: Key, caller: _Caller[Ask, Answer]) -> bool:
        """Join the queue; true where nobody is sending and the caller does it at once."""
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                self._queues[key] = _Queue(caller)
            else:
                waiting = (*queue.waiting, caller)
                self._queues[key] = _Queue(queue.leader, queue.followers, waiting)
            return queue is None

    def _wait(self, key: Key, caller: _Caller[Ask, Answer]) -> bool:
        """Wait to be served; true where instead it is the caller's turn to send."""
        while True:
            in_time = caller.sleep_until_woken()
            with self._lock:
                if caller.served:
                    return False
                queue = self._queues[key]
                if queue.leader is caller:
                    return True
                if not in_time:
                    # Still under the lock: what it is told of `tried` must stay so.
                    self._queues[key] = _without(caller, queue)
                    raise Unavailable(
                        "a combined request", "waited in vain", maybe_written=caller.tried
                    )
            # Woken without a reason, as its waker was interrupted: it waits on.

    def _send(self, key: Key, leader: _Caller[Ask, Answer]) -> None:
        with within(leader.ends_at - time.monotonic()):
            while not leader.served:
                if self._prepare is not None:
                    self._prepare(key)
                group = self._group(key, leader)
                outcomes = self._serve(key, [caller.ask for caller in group])
                for caller, outcome in zip(group, outcomes, strict=True):
                    if outcome is not AGAIN:
                        caller.outcome = outcome
                        caller.served = True

    def _group(self, key: Key, leader: _Caller[Ask, Answer]) -> list[_Caller[Ask, Answer]]:
        """The leader, and as many of those who wait as fit; who was served meanwhile goes."""
        with self._lock:
            queue = self._queues[key]
            waiting = (*_unserved(queue), *queue.waiting)
            crowd = [leader, *waiting]
            size = max(1, self._fits([caller.ask for caller in crowd])) if waiting else 1
            group = crowd[:size]
            for caller in group:
                caller.tried = True
            self._queues[key] = _Queue(leader, tuple(group[1:]), tuple(crowd[size:]))
            return group

    def _leave(self, key: Key, caller: _Caller[Ask, Answer]) -> None:
        """Take the caller out, and with it the duty to send. Called twice it does no more."""
        with self._lock:
            queue = self._queues.get(key)
            if queue is None:
                return
            if queue.leader is caller:
                self._hand_over(key, queue)
            else:
                self._queues[key] = _without(caller, queue)

    def _hand_over(self, key: Key, queue: _Queue[Ask, Answer]) -> None:
        """Wake those whom the leader served, and let the next one lead; the others go first."""
        waiting = (*_unserved(queue), *queue.waiting)
        if waiting:
            # Woken first: it looks only under the lock, and by then it leads.
            waiting[0].wake()
            self._queues[key] = _Queue(waiting[0], (), waiting[1:])
        else:
            del self._queues[key]


def _unserved(queue: _Queue[Ask, Answer]) -> list[_Caller[Ask, Answer]]:
    """Those followers for whom nothing came of the last request; the others are woken."""
    for follower in queue.followers:
        if follower.served:
            follower.wake()
    return [follower for follower in queue.followers if not follower.served]


def _without(caller: _Caller[Ask, Answer], queue: _Queue[Ask, Answer]) -> _Queue[Ask, Answer]:
    return _Queue(
        queue.leader,
        tuple(other for other in queue.followers if other is not caller),
        tuple(other for other in queue.waiting if other is not caller),
    )
