"""The invoice checker reports a history that breaks a rule, and no other."""

from typing import Any

import pytest

from tests.torture.checkers.invoices import Stored, check
from tests.torture.histories import call, in_turn
from tests.torture.history import Call, Outcome


def issued(request: str, number: int | None, **options: Any) -> Call:
    """A request that got this number; without one, its answer was lost."""
    asked = {"account": "a", "request": request, "customer": f"of {request}"}
    if number is None:
        return call("issue", "unknown", lingers=9, **asked)
    return call("issue", answer={"number": number}, **(asked | options))


def voided(number: int, reason: str, outcome: Outcome = "ok", **options: Any) -> Call:
    return call("void", outcome, account="a", number=number, reason=reason, **options)


def already(number: int, reason: str) -> Call:
    answer = {"error": "AlreadyVoided", "reason": reason}
    return voided(number, "another", "refused", answer=answer)


def read(number: int, reason: str | None) -> Call:
    if reason is None:
        answer = {"error": "UnknownInvoice"}
        return call("read", "refused", account="a", number=number, answer=answer)
    return call("read", account="a", number=number, answer={"reason": reason})


X = Stored("x", "of x", "")
Y = Stored("y", "of y", "")
X_VOIDED = Stored("x", "of x", "wrong")
TWO = [issued("x", 1), issued("y", 2)]
VOIDED = [issued("x", 1), voided(1, "wrong")]
#: Voided without an answer: seen as issued once more, then as voided.
MAYBE = [issued("x", 1), voided(1, "wrong", "unknown", lingers=9), read(1, ""), read(1, "wrong")]

#: Calls, the invoices that are stored in the end, by number, and the rules that are broken.
HISTORIES: dict[str, tuple[list[Call], dict[int, Stored], set[str]]] = {
    "issued, voided and read": (
        [*(read(1, None), *TWO, voided(1, "wrong")), *(read(1, "wrong"), already(1, "wrong"))],
        {1: X_VOIDED, 2: Y},
        set(),
    ),
    "a gap": ([issued("x", 1), issued("y", 3)], {1: X, 3: Y}, {"numbers"}),
    "an answered invoice that is missing": ([issued("x", 1)], {}, {"numbers"}),
    "an invoice without a request": ([], {1: X}, {"numbers", "invoices"}),
    "a request stored twice and answered once": (
        [issued("x", None), issued("x", 2)],
        {1: X, 2: X},
        {"numbers"},
    ),
    "a lower number than one answered before": (
        [issued("y", 2), issued("x", 1)],
        {1: X, 2: Y},
        {"numbers"},
    ),
    "requests at one time in any order": (
        [issued("y", 2, at=(0, 5)), issued("x", 1, at=(4, 8))],
        {1: X, 2: Y},
        set(),
    ),
    "a repeated request with its first number": (
        [issued("x", None), issued("y", 2), issued("x", 1)],
        {1: X, 2: Y},
        set(),
    ),
    "a lost request that was issued": ([issued("x", None)], {1: X}, set()),
    "a lost request that was not issued": ([issued("x", None)], {}, set()),
    "an invoice with other contents": (
        [issued("x", 1)],
        {1: Stored("x", "of another", "")},
        {"invoices"},
    ),
    "a voided invoice that is stored as issued": (VOIDED, {1: X}, {"invoices"}),
    "two successes of voiding": (
        [issued("x", 1), voided(1, "wrong", at=(2, 9)), voided(1, "other", at=(2, 9))],
        {1: X_VOIDED},
        {"invoices"},
    ),
    "an answered invoice that is not found": (
        [issued("x", 1), read(1, None)],
        {1: X},
        {"invoices"},
    ),
    "a lost voiding that is seen and undone": ([*MAYBE, read(1, "")], {1: X_VOIDED}, {"invoices"}),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_invoices_has_the_findings_of_the_rules_that_it_breaks(name: str) -> None:
    calls, stored, rules = HISTORIES[name]

    assert {finding.rule for finding in check(in_turn(calls), {"a": stored})} == rules
