"""The upload checker reports a history that breaks a rule, and no other."""

from typing import Any

import pytest

from tests.torture.checkers.uploads import check
from tests.torture.histories import call
from tests.torture.history import Call

GOOD: dict[str, Any] = {"files": {"a": "1"}, "objects": {"a": "1"}, "times_stored": {"a": 1}}
NOTHING: dict[str, Any] = {"files": {}, "objects": {}, "times_stored": {}}
KILLED = call("upload", "unknown")


def ran(**files: str) -> Call:
    return call("upload", answer={"files": files})


HISTORIES: dict[str, tuple[list[Call], dict[str, Any], list[str]]] = {
    "a file stored once": ([ran(a="uploaded"), ran(a="skipped"), ran(a="failed")], GOOD, []),
    "a killed run": ([KILLED], GOOD, []),
    "a file stored twice": ([], GOOD | {"times_stored": {"a": 2}}, ["once"]),
    "a missing file": ([], GOOD | {"objects": {}}, ["whole"]),
    "other contents": ([], GOOD | {"objects": {"a": "2"}}, ["whole"]),
    "an object without a file": ([], GOOD | {"objects": {"a": "1", "b": "2"}}, ["once"]),
    "an uploaded file that is missing": ([ran(a="uploaded")], NOTHING, ["promised"]),
    "a skipped file that is missing": ([ran(a="skipped")], NOTHING, ["promised"]),
    "a conflict": ([ran(a="conflict")], GOOD, ["clean"]),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_of_uploads_has_the_findings_of_the_rules_that_it_breaks(name: str) -> None:
    calls, stored, rules = HISTORIES[name]

    assert [finding.rule for finding in check(calls, **stored)] == rules
