"""Callers that wait for the same thing while a request is under way share the next request.

The first caller leads: it sends its request at once, alone. Callers that arrive while the request
is under way wait. When it is done, one of them leads and sends one request for all that wait, and
so on. There is no thread and no timer. Without load, it costs nothing. Under load, more callers
share a request.

At any time a caller of a key is in one of these places:

place      where it is                        who moves it, and when
waiting    in `_Queue.waiting`                itself, when it arrives while another caller leads
leading    `_Queue.leader`                    itself, if no other leads; or the leader that leaves
gathered   in the leader's request            the leader, before each request
away       nowhere                            itself, when it is decided or its deadline passed

After each request, the leader moves the gathered callers. Those that the request decided wake and
leave. The others return to the front of the queue. A leader leads until it is decided itself, and
then hands over to the first waiting caller.

All these moves are methods of `_Queue`, and are made with the combiner's lock held. Outside the
lock, a caller sleeps or a leader sends.

Databases call this group commit: DeWitt et al., "Implementation Techniques for Main Memory Database
Systems", SIGMOD 1984.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from django.utils.asyncio import async_unsafe

from dynamo.client.tally import current
from dynamo.exceptions import Unavailable
from dynamo.runtime.deadline import operation_ends_at, within
from dynamo.runtime.processes import on_new_process

Key = TypeVar("Key", bound=Hashable)
Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


@dataclass(eq=False)
class Caller(Generic[Ask, Answer]):
    """One caller: its question, and its answer or error after it is decided."""

    ask: Ask
    ends_at: float
    is_decided: bool = False
    _outcome: Answer | Exception | None = None
    #: Whether a request was sent for this caller, or may be sent at any moment.
    is_sent: bool = False
    #: Whether the caller has stopped waiting, so that no more requests are sent for it.
    has_left: bool = False
    #: This lock is held while `is_sent` or `has_left` is set depending on the other one.
    _marking: threading.Lock = field(default_factory=threading.Lock)
    #: This lock is held while the caller waits. Each caller has its own, so that only callers with
    #: work wake up.
    _sleep: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._sleep.acquire()

    def mark_sent(self) -> bool:
        """Call this before a request for the caller.

        Note that it is sent, and return whether the caller still waits.

        A caller that has left was told that nothing was sent, so it must not be part of the
        request.
        """
        with self._marking:
            self.is_sent |= not self.has_left
            return not self.has_left

    def mark_left(self) -> bool:
        """Note that the caller does not wait any more; return whether a request was sent for it."""
        with self._marking:
            self.has_left = True
            return self.is_sent

    def decide(self, outcome: Answer | Exception) -> None:
        """Set the caller's answer or error. The first outcome is kept."""
        if not self.is_decided:
            self._outcome = outcome
            self.is_decided = True

    def answer(self) -> Answer:
        """Return the answer, or raise the error. Call it after the caller is decided."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return cast(Answer, self._outcome)

    def sleep(self) -> bool:
        """Wait to be woken; return False if the deadline passed first."""
        return self._sleep.acquire(timeout=max(0.0, self.ends_at - time.monotonic()))

    def wake(self) -> None:
        """Wake the caller. The combiner's lock must be held."""
        if self._sleep.locked():
            self._sleep.release()


#: A leader may wait for the reply to its last request for this time after its deadline.
OVERDUE_SECONDS = 5.0


@dataclass(eq=False)
class _Queue(Generic[Ask, Answer]):
    """The callers of one key. Call its methods with the combiner's lock held."""

    leader: Caller[Ask, Answer] | None = None
    waiting: deque[Caller[Ask, Answer]] = field(default_factory=deque)

    def join(self, caller: Caller[Ask, Answer]) -> bool:
        """Make the caller lead if no other does, and wait otherwise; return whether it leads.

        A leader that is long overdue ended without handing over, so it is replaced.
        """
        leader = self.leader
        if leader is not None and time.monotonic() < leader.ends_at + OVERDUE_SECONDS:
            self.waiting.append(caller)
            return False
        self.leader = caller
        return True

    def gather(self) -> list[Caller[Ask, Answer]]:
        """Remove and return the waiting callers, for a request that the leader sends."""
        gathered = list(self.waiting)
        self.waiting.clear()
        return gathered

    def settle(self, gathered: list[Caller[Ask, Answer]]) -> None:
        """After the request, wake the decided callers. The others come first in the next one."""
        for caller in gathered:
            if caller.is_decided:
                caller.wake()
        self.waiting.extendleft(
            caller for caller in reversed(gathered) if not (caller.is_decided or caller.has_left)
        )

    def leave(self, caller: Caller[Ask, Answer]) -> None:
        """Remove the caller from the queue or the group. A leader hands over to the next caller."""
        if caller in self.waiting:
            self.waiting.remove(caller)
        if self.leader is caller:
            self.leader = self.waiting.popleft() if self.waiting else None
            if self.leader is not None:
                self.leader.wake()


class Combiner(Generic[Key, Ask, Answer]):
    """Lets callers of a key share requests. Make one for the life of the process.

    `send(key, callers)` sends a request for as many of `callers` as fit, from the front, and calls
    `decide` of each caller whose outcome is then known. Before it sends, it must leave out those
    whose `mark_sent` is False. The other callers share a later request with those that arrive in
    the meantime. It runs in the thread and under the deadline of one caller, the leader, and is
    repeated until the leader is decided. Only the leader gets an exception that it raises. The next
    leader sends for the others, so it may be called again for a question that was answered.

    `prepare(key)` is called before each request. It may wait; callers that arrive in the meantime
    join.
    """

    def __init__(
        self,
        send: Callable[[Key, list[Caller[Ask, Answer]]], None],
        prepare: Callable[[Key], None] = lambda _key: None,
    ) -> None:
        self._send = send
        self._prepare = prepare
        self._begin()
        on_new_process(self._begin)

    def _begin(self) -> None:
        # The threads that wait here do not exist in a forked child.
        self._lock = threading.Lock()
        self._queues: dict[Key, _Queue[Ask, Answer]] = {}

    # This is refused in an event loop, which would wait for the request of another thread.
    @async_unsafe
    def __call__(self, key: Key, ask: Ask) -> Answer:
        """Return the answer to `ask`.

        Raises:
            Unavailable: the deadline of the operation passed while the caller waited.
            Exception: the error that `send` set for this caller, or raised while it led.
        """
        caller: Caller[Ask, Answer] = Caller(ask, operation_ends_at())
        try:
            with self._lock:
                queue = self._queues.setdefault(key, _Queue())
                must_lead = queue.join(caller)
            if must_lead or self._wait(queue, caller):
                self._lead(key, queue, caller)
            elif (tally := current()) is not None:
                tally.note_joined()
        finally:
            self._leave(key, caller)
        return caller.answer()

    def _wait(self, queue: _Queue[Ask, Answer], caller: Caller[Ask, Answer]) -> bool:
        """Wait until the caller is decided, or must lead; return whether it must."""
        while True:
            in_time = caller.sleep()
            with self._lock:
                if caller.is_decided:
                    return False
                if queue.leader is caller:
                    return True
            if not in_time:
                is_sent = caller.mark_left()
                raise Unavailable("a combined request", "no turn in time", maybe_written=is_sent)

    def _lead(self, key: Key, queue: _Queue[Ask, Answer], leader: Caller[Ask, Answer]) -> None:
        """Send requests until the leader is decided."""
        with within(leader.ends_at - time.monotonic()):
            while not leader.is_decided:
                self._prepare(key)
                with self._lock:
                    gathered = queue.gather()
                try:
                    self._send(key, [leader, *gathered])
                except Exception:
                    # The failed request may already have decided the leader.
                    if not leader.is_decided:
                        raise
                finally:
                    with self._lock:
                        queue.settle(gathered)

    def _leave(self, key: Key, caller: Caller[Ask, Answer]) -> None:
        caller.mark_left()
        with self._lock:
            # The queue is looked up again, because a child that was forked during the call has no
            # queues.
            queue = self._queues.get(key)
            if queue is not None:
                queue.leave(caller)
                if queue.leader is None:
                    del self._queues[key]
