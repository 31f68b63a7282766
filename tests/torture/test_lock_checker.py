"""Histories of locks that break a rule, each one rule; and some that only look so."""

from __future__ import annotations

from typing import Any

from tests.torture.checkers.locks import Served, check
from tests.torture.findings import Finding
from tests.torture.histories import call
from tests.torture.history import Call


def held(fence: int, *looks: float, wrote: int = 0, told: float | None = None) -> Call:
    notes: list[tuple[float, dict[str, Any]]] = [
        (looks[0] if told is None else told, {"fence": fence})
    ]
    notes += [(at, {"looked": True}) for at in looks]
    if wrote:
        notes.append((looks[-1], {"wrote": [fence, wrote]}))
    return call("hold", notes[0][0] - 1, notes[-1][0] + 1, lock="l", notes=notes)


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def test_holders_one_after_the_other_break_nothing() -> None:
    calls = [held(10, 1, 3, wrote=1), held(11, 4, 5, wrote=2), held(15, 7, wrote=3)]
    served = [Served(10, 1), Served(11, 2), Served(15, 3)]

    assert check(calls, {"l": served}) == []


def test_two_holders_at_one_time() -> None:
    assert rules(check([held(10, 1, 5), held(11, 3, 7)], {})) == ["holders"]


def test_one_within_the_time_of_another() -> None:
    assert rules(check([held(10, 1, 9), held(11, 3, 4)], {})) == ["holders"]


def test_a_third_holder_within_the_time_of_the_first() -> None:
    assert rules(check([held(10, 1, 9), held(11, 0.2, 0.5), held(12, 5, 6)], {})) == [
        "fences",
        "holders",
    ]


def test_a_fence_that_falls() -> None:
    assert rules(check([held(11, 1, 2), held(10, 3, 4)], {})) == ["fences"]


def test_one_fence_for_two() -> None:
    assert "fences" in rules(check([held(10, 1, 2), held(10, 3, 4)], {}))


def test_a_holder_that_was_frozen_when_it_was_told_held_nothing_then() -> None:
    frozen = call("hold", 0, 9, "refused", lock="l", notes=[(8, {"fence": 10})])

    assert check([frozen, held(11, 4, 9)], {}) == []


def test_holders_of_two_locks_do_not_meet() -> None:
    other = held(11, 3, 7)
    other.asked["lock"] = "m"

    assert check([held(10, 1, 5), other], {}) == []


def test_the_resource_served_a_lower_fence() -> None:
    calls = [held(10, 1, 2), held(11, 3, 4)]

    assert rules(check(calls, {"l": [Served(11, 1), Served(10, 2)]})) == ["resource"]


def test_a_number_was_written_over_another() -> None:
    calls = [held(10, 1, 2), held(11, 3, 4)]

    assert rules(check(calls, {"l": [Served(10, 1), Served(11, 1)]})) == ["resource"]


def test_a_number_that_was_written_is_not_there() -> None:
    assert rules(check([held(10, 1, 2, wrote=1)], {"l": []})) == ["resource"]


def test_a_fence_that_nobody_held() -> None:
    assert rules(check([], {"l": [Served(10, 1)]})) == ["resource"]


def test_a_holder_that_was_killed_may_have_written() -> None:
    killed = call("hold", 0, 5, "unknown", lock="l", notes=[(1, {"fence": 10})])

    assert check([killed], {"l": [Served(10, 1)]}) == []
