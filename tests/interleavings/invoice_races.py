"""Races of several processes, or of several callers of one, for the numbers of a series."""

from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

from invoices.store.issuing import today
from invoices.store.settlement import credit, mark_paid, void
from sequences.groups import Head
from tests.interleavings.processes import processes
from tests.interleavings.races import FORGETFUL, LOSS, Faults, Race
from tests.invoice_factories import DAY, issued, series
from tests.site_operations import FIRST, INVOICES

Act = Callable[[Any], object]

TODAY = today()


def asks(name: str | None, **values: Any) -> Act:
    """Issue an invoice with the request id `name`; with None it draws one."""
    return lambda _given: issued("ann", request_id=name, **values)


def _race(
    *acts: Act,
    before: int = 0,
    unseen: int = 0,
    warm: bool = False,
    of: tuple[int, ...] = (0, 1, 2),
    day: date = DAY,
    quick: Faults | None = LOSS,
    slow: Faults | None = None,
) -> Race:
    """A series that has `before` invoices at first. `of` names the process of each act.

    `warm` processes have seen the series, but not the last `unseen` invoices of those before.
    """

    def given() -> None:
        for number in range(before):
            issued("ann", request_id=f"before {number}", day=day)

    def begin() -> None:
        processes.of = of
        if warm:
            head = Head(before - unseen, {"S": day.isoformat()})
            for process in set(of):
                processes.remember(process, series("ann", day.year), head)

    return Race(INVOICES[0], acts, given, quick, slow, begin=begin)


ONE = asks("one")
TWO = asks("two")
THREE = asks("three")
UNNAMED = asks(None)
ONE_TODAY = asks("one", day=TODAY)
TWO_TODAY = asks("two", day=TODAY)


def credits_(number: int) -> Act:
    return lambda _given: credit("ann", f"{TODAY.year}-{number:06}", "Returned")


def voids(reason: str = "Wrong", label: str = FIRST) -> Act:
    return lambda _given: void("ann", label, reason)


def pays(_given: object) -> None:
    mark_paid("ann", FIRST, DAY)


_warm = partial(_race, warm=True)
_cold = partial(_race, before=1)
_one_process = partial(_warm, of=(0, 0, 0), quick=LOSS | {"deaths": 1})
#: Another process issued the second invoice.
_unseen = partial(_warm, before=2, unseen=1, day=TODAY)
DEATH = LOSS | {"deaths": 1}

INVOICE_RACES = {
    "two requests": _warm(ONE, TWO, quick={}, slow=FORGETFUL),
    "two requests of a series with invoices": _warm(ONE, TWO, before=1),
    "two requests of a series that was not seen before": _cold(ONE, TWO, quick=None, slow=LOSS),
    "two calls without a request id": _warm(UNNAMED, UNNAMED, slow=FORGETFUL),
    "one request with two contents": _warm(ONE, asks("one", customer="Carl"), quick={}, slow=LOSS),
    "a date and an earlier one": _warm(
        ONE, asks("late", day=DAY + timedelta(days=1)), quick={}, slow=LOSS
    ),
    "a conflict with another transaction": _warm(
        ONE, TWO, quick={"conflicts": 1}, slow=LOSS | {"conflicts": 1}
    ),
    "a conflict with two callers of one process and one of another": _warm(
        ONE, TWO, THREE, of=(0, 0, 1), quick={"conflicts": 1}
    ),
    "a caller that sends for others and dies": _one_process(
        ONE, TWO, THREE, slow=DEATH | FORGETFUL
    ),
    "a caller without a request id that sends for others and dies": _one_process(
        UNNAMED, UNNAMED, UNNAMED, slow=DEATH | FORGETFUL
    ),
    "a process that dies": _race(ONE, TWO, quick={"deaths": 1}, slow=DEATH),
    "an invoice that another process issues, and its credit note": _warm(
        ONE_TODAY, credits_(1), day=TODAY
    ),
    "an invoice and the credit note for one that was not seen": _unseen(
        ONE_TODAY, credits_(2), quick={}, slow=FORGETFUL
    ),
    "an invoice and a credit note of one process, and an invoice of another": _unseen(
        ONE_TODAY, credits_(2), TWO_TODAY, of=(0, 0, 1), quick=None, slow={}
    ),
    "a void and an invoice": _cold(voids(), TWO, quick={}, slow=LOSS),
    "two reasons to void an invoice": _cold(voids(), voids("Doubled"), quick={}, slow=LOSS),
    "a void and the invoice that it is about": _race(voids(), ONE, quick={}, slow=LOSS),
    "a void and a credit note": _warm(
        voids(label=f"{TODAY.year}-000001"),
        credits_(1),
        before=1,
        day=TODAY,
        quick={},
        slow=FORGETFUL,
    ),
    "a void and a payment": _cold(voids(), pays, slow=FORGETFUL),
    "three processes": _warm(ONE, TWO, THREE, quick=None, slow={}),
    "three processes that have not seen the series": _race(ONE, TWO, THREE, quick=None, slow={}),
    "one request in two of three processes": _warm(ONE, ONE, TWO, quick=None, slow=LOSS),
}
