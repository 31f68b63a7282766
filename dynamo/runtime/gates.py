"""Turns and gates limit how many pages or calls of a process do something at the same time.

If a middleware uses `in_turn`, a process makes only a few pages at the same time. A page that waits
for a scarce resource passes its turn on. Otherwise, many such pages would hold all turns, and pages
that do not need the resource would wait as well. Long computations run in separate threads or in
another process, so that they do not take the cores from other pages either.

A `Gate` limits how many callers use a scarce resource at once. It shares its places among keys. To
do so, it wakes all waiting callers whenever one leaves. Turns are different: all pages are alike
and many wait, so they have a semaphore, which wakes one. Moreover, a page that passed its turn on
may continue without a new one.
"""

import os
import sys
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import count

from dynamo.exceptions import Busy
from dynamo.runtime.deadline import page_seconds_left

#: The niceness (nice(2)) of threads that compute, above that of threads that make pages.
NICENESS = 10


class TooManyPages(Busy):
    """The process makes as many pages as it may, and this page got no turn in time."""

    operation: str = "a page"


class _Turn:
    """One page's turn."""

    def __init__(self, turns: threading.Semaphore) -> None:
        self._turns = turns
        self.is_held = False

    def take(self) -> None:
        self.is_held = self._turns.acquire(timeout=page_seconds_left())
        if not self.is_held:
            raise TooManyPages

    def end(self) -> None:
        # A page that passed its turn on may have continued without a turn.
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
def turn_passed_on() -> Iterator[None]:
    """Pass this page's turn on to another page while the body waits, and then wait for a new turn.

    Do not hold a lock in the body, because the other page may need it. Does nothing outside a page,
    or inside another call.

    Raises:
        TooManyPages: after the body, no turn was free before the page's deadline.
    """
    turn = _turn.get()
    if turn is None or not turn.is_held:
        yield
        return
    turn.end()
    try:
        yield
    finally:
        turn.take()


def let_pages_go_first() -> None:
    """On Linux, let the system prefer other threads to this thread and those that it starts."""
    # On other systems it would affect the whole process. A sandbox may forbid it.
    if sys.platform == "linux":
        with suppress(OSError):
            os.nice(NICENESS)


#: The number of keys for which a gate stores when they were last admitted.
KNOWN_KEYS = 1_000


class GateFull(Busy):
    """There was no place at the gate, or it did not open in time.

    `is_own` is true if others with the same key took the places. The site then answers 429, and
    otherwise 503.
    """

    is_own: bool = False


class Place:
    """A place at a gate, for one key."""

    def __init__(self, gate: "Gate", key: Hashable) -> None:
        self._gate, self.key = gate, key
        self.is_waiting = self.is_in = False

    @contextmanager
    def inside(self, seconds: float | None = None) -> Iterator[None]:
        """Run the body when the gate admits it. A page that waits passes its turn to another page.

        Raises:
            GateFull: it was not admitted within `seconds`, or before the page's deadline.
            TooManyPages: the page did not get another turn in time.
        """
        gate = self._gate
        try:
            with gate.changed:
                self.is_waiting = True
                gate.let_in()
            if not self.is_in:
                limits = [item for item in (seconds, page_seconds_left()) if item is not None]
                with turn_passed_on(), gate.changed:
                    if not gate.changed.wait_for(lambda: self.is_in, min(limits, default=None)):
                        raise gate.full(is_own=gate.held(self.key) > 1)
            yield
        finally:
            with gate.changed:
                self.is_waiting = self.is_in = False
                gate.let_in()


class Gate:
    """Admits `at_once` at the same time, and `each` of one key. Up to `waiting` others wait.

    At most `per` of one key wait. Half of the waiting places are kept for keys that have none, so
    that a few keys cannot take all of them. The next key is the one that was admitted longest ago,
    with its oldest place. Therefore, a rare key does not wait for all places of frequent keys.
    """

    def __init__(self, name: str, at_once: int, waiting: int, *, per: int, each: int = 1) -> None:
        self._name, self._at_once, self._each = name, at_once, each
        self._places_of_each = each + per
        self._shared = at_once + waiting // 2
        self._most = at_once + waiting
        self._places: list[Place] = []
        self._last: dict[Hashable, int] = {}
        self._counter = count()
        #: This lock is held while places change.
        self.changed = threading.Condition()

    @contextmanager
    def place(self, key: Hashable) -> Iterator[Place]:
        """A place for the time of the body.

        Raises:
            GateFull: there is none.
        """
        place = Place(self, key)
        with self.changed:
            own = self.held(key)
            most = self._shared if own else self._most
            if own >= self._places_of_each or len(self._places) >= most:
                raise self.full(is_own=own > 0)
            self._places.append(place)
        try:
            yield place
        finally:
            with self.changed:
                self._places.remove(place)

    @contextmanager
    def inside(self, key: Hashable, seconds: float | None = None) -> Iterator[None]:
        """Run the body when the gate admits it; see `Place.inside`."""
        with self.place(key) as place, place.inside(seconds):
            yield

    def held(self, key: Hashable) -> int:
        """The number of places of `key`."""
        return sum(place.key == key for place in self._places)

    def full(self, *, is_own: bool) -> GateFull:
        return GateFull(self._name, is_own=is_own)

    def let_in(self) -> None:
        """Admit as many waiting places as the gate allows. The caller holds `changed`."""
        inside = Counter(place.key for place in self._places if place.is_in)
        while inside.total() < self._at_once:
            waiting = [
                place
                for place in self._places
                if place.is_waiting and not place.is_in and inside[place.key] < self._each
            ]
            if not waiting:
                break
            place = min(waiting, key=lambda place: self._last.get(place.key, -1))
            place.is_in = True
            inside[place.key] += 1
            self._last.pop(place.key, None)
            self._last[place.key] = next(self._counter)
            if len(self._last) > KNOWN_KEYS:
                del self._last[next(iter(self._last))]
        self.changed.notify_all()
