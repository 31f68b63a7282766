"""Idle connections, which a gateway on the way to DynamoDB may have dropped."""

import time
from collections.abc import Iterator

import pytest

from dynamo._internal import clock
from dynamo._internal.client.connections import IDLE_SECONDS
from sequences._internal.counters import next_value
from tests.clocks import LeapingClock
from tests.faults.proxy import FaultProxy, through


@pytest.fixture
def proxy(engine: str, path: None, real_patience: None) -> Iterator[FaultProxy]:
    with FaultProxy(engine) as proxy, through(proxy):
        yield proxy


@pytest.fixture
def leaping(monkeypatch: pytest.MonkeyPatch) -> LeapingClock:
    leaping = LeapingClock()
    monkeypatch.setattr(clock, "time", leaping)
    return leaping


def test_an_idle_connection_is_replaced_and_a_recently_used_one_is_not(
    proxy: FaultProxy, leaping: LeapingClock
) -> None:
    assert next_value("visitors") == 1
    opened = len(proxy._open)
    for number in (2, 3):
        leaping.leap(IDLE_SECONDS - 1)
        assert next_value("visitors") == number
    assert len(proxy._open) == opened == 1
    proxy.drop_connections()

    leaping.leap(IDLE_SECONDS + 1)

    assert next_value("visitors") == 4
    assert proxy.count("UpdateItem") == 4


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux has this clock")
def test_idle_time_is_measured_on_a_clock_that_runs_during_suspend() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)

    assert before <= clock.now() <= time.clock_gettime(time.CLOCK_BOOTTIME)
