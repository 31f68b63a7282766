"""docs/scale.md has the results of its program, and the model behind it is right; a proxy's, too.

The proxy of the benchmarks is not tested by `make test`, which the benchmarks cannot break.
"""

import random
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.far import FarAway
from benchmarks.scale import loads, operations, page, scenarios
from benchmarks.scale.clock import Clock, Task
from benchmarks.scale.partitions import HEAT_SECONDS, Sender, Table
from dynamo._internal.client.sending import send
from tests.commands import ROOT
from tests.faults.proxy import through

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")


@pytest.mark.fault_of("moto", "counts half a unit for an update")
@pytest.mark.fault_of("ministack", "counts one unit for a query of whatever size")
@pytest.mark.usefixtures("engine")
def test_the_page_has_the_measured_costs() -> None:
    measured = operations.measured()

    assert page.costs(measured) in PAGE
    for load in (loads.SIGN_UPS, loads.USERS):
        assert page.needs(load, measured) in PAGE
        assert f"${loads.dollars_a_day(load, measured):,.0f} a day" in PAGE
        assert f"{loads.requests_a_second(load, measured):,.0f} requests per second" in PAGE


@pytest.mark.slow
def test_the_page_has_the_simulated_results() -> None:
    assert page.simulated(scenarios.all_rows()) in PAGE


def admitted(table: Table, keys: list[float], seconds: float, a_second: int) -> list[bool]:
    """What becomes of requests for a unit, evenly spaced, that take the keys in turn."""
    sender = Sender(table.clock, random.Random(0))
    answers: list[bool] = []

    def ask() -> Task:
        for number in range(int(seconds * a_second)):
            answers.append(sender.admitted([(table, keys[number % len(keys)], 1)]))
            yield 1 / a_second

    table.clock.at(0, ask())
    table.clock.run()
    return answers


def test_a_partition_takes_its_rate_and_a_saved_burst() -> None:
    table = Table(Clock(), 1)

    answers = admitted(table, [0.3], HEAT_SECONDS, 2000)

    assert sum(answers) == pytest.approx(1000 * (HEAT_SECONDS + 1), abs=2)


def test_a_split_helps_many_hot_keys_and_never_a_single_one() -> None:
    many, single = Table(Clock(), 1), Table(Clock(), 1)

    spread = admitted(many, [0.2, 0.7], 3 * HEAT_SECONDS, 1800)
    alone = admitted(single, [0.3], 3 * HEAT_SECONDS, 1800)

    last_second = slice(-1800, None)
    assert all(spread[last_second])
    assert sum(alone[last_second]) == pytest.approx(1000, abs=2)


# The proxy of the benchmarks ----------------------------------------------------------------------


def read(_number: int = 0) -> Any:
    return send("GetItem", {"TableName": "cache", "Key": {"key": {"S": "none"}}})


@pytest.mark.slow
def test_the_proxy_delays_replies_and_counts_round_trips(
    engine: str, at_once: Callable[..., list[Any]]
) -> None:
    with FarAway(urlsplit(engine).port or 0, 0.5) as far, through(f"http://127.0.0.1:{far.port}"):
        began = time.perf_counter()
        read()
        assert time.perf_counter() - began >= 0.5
        read()
        assert far.take() == 2

        at_once(read, threads=4)

        assert far.take() == 1
