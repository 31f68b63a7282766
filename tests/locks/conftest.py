"""The clock of leases, which tests move forward."""

import pytest

from dynamo.runtime import clock as dynamo_clock
from tests.clocks import LeapingClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    """The clock that leases are counted on in this test."""
    leaping = LeapingClock()
    monkeypatch.setattr(dynamo_clock, "time", leaping)
    return leaping
