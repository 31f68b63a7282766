"""Clocks for deadlines: one that leaps, and one that does not notice when the machine stands still.

They stand in for the module `time` in the modules that count deadlines.
"""

from __future__ import annotations

import sys
import threading
import time
from datetime import date, datetime, tzinfo
from typing import Any, Self

import pytest
from django.utils import timezone

#: Who looks at deadlines of `dynamo.client.deadline`; all of them on one clock.
_MODULES = (
    "dynamo.bulk",
    "dynamo.client.breaker",
    "dynamo.client.sending",
    "dynamo.client.deadline",
    "sequences.combining",
    "sequences.counters",
    "sequences.series",
)


class _Clock:
    """The module `time`, but for what a subclass has."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


class LeapingClock(_Clock):
    """The system's, which a test lets leap instead of waiting."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def leap(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self._ahead += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def clock_gettime(self, which: int) -> float:
        return time.clock_gettime(which) + self._ahead


class SleeplessClock(LeapingClock):
    """Leaps over each pause, and stands still otherwise."""

    def monotonic(self) -> float:
        return self._ahead

    def sleep(self, seconds: float) -> None:
        self.leap(seconds)


class StallProofClock(_Clock):
    """The system's, but between two looks no more time passes than `most_seconds`."""

    def __init__(self, most_seconds: float) -> None:
        self._most_seconds = most_seconds
        self._seen = self._now = time.monotonic()

    def monotonic(self) -> float:
        # Of threads that look at once one may be counted short, which does no harm.
        seen = time.monotonic()
        self._now += min(max(0.0, seen - self._seen), self._most_seconds)
        self._seen = seen
        return self._now


class Stopwatch:
    """How long a block takes, not counting the time for which the machine stands still.

    `seconds` is there when the block has ended.
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
    """Let it stay `today` for all who ask Django which day it is, though midnight passes."""
    localdate = timezone.localdate

    def held(value: datetime | None = None, timezone: tzinfo | None = None) -> date:
        return today if value is None else localdate(value, timezone)

    patch.setattr(timezone, "localdate", held)


def use_clock(clock: Any, patch: pytest.MonkeyPatch) -> None:
    """Let deadlines be counted on this clock."""
    for name in _MODULES:
        if name in sys.modules:
            patch.setattr(sys.modules[name], "time", clock)
