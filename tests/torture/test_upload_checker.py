"""Histories of uploads that break a rule, each one rule."""

from __future__ import annotations

from typing import Any

from tests.torture.checkers.uploads import check
from tests.torture.findings import Finding
from tests.torture.histories import call
from tests.torture.history import Call

GOOD: dict[str, Any] = {"files": {"a": "1"}, "objects": {"a": "1"}, "times_stored": {"a": 1}}


def ran(**files: str) -> Call:
    return call("upload", 0, 1, folders=["f"], answer={"files": files})


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def test_a_file_that_is_stored_once_and_whole_breaks_nothing() -> None:
    killed = call("upload", 0, 1, "unknown", folders=["f"])

    assert check([ran(a="uploaded"), ran(a="skipped"), ran(a="failed"), killed], **GOOD) == []


def test_a_file_that_is_stored_twice() -> None:
    assert rules(check([], **(GOOD | {"times_stored": {"a": 2}}))) == ["once"]


def test_a_file_that_is_missing() -> None:
    assert rules(check([], **(GOOD | {"objects": {}}))) == ["whole"]


def test_a_file_that_is_another() -> None:
    assert rules(check([], **(GOOD | {"objects": {"a": "2"}}))) == ["whole"]


def test_an_object_of_no_file() -> None:
    assert rules(check([], **(GOOD | {"objects": {"a": "1", "b": "2"}}))) == ["once"]


def test_an_upload_that_was_promised_and_is_not_there() -> None:
    wrong = {"files": {}, "objects": {}, "times_stored": {}}

    assert rules(check([ran(a="uploaded")], **wrong)) == ["promised"]
    assert rules(check([ran(a="skipped")], **wrong)) == ["promised"]


def test_a_conflict_where_there_is_none() -> None:
    assert rules(check([ran(a="conflict")], **GOOD)) == ["clean"]
