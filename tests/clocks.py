"""Clocks for deadlines: one that a test moves, and one that ignores the pauses of a busy machine.

They replace the module `time` in the modules that have deadlines.
"""

import sys
import threading
import time
from datetime import date, datetime, tzinfo
from typing import Any, Self

import pytest
from django.utils import timezone

#: The modules that use deadlines of `dynamo.runtime.deadline`. They must share a clock.
_MODULES = (
    "dynamo.client.bulk",
    "dynamo.client.breaker",
    "dynamo.client.sending",
    "dynamo.runtime.deadline",
    "sequences.combining",
    "sequences.counters",
    "sequences.series",
)


class _Clock:
    """The module `time`, except for what a subclass defines."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class LeapingClock(_Clock):
    """The system clock, which a test moves ahead instead of waiting."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def leap(self, seconds: float) -> None:
        """Move ahead by so many seconds."""
        self._ahead += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def clock_gettime(self, which: int) -> float:
        return time.clock_gettime(which) + self._ahead


class SleeplessClock(LeapingClock):
    """A clock that moves only when something sleeps, and then at once."""

    def monotonic(self) -> float:
        return self._ahead

    def sleep(self, seconds: float) -> None:
        self.leap(seconds)


class StallProofClock(_Clock):
    """The system clock, but at most `most_seconds` pass between two readings.

    A pause is over at once: the clock moves ahead instead.
    """

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._seen = self._now = time.monotonic()

    def monotonic(self) -> float:
        # Threads that read it at once may count too little time, which does no harm.
        seen = time.monotonic()
        self._now += min(max(0.0, seen - self._seen), self._most_seconds)
        self._seen = seen
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


class Stopwatch:
    """How long a block takes, without the time during which the machine stands still.

    `seconds` is set when the block has ended.
    """

    def __init__(self) -> None:
        self._clock = StallProofClock(0.2)
        self._over = threading.Event()
        self._looking = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self._clock.monotonic()

    def __enter__(self) -> Self:
        self._began = self._clock.monotonic()
        self._looking.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._looking.join()
        self.seconds = self._clock.monotonic() - self._began


def hold_the_day(today: date, patch: pytest.MonkeyPatch) -> None:
    """Let Django's date stay `today`, even if midnight passes."""
    localdate = timezone.localdate

    def held(value: datetime | None = None, timezone: tzinfo | None = None) -> date:
        return today if value is None else localdate(value, timezone)

    patch.setattr(timezone, "localdate", held)


def use_clock(clock: Any, patch: pytest.MonkeyPatch) -> None:
    """Let deadlines be counted on this clock."""
    for name in _MODULES:
        if name in sys.modules:
            patch.setattr(sys.modules[name], "time", clock)
