"""Gates: a few at once get something scarce. Those who wait share its places, whoever asks more."""

import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import count

from dynamo.exceptions import Busy
from dynamo.runtime.deadline import page_seconds_left
from dynamo.runtime.turns import turn_passed_on

#: Of how many keys a gate knows when they were let in last.
KNOWN_KEYS = 1_000


class GateFull(Busy):
    """There was no place at the gate, or it did not open in time.

    `is_own`: because of others with the same key. The site answers 429 then, and 503 otherwise.
    """

    is_own: bool = False


class Place:
    """A place at a gate, for one key."""

    def __init__(self, gate: "Gate", key: Hashable) -> None:
        self._gate, self.key = gate, key
        self.is_waiting = self.is_in = False

    @contextmanager
    def inside(self, seconds: float | None = None) -> Iterator[None]:
        """Run the body when the gate lets it in. A page that waits passes its turn on.

        Raises:
            GateFull: it did not within `seconds` or the page's deadline.
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
    """Lets `at_once` in at the same time, and `each` of one key. `waiting` others wait.

    At most `per` of one key wait, and half of the places are kept for keys that have none. So a few
    keys cannot take them all. Next is the key that was let in longest ago, and of its places the
    oldest. So one that rarely comes does not wait for all places of those that come often.
    """

    def __init__(self, name: str, at_once: int, waiting: int, *, per: int, each: int = 1) -> None:
        self._name, self._at_once, self._each = name, at_once, each
        self._places_of_each = each + per
        self._shared = at_once + waiting // 2
        self._most = at_once + waiting
        self._places: list[Place] = []
        self._last: dict[Hashable, int] = {}
        self._counter = count()
        #: Held while places change.
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
        """Run the body when the gate lets it in; see `Place.inside`."""
        with self.place(key) as place, place.inside(seconds):
            yield

    def held(self, key: Hashable) -> int:
        """How many places `key` has."""
        return sum(place.key == key for place in self._places)

    def full(self, *, is_own: bool) -> GateFull:
        return GateFull(self._name, is_own=is_own)

    def let_in(self) -> None:
        """Let in as many as may be. Only while `changed` is held."""
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
