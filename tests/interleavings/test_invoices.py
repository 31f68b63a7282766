"""Invoices issued and voided at once by several processes, in every order of their requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from invoices.records import find_invoice, void
from tests.interleavings.conftest import LOSSES, Explore
from tests.interleavings.invoices import ANN, InvoiceScenario, asks, numbers_told
from tests.interleavings.operations import DEAD
from tests.interleavings.processes import Processes, apart
from tests.invoice_factories import DAY

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

FIRST = f"{DAY.year}-000001"


@pytest.fixture
def processes() -> Iterator[Processes]:
    with apart() as each:
        yield each


@pytest.mark.parametrize("warm", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_two_processes_issue_two_numbers(
    explore: Explore, processes: Processes, warm: bool
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1, warm=warm)
        scenario.operations = [asks("one"), asks("two")]
        scenario.expects = lambda outcomes: ends.append(numbers_told(outcomes))
        return scenario

    ends: list[list[Any]] = []

    explore(make, losses=1)

    assert {tuple(end) for end in ends} == {(2, 3), (3, 2)}


@pytest.mark.parametrize("forgetful", [False, True])
def test_one_request_in_two_processes_issues_one_invoice(
    explore: Explore, processes: Processes, forgetful: bool
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("one"), asks("one")]

        def expects(outcomes: list[Any]) -> None:
            assert numbers_told(outcomes) == [1, 1]
            assert len(scenario.numbers) == 1

        scenario.expects = expects
        return scenario

    explore(make, losses=1, forgetful=forgetful)


@pytest.mark.parametrize("losses", LOSSES)
def test_one_request_with_two_contents_is_the_one_that_came_first(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("one"), asks("one", customer="Carl")]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(map(str, numbers_told(outcomes))) == ["1", "RequestIdReused"]
            assert len(scenario.numbers) == 1

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


def test_a_lost_answer_is_recognised_while_another_process_issues(
    explore: Explore, processes: Processes
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("one"), asks("two")]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(numbers_told(outcomes)) == [1, 2]
            assert len(scenario.numbers) == 2

        scenario.expects = expects
        return scenario

    explore(make, losses=1, forgetful=True)


@pytest.mark.parametrize("forgetful", [False, True])
def test_a_call_without_a_request_id_issues_one_invoice(
    explore: Explore, processes: Processes, forgetful: bool
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks(None), asks(None)]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(numbers_told(outcomes)) == [1, 2]
            assert len(scenario.numbers) == 2

        scenario.expects = expects
        return scenario

    explore(make, losses=1, forgetful=forgetful)


@pytest.mark.parametrize("losses", LOSSES)
def test_who_meets_another_transaction_begins_anew_and_issues_once(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("one"), asks("two")]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(numbers_told(outcomes)) == [1, 2]
            assert len(scenario.numbers) == 2

        scenario.expects = expects
        return scenario

    explore(make, losses=losses, meetings=1)


def three_of_two_processes(processes: Processes) -> InvoiceScenario:
    """Two callers of one process and one of another, who are all issued to."""
    scenario = InvoiceScenario(processes, warm=True, of=(0, 0, 1))
    scenario.operations = [asks("one"), asks("two"), asks("three")]

    def expects(outcomes: list[Any]) -> None:
        assert sorted(numbers_told(outcomes)) == [1, 2, 3]

    scenario.expects = expects
    return scenario


def test_companions_of_one_who_meets_another_transaction_are_issued_too(
    explore: Explore, processes: Processes
) -> None:
    explore(partial(three_of_two_processes, processes), meetings=1)


def test_callers_of_one_process_share_what_is_sent_beside_another_process(
    explore: Explore, processes: Processes
) -> None:
    explore(partial(three_of_two_processes, processes))


@pytest.mark.parametrize("forgetful", [False, True])
@pytest.mark.parametrize("names", [("one", "two", "three"), (None, None, None)])
def test_who_sent_for_others_and_died_leaves_them_served(
    explore: Explore, processes: Processes, names: Sequence[str | None], forgetful: bool
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True, of=(0, 0, 0))
        scenario.operations = [asks(name) for name in names]

        def expects(outcomes: list[Any]) -> None:
            told = [number for number in numbers_told(outcomes) if number != DEAD]
            assert len(told) >= 2
            assert len(set(told)) == len(told)
            assert all(isinstance(number, int) for number in told)

        scenario.expects = expects
        return scenario

    explore(make, losses=1, deaths=1, forgetful=forgetful)


@pytest.mark.parametrize("losses", LOSSES)
def test_an_early_date_is_refused_or_comes_first(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("early"), asks("late", day=DAY + timedelta(days=1))]

        def expects(outcomes: list[Any]) -> None:
            assert numbers_told(outcomes) in [[1, 2], ["DateTooEarly", 1]]

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


@pytest.mark.parametrize("losses", LOSSES)
def test_who_dies_while_it_issues_leaves_no_gap_and_nobody_waiting(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes)
        scenario.operations = [asks("one"), asks("two")]

        def expects(outcomes: list[Any]) -> None:
            told = [number for number in numbers_told(outcomes) if number != DEAD]
            assert set(told) <= {1, 2}
            assert len(told) == len(set(told)) >= 1

        scenario.expects = expects
        return scenario

    explore(make, deaths=1, losses=losses)


# Voiding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("losses", LOSSES)
def test_an_invoice_is_voided_while_another_is_issued(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1)
        scenario.operations = [lambda: void(ANN, FIRST, "wrong"), asks("two")]

        def expects(outcomes: list[Any]) -> None:
            assert numbers_told(outcomes) == [1, 2]
            assert find_invoice(ANN, FIRST).void_reason == "wrong"

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


def test_an_invoice_is_voided_once_and_for_the_reason_that_all_are_told(
    explore: Explore, processes: Processes
) -> None:
    reasons = ["wrong", "doubled"]

    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1)
        scenario.operations = [
            lambda: void(ANN, FIRST, "wrong"),
            lambda: void(ANN, FIRST, "doubled"),
        ]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(map(str, numbers_told(outcomes))) == ["1", "AlreadyVoided"]
            winner = numbers_told(outcomes).index(1)
            assert find_invoice(ANN, FIRST).void_reason == reasons[winner]
            assert outcomes[1 - winner].reason == reasons[winner]

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


@pytest.mark.parametrize("losses", LOSSES)
def test_who_voids_what_is_just_issued_voids_it_or_finds_nothing(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes)
        scenario.operations = [lambda: void(ANN, FIRST, "wrong"), asks("one")]

        def expects(outcomes: list[Any]) -> None:
            voided, number = numbers_told(outcomes)
            assert number == 1
            assert voided in {1, "UnknownInvoice"}
            assert find_invoice(ANN, FIRST).is_voided == (voided == 1 or 0 in scenario.late)

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


# Three processes ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("warm", [False, True])
def test_three_processes_issue_three_numbers(
    explore: Explore, processes: Processes, warm: bool
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=warm)
        scenario.operations = [asks("one"), asks("two"), asks("three")]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(numbers_told(outcomes)) == [1, 2, 3]

        scenario.expects = expects
        return scenario

    explore(make)


@pytest.mark.slow
def test_one_request_in_two_of_three_processes_issues_one_invoice(
    explore: Explore, processes: Processes
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, warm=True)
        scenario.operations = [asks("one"), asks("one"), asks("two")]

        def expects(outcomes: list[Any]) -> None:
            first, again, other = numbers_told(outcomes)
            assert first == again
            assert {first, other} == {1, 2}

        scenario.expects = expects
        return scenario

    explore(make, losses=1)
