"""Invoices issued and voided at once by several processes, in every order of their requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from invoices.store.issuing import today
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, mark_paid, void
from tests.interleavings.conftest import LOSSES, Explore, runs_of
from tests.interleavings.invoices import ANN, InvoiceScenario, asks, numbers_of
from tests.interleavings.operations import DEAD
from tests.interleavings.processes import Processes, apart
from tests.invoice_factories import DAY

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

FIRST = f"{DAY.year}-000001"
TODAY = today()
OF_TODAY = f"{TODAY.year}-000001"

Faults = dict[str, Any]


@pytest.fixture
def processes() -> Iterator[Processes]:
    with apart() as each:
        yield each


@dataclass(frozen=True)
class Race:
    """Operations that run at once, each in a process of its own unless the scenario says otherwise.

    An end is what each was answered (`numbers_of`), and how many invoices are stored then.
    `quick` are the faults of `explore` that `make test` tries, `slow` those of `make test-slow`.
    """

    operations: list[Callable[[], object]]
    ends: set[tuple[Any, ...]]
    scenario: dict[str, Any]
    quick: Faults | None
    slow: Faults | None = None


ONE, TWO, THREE, UNNAMED = asks("one"), asks("two"), asks("three"), asks(None)
WARM, COLD, ONE_PROCESS = {"warm": True}, {"before": 1}, {"warm": True, "of": (0, 0, 0)}
EITHER_FIRST = {(1, 2, 2), (2, 1, 2)}
ANY_ORDER = {(*order, 3) for order in permutations((1, 2, 3))}
ONE_DIED = {
    *((DEAD, 1, 2, 2), (DEAD, 2, 3, 3), (1, DEAD, 2, 2), (1, DEAD, 3, 3)),
    (1, 2, 3, 3),
}
LOSS, LOSS_FORGETFUL = {"losses": 1}, {"losses": 1, "forgetful": True}
DEATH = {"losses": 1, "deaths": 1}

ONE_TODAY, TWO_TODAY = asks("one", day=TODAY), asks("two", day=TODAY)
CREDIT_FIRST, CREDIT_SECOND = (
    partial(credit, ANN, f"{TODAY.year}-{number:06}", "Returned") for number in (1, 2)
)
#: Another process issued the second invoice.
UNSEEN = {"before": 2, "unseen": 1, "warm": True, "day": TODAY}

RACES = {
    "two requests": Race([ONE, TWO], EITHER_FIRST, WARM, {}, LOSS_FORGETFUL),
    "two requests of a series with invoices": Race(
        [ONE, TWO], {(2, 3, 3), (3, 2, 3)}, WARM | COLD, LOSS
    ),
    "two requests of a series that was not seen before": Race(
        [ONE, TWO], {(2, 3, 3), (3, 2, 3)}, COLD, None, LOSS
    ),
    "two calls without a request id": Race([UNNAMED, UNNAMED], EITHER_FIRST, WARM, LOSS),
    "two calls without a request id and forgotten tokens": Race(
        [UNNAMED, UNNAMED], EITHER_FIRST, WARM, LOSS_FORGETFUL
    ),
    "one request with two contents": Race(
        [ONE, asks("one", customer="Carl")],
        {("InvoiceRequestReused", 1, 1), (1, "InvoiceRequestReused", 1)},
        WARM,
        {},
        LOSS,
    ),
    "a date and an earlier one": Race(
        [ONE, asks("late", day=DAY + timedelta(days=1))],
        {("DateTooEarly", 1, 1), (1, 2, 2)},
        WARM,
        {},
        LOSS,
    ),
    "a conflict with another transaction": Race(
        [ONE, TWO], EITHER_FIRST, WARM, {"conflicts": 1}, {"conflicts": 1, "losses": 1}
    ),
    "a conflict with two callers of one process and one of another": Race(
        [ONE, TWO, THREE],
        {(1, 2, 3, 3), (1, 3, 2, 3), (2, 3, 1, 3)},
        {"warm": True, "of": (0, 0, 1)},
        {"conflicts": 1},
    ),
    "a caller that sends for others and dies": Race(
        [ONE, TWO, THREE], ONE_DIED, ONE_PROCESS, DEATH, DEATH | {"forgetful": True}
    ),
    "a caller without a request id that sends for others and dies": Race(
        [UNNAMED] * 3, ONE_DIED, ONE_PROCESS, DEATH, DEATH | {"forgetful": True}
    ),
    "a process that dies": Race(
        [ONE, TWO],
        EITHER_FIRST
        | {(DEAD, 1, 1), (DEAD, 1, 2), (DEAD, 2, 2), (1, DEAD, 1), (1, DEAD, 2), (2, DEAD, 2)},
        {},
        {"deaths": 1},
        DEATH,
    ),
    "an invoice that another process issues, and its credit note": Race(
        [ONE_TODAY, CREDIT_FIRST],
        {(1, 2, 2), (1, "UnknownInvoice", 1)},
        WARM | {"day": TODAY},
        LOSS,
    ),
    "an invoice and the credit note for one that was not seen": Race(
        [ONE_TODAY, CREDIT_SECOND], {(3, 4, 4), (4, 3, 4)}, UNSEEN, {}, LOSS_FORGETFUL
    ),
    "an invoice and a credit note of one process, and an invoice of another": Race(
        [ONE_TODAY, CREDIT_SECOND, TWO_TODAY],
        # The invoice is asked for first: a credit note begins with a read.
        {(3, 4, 5, 5), (3, 5, 4, 5), (4, 5, 3, 5)},
        UNSEEN | {"of": (0, 0, 1)},
        {},
    ),
    "three processes": Race([ONE, TWO, THREE], ANY_ORDER, WARM, None, {}),
    "three processes that have not seen the series": Race(
        [ONE, TWO, THREE], ANY_ORDER, {}, None, {}
    ),
    "one request in two of three processes": Race(
        [ONE, ONE, TWO], {(1, 1, 2, 2), (2, 2, 1, 2)}, WARM, None, LOSS
    ),
}


@pytest.mark.parametrize(("race", "faults"), runs_of(RACES))
def test_invoices_issued_at_once_have_the_numbers_that_are_allowed_and_no_other(
    explore: Explore, processes: Processes, race: Race, faults: Faults
) -> None:
    reached = set()

    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, **race.scenario)
        scenario.operations = race.operations

        def expects(outcomes: list[Any]) -> None:
            end = *numbers_of(outcomes), len(scenario.numbers)
            assert end in race.ends
            reached.add(end)

        scenario.expects = expects
        return scenario

    explore(make, **faults)

    # Some ends need all of the faults.
    assert reached == race.ends or faults != (race.slow or race.quick)


@pytest.mark.parametrize("losses", LOSSES)
def test_an_invoice_is_voided_while_another_is_issued(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1)
        scenario.operations = [lambda: void(ANN, FIRST, "wrong"), TWO]

        def expects(outcomes: list[Any]) -> None:
            assert numbers_of(outcomes) == ["done", 2]
            assert find_invoice(ANN, FIRST).void_reason == "wrong"

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


def test_of_two_reasons_to_void_an_invoice_one_is_stored_and_told_to_both(
    explore: Explore, processes: Processes
) -> None:
    reasons = ["wrong", "doubled"]

    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1)
        scenario.operations = [partial(void, ANN, FIRST, reason) for reason in reasons]

        def expects(outcomes: list[Any]) -> None:
            told = numbers_of(outcomes)
            assert sorted(told) == ["AlreadyVoided", "done"]
            winner = told.index("done")
            assert find_invoice(ANN, FIRST).void_reason == reasons[winner]
            assert outcomes[1 - winner].reason == reasons[winner]

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


@pytest.mark.parametrize("losses", LOSSES)
def test_an_invoice_that_is_issued_meanwhile_is_voided_or_not_found(
    explore: Explore, processes: Processes, losses: int
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes)
        scenario.operations = [lambda: void(ANN, FIRST, "wrong"), ONE]

        def expects(outcomes: list[Any]) -> None:
            voided, number = numbers_of(outcomes)
            assert number == 1
            assert voided in {"done", "UnknownInvoice"}
            assert find_invoice(ANN, FIRST).is_voided == (voided == "done" or 0 in scenario.late)

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


@pytest.mark.parametrize("faults", [LOSS, LOSS_FORGETFUL])
def test_an_invoice_is_voided_or_credited_and_never_both(
    explore: Explore, processes: Processes, faults: Faults
) -> None:
    reached = set()

    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1, warm=True, day=TODAY)
        scenario.operations = [
            lambda: void(ANN, OF_TODAY, "Wrong"),
            lambda: credit(ANN, OF_TODAY, "Returned"),
        ]

        def expects(outcomes: list[Any]) -> None:
            record = find_record(ANN, OF_TODAY)
            end = numbers_of(outcomes)
            if record.invoice.is_voided:
                assert end == ["done", "AlreadyVoided"]
                assert (record.is_credited, scenario.numbers) == (False, [1])
            else:
                assert end == ["AlreadyCredited", 2]
                assert (record.is_credited, scenario.numbers) == (True, [1, 2])
            reached.add(record.standing)

        scenario.expects = expects
        return scenario

    explore(make, **faults)

    assert reached == {"voided", "credited"}


def test_an_invoice_that_is_voided_and_paid_at_once_is_told_to_both(
    explore: Explore, processes: Processes
) -> None:
    def make() -> InvoiceScenario:
        scenario = InvoiceScenario(processes, before=1)
        scenario.operations = [
            lambda: void(ANN, FIRST, "Wrong"),
            lambda: mark_paid(ANN, FIRST, DAY),
        ]

        def expects(outcomes: list[Any]) -> None:
            record = find_record(ANN, FIRST)
            assert record.invoice.is_voided
            paid = "done" if record.is_paid else "AlreadyVoided"
            assert numbers_of(outcomes) == ["done", paid]

        scenario.expects = expects
        return scenario

    explore(make, losses=1, forgetful=True)
