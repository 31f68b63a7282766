"""Explores scenarios, and shows in the end how many schedules there were."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo.client import sending
from tests.interleavings import scheduler
from tests.interleavings.scheduler import Scenario

#: For scenarios that are quick enough for `make test` only without faults.
LOSSES = [0, pytest.param(1, marks=pytest.mark.slow)]
FORGETFUL = [False, pytest.param(True, marks=pytest.mark.slow)]

_PROPERTY = "schedules"


#: `tests.interleavings.scheduler.explore`, with the same arguments.
Explore = Callable[..., int]


def runs_of(races: dict[str, Any]) -> list[Any]:
    """The parameters of a test: each race with its `quick` faults, and its `slow` ones if slow."""
    quick = [
        pytest.param(race, race.quick, id=name)
        for name, race in races.items()
        if race.quick is not None
    ]
    return quick + [
        pytest.param(race, race.slow, id=f"{name}-slow", marks=pytest.mark.slow)
        for name, race in races.items()
        if race.slow is not None and race.slow != race.quick
    ]


@pytest.fixture(scope="module")
def _patient(engine_url: str) -> Iterator[None]:
    """Wait for each answer: on a slow machine the client would repeat a request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sending, "READ_SECONDS", 60)
        patch.setattr(sending._shared, "_made", None)
        yield


@pytest.fixture
def explore(_patient: None, engine: str, record_property: Callable[[str, object], None]) -> Explore:
    """Explore a scenario on an engine whose tables are empty."""

    def counted(make_scenario: Callable[[], Scenario], **how: Any) -> int:
        schedules = scheduler.explore(make_scenario, **how)
        record_property(_PROPERTY, schedules)
        return schedules

    return counted


def pytest_terminal_summary(terminalreporter: Any) -> None:
    counts = [
        (
            report.nodeid.rpartition("::")[2],
            [n for name, n in report.user_properties if name == _PROPERTY],
        )
        for report in terminalreporter.stats.get("passed", [])
    ]
    scenarios = [(name, n) for name, found in counts for n in found]
    if not scenarios:
        return
    total = sum(n for _name, n in scenarios)
    terminalreporter.section("interleavings")
    terminalreporter.line(f"{total:,} schedules of {len(scenarios)} scenarios")
    if terminalreporter.config.get_verbosity() > 0:
        for name, n in sorted(scenarios):
            terminalreporter.line(f"{n:>8,}  {name}")
