"""The history survives its writer, with whole lines and with calls without an answer."""

from pathlib import Path

import pytest

from dynamo import Unavailable
from tests.torture.history import LINGERS_SECONDS, Journal, read


def test_a_call_of_a_killed_process_ends_with_the_process(tmp_path: Path) -> None:
    file = tmp_path / "w0.1.jsonl"
    with Journal(file).call("void", lingers=5.0) as running:
        running.ok()
    began, ended = file.read_text().splitlines(keepends=True)
    file.write_text(began + ended[:-9])

    [call] = read(tmp_path, {"w0.1": 70.0}, over=10**9)

    assert (call.outcome, call.ended, call.latest) == ("unknown", 70.0, 75.0)


def test_errors_are_refusals_missing_answers_or_crashes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "w0.1.jsonl")
    with journal.call("first", refusals=(KeyError,)):
        raise KeyError
    with journal.call("second"):
        raise Unavailable("PutItem", None)
    with pytest.raises(ZeroDivisionError), journal.call("third"):
        _ = 1 / 0

    refused, unanswered, crashed = read(tmp_path, {}, over=10**9)

    assert (refused.outcome, refused.answer["error"]) == ("refused", "KeyError")
    # Its request may still be carried out.
    assert unanswered.outcome == "unknown"
    assert unanswered.latest == unanswered.ended + LINGERS_SECONDS
    assert crashed.answer == {"crashed": "ZeroDivisionError('division by zero')"}
