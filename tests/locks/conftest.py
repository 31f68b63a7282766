"""A clock that leaps."""

from __future__ import annotations

import time

import pytest

from locks import clock as locks_clock


class Clock:
    """The system's clock, as it is on a machine that slept meanwhile."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def leap(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self._ahead += seconds

    def clock_gettime(self, which: int) -> float:
        return time.clock_gettime(which) + self._ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock on which leases are counted in this test."""
    leaping = Clock()
    monkeypatch.setattr(locks_clock, "time", leaping)
    return leaping
