"""The history survives its writer, with whole lines and with calls without an answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.torture.history import LINGERS_SECONDS, Call, Journal, Running, read
from tests.torture.resource import Resource, StaleFence


def recorded(folder: Path, end: Callable[[Running], object], **options: Any) -> Call:
    """The call that ended like this, as it is read."""
    with Journal(folder / "w0.1.jsonl").call("void", **options) as running:
        end(running)
    [call] = read(folder, {}, over=10**9)
    return call


def test_a_call_is_read_as_it_was_made(tmp_path: Path) -> None:
    call = recorded(tmp_path, lambda call: (call.note(fence=7), call.ok(number=3)), account="a")

    assert (call.do, call.asked, call.outcome) == ("void", {"account": "a"}, "ok")
    assert (call.answer, [note for _at, note in call.notes]) == ({"number": 3}, [{"fence": 7}])
    assert call.began <= call.notes[0][0] <= call.ended == call.latest


def test_a_call_without_an_answer_may_take_effect_for_some_time(tmp_path: Path) -> None:
    call = recorded(tmp_path, lambda running: running.unanswered(TimeoutError()))

    assert (call.outcome, call.latest) == ("unknown", call.ended + LINGERS_SECONDS)


def test_a_call_of_a_killed_process_ends_with_the_process(tmp_path: Path) -> None:
    recorded(tmp_path, Running.ok, lingers=5.0)
    file = tmp_path / "w0.1.jsonl"
    began, ended = file.read_text().splitlines(keepends=True)
    file.write_text(began + ended[:-9])

    [call] = read(tmp_path, {"w0.1": 70.0}, over=10**9)

    assert (call.outcome, call.ended, call.latest) == ("unknown", 70.0, 75.0)


def test_errors_are_answers_or_crashes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "w0.1.jsonl")
    with journal.call("first", refusals=(KeyError,)):
        raise KeyError
    with pytest.raises(ZeroDivisionError), journal.call("second"):
        _ = 1 / 0

    refused, crashed = read(tmp_path, {}, over=10**9)

    assert (refused.outcome, refused.answer["error"]) == ("refused", "KeyError")
    assert crashed.answer == {"crashed": "ZeroDivisionError('division by zero')"}


def test_the_calls_of_all_processes_are_sorted_by_their_start(tmp_path: Path) -> None:
    first, second = (Journal(tmp_path / f"{life}.jsonl") for life in ("w1.1", "w0.1"))
    for journal in (first, second, first):
        with journal.call("delete"):
            pass

    assert [call.by.split("/")[0] for call in read(tmp_path, {}, 0)] == ["w1.1", "w0.1", "w1.1"]


def test_the_resource_keeps_each_write_and_refuses_lower_fences(tmp_path: Path) -> None:
    resource = Resource(tmp_path / "lock")
    assert resource.read(5) == 0
    resource.write(5, 1)
    assert resource.read(7) == 1

    with pytest.raises(StaleFence):
        resource.write(5, 2)

    resource.write(7, 2)
    assert resource.served() == [(5, 1), (7, 2)]
