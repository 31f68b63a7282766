"""docs/scale.md and the page of the simulation have the results of their program."""

import pytest

from benchmarks.scale import loads, operations, page, scenarios
from tests.commands import ROOT

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
    stored = (ROOT / "benchmarks" / "scale" / "simulation.md").read_text(encoding="utf-8")

    assert page.simulation(scenarios.all_rows()) == stored
