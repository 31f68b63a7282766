"""What a check lists of one kind, and what it only counts."""

from __future__ import annotations

import pytest

from dynamo import findings
from dynamo.findings import Findings


def found(*each: int) -> Findings[int]:
    kind: Findings[int] = Findings()
    for finding in each:
        kind.add(finding)
    return kind


def test_findings_are_listed_in_their_order() -> None:
    kind = found(3, 1, 2)

    assert (kind.listed, kind.more, kind.count) == ([3, 1, 2], 0, 3)


def test_beyond_the_limit_they_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)

    kind = found(3, 1, 2, 4)

    assert (kind.listed, kind.more, kind.count) == ([3, 1], 2, 4)


def test_it_is_full_as_soon_as_the_next_one_would_not_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(findings, "LISTED", 2)

    assert [found(*range(number)).is_full for number in range(4)] == [False, False, True, True]


def test_it_is_true_where_there_is_one_listed_or_not() -> None:
    assert not found()
    assert found(0)
    assert Findings([], more=1)


def test_any_number_may_be_missing() -> None:
    kind = Findings([1], more=10**38)

    assert kind
    assert kind.count == 10**38 + 1


def test_no_two_kinds_share_a_list() -> None:
    found(1)

    assert found().listed == []
