"""Histories of invoices that break a rule, each one rule; and some that only look so."""

from __future__ import annotations

from typing import Any

from tests.torture.checkers.invoices import Stored, check
from tests.torture.findings import Finding
from tests.torture.histories import call
from tests.torture.history import Call


def issued(began: float, ended: float, request: str, number: int, **options: Any) -> Call:
    asked = {"account": "a", "request": request, "customer": f"of {request}"}
    return call("issue", began, ended, **(asked | {"answer": {"number": number}} | options))


def lost(began: float, ended: float, request: str, lingers: float = 9) -> Call:
    asked = {"account": "a", "request": request, "customer": f"of {request}"}
    return call("issue", began, ended, "unknown", lingers=lingers, **asked)


def voided(began: float, ended: float, number: int, reason: str, *args: Any, **more: Any) -> Call:
    return call("void", began, ended, *args, account="a", number=number, reason=reason, **more)


def already(began: float, ended: float, number: int, reason: str) -> Call:
    answer = {"error": "AlreadyVoided", "reason": reason}
    return voided(began, ended, number, "another", "refused", answer=answer)


def read(began: float, ended: float, number: int, reason: str | None) -> Call:
    if reason is None:
        answer = {"error": "UnknownInvoice"}
        return call("read", began, ended, "refused", account="a", number=number, answer=answer)
    return call("read", began, ended, account="a", number=number, answer={"reason": reason})


def listed(began: float, ended: float, *numbers: int, voided: int = 0, is_all: bool = True) -> Call:
    invoices = [[number, number == voided] for number in numbers]
    answer = {"invoices": invoices, "is_all": is_all}
    return call("list", began, ended, account="a", answer=answer)


def stored(*requests: str, **reasons: str) -> dict[str, dict[int, Stored]]:
    return {
        "a": {
            number: Stored(request, f"of {request}", reasons.get(request, ""))
            for number, request in enumerate(requests, 1)
        }
    }


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def test_invoices_issued_voided_read_and_listed_break_nothing() -> None:
    calls = [
        read(0, 1, 1, None),
        issued(0, 1, "x", 1),
        issued(2, 3, "y", 2),
        listed(4, 5, 2, 1),
        voided(6, 7, 1, "wrong"),
        read(8, 9, 1, "wrong"),
        already(8, 9, 1, "wrong"),
        listed(8, 9, 2, 1, voided=1),
    ]

    assert check(calls, stored("x", "y", x="wrong")) == []


def test_a_gap() -> None:
    calls = [issued(0, 1, "x", 1), issued(2, 3, "y", 3)]
    gap = {"a": {1: Stored("x", "of x", ""), 3: Stored("y", "of y", "")}}

    assert rules(check(calls, gap)) == ["numbers"]


def test_an_answered_invoice_that_is_not_there() -> None:
    assert rules(check([issued(0, 1, "x", 1)], {})) == ["numbers"]


def test_an_invoice_that_nobody_asked_for() -> None:
    assert rules(check([], stored("x"))) == ["numbers", "invoices"]


def test_one_number_for_two_requests() -> None:
    calls = [issued(0, 1, "x", 1), issued(2, 3, "y", 1)]

    assert rules(check(calls, stored("x"))) == ["numbers"]


def test_two_numbers_for_one_request() -> None:
    calls = [issued(0, 1, "x", 1), issued(2, 3, "x", 2)]
    two = {"a": {1: Stored("x", "of x", ""), 2: Stored("x", "of x", "")}}

    assert "numbers" in rules(check(calls, two))


def test_a_request_that_is_stored_twice_though_answered_once() -> None:
    calls = [lost(0, 1, "x"), issued(2, 3, "x", 2)]
    two = {"a": {1: Stored("x", "of x", ""), 2: Stored("x", "of x", "")}}

    assert "numbers" in rules(check(calls, two))


def test_a_number_that_is_lower_than_one_answered_before() -> None:
    calls = [issued(0, 1, "y", 2), issued(2, 3, "x", 1)]

    assert rules(check(calls, stored("x", "y"))) == ["numbers"]


def test_numbers_of_requests_at_one_time_come_in_any_order() -> None:
    calls = [issued(0, 5, "y", 2), issued(4, 8, "x", 1)]

    assert check(calls, stored("x", "y")) == []


def test_who_asks_again_has_the_number_of_the_first_time() -> None:
    calls = [lost(0, 1, "x"), issued(2, 3, "y", 2), issued(4, 5, "x", 1)]

    assert check(calls, stored("x", "y")) == []


def test_what_was_lost_may_be_issued_or_not() -> None:
    assert check([lost(0, 1, "x")], stored("x")) == []
    assert check([lost(0, 1, "x")], {}) == []


def test_an_invoice_that_says_something_else() -> None:
    other = {"a": {1: Stored("x", "of somebody", "")}}

    assert rules(check([issued(0, 1, "x", 1)], other)) == ["invoices"]


def test_a_voided_invoice_is_issued_again() -> None:
    calls = [issued(0, 1, "x", 1), voided(2, 3, 1, "wrong")]

    assert rules(check([*calls, read(4, 5, 1, "")], stored("x", x="wrong"))) == ["invoices"]
    assert rules(check(calls, stored("x"))) == ["invoices"]


def test_two_are_told_that_they_voided_it() -> None:
    calls = [issued(0, 1, "x", 1), voided(2, 9, 1, "wrong"), voided(2, 9, 1, "other")]

    assert rules(check(calls, stored("x", x="wrong"))) == ["invoices"]


def test_already_voided_is_said_with_a_reason_that_nobody_gave() -> None:
    calls = [issued(0, 1, "x", 1), already(2, 3, 1, "made up")]

    assert rules(check(calls, stored("x"))) == ["invoices"]


def test_an_answered_invoice_is_not_found() -> None:
    calls = [issued(0, 1, "x", 1), read(2, 3, 1, None)]

    assert rules(check(calls, stored("x"))) == ["invoices"]


def test_voiding_without_an_answer_may_be_seen_later_but_not_undone() -> None:
    gone = voided(2, 3, 1, "wrong", "unknown", lingers=9)
    calls = [issued(0, 1, "x", 1), gone, read(4, 5, 1, ""), read(6, 7, 1, "wrong")]

    assert check(calls, stored("x", x="wrong")) == []
    assert rules(check([*calls, read(8, 9, 1, "")], stored("x", x="wrong"))) == ["invoices"]


def test_a_list_without_what_was_issued_before() -> None:
    calls = [issued(0, 1, "x", 1), issued(2, 3, "y", 2), listed(4, 5, 2)]

    assert rules(check(calls, stored("x", "y"))) == ["lists"]


def test_a_list_may_show_the_later_and_not_the_earlier_of_what_is_issued_meanwhile() -> None:
    calls = [issued(0, 9, "x", 1), issued(0, 9, "y", 2), listed(4, 5, 2)]

    assert check(calls, stored("x", "y")) == []


def test_what_is_older_than_a_page_is_on_another_one() -> None:
    calls = [issued(0, 1, "x", 1), issued(2, 3, "y", 2), listed(4, 5, 2, is_all=False)]

    assert check(calls, stored("x", "y")) == []


def test_a_list_of_what_was_not_asked_for_yet() -> None:
    calls = [listed(0, 1, 1), issued(2, 3, "x", 1)]

    assert rules(check(calls, stored("x"))) == ["lists"]


def test_a_list_that_shows_a_voided_invoice_as_issued() -> None:
    calls = [issued(0, 1, "x", 1), voided(2, 3, 1, "wrong"), listed(4, 5, 1)]

    assert rules(check(calls, stored("x", x="wrong"))) == ["lists"]
