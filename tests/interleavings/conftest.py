"""Explores scenarios, and shows in the end how many schedules there were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from dynamo.client import sending
from tests.interleavings import scheduler
from tests.interleavings.interception import Clock
from tests.interleavings.scheduler import Scenario

#: For scenarios that are quick enough for `make test` only without faults.
LOSSES = [0, pytest.param(1, marks=pytest.mark.slow)]
FORGETFUL = [False, pytest.param(True, marks=pytest.mark.slow)]

_PROPERTY = "schedules"


class Explore(Protocol):
    """See `tests.interleavings.scheduler.explore`."""

    def __call__(
        self,
        make_scenario: Callable[[], Scenario],
        *,
        losses: int = 0,
        deaths: int = 0,
        conflicts: int = 0,
        clock: Clock | None = None,
        fine: bool = False,
        forgetful: bool = False,
    ) -> int: ...


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
