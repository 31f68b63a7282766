"""A clock that leaps."""

from __future__ import annotations

import pytest

from dynamo import clock as dynamo_clock
from tests.clocks import LeapingClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    """The clock on which leases are counted in this test."""
    leaping = LeapingClock()
    monkeypatch.setattr(dynamo_clock, "time", leaping)
    return leaping
