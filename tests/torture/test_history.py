"""The history survives its writer, with whole lines and with calls without an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.history import LINGERS_SECONDS, Call, Journal, read
from tests.torture.resource import Resource, StaleFence


def written(folder: Path, name: str = "w0.1") -> Journal:
    return Journal(folder / f"{name}.jsonl")


def the_call(folder: Path, **ends: float) -> Call:
    [call] = read(folder, ends, over=10**9)
    return call


def test_a_call_is_read_as_it_was_made(tmp_path: Path) -> None:
    with written(tmp_path).call("issue", account="a") as running:
        running.note(fence=7)
        running.ok(number=3)

    call = the_call(tmp_path)
    assert (call.do, call.asked, call.outcome) == ("issue", {"account": "a"}, "ok")
    assert call.answer == {"number": 3}
    assert [note for _at, note in call.notes] == [{"fence": 7}]
    assert call.began <= call.notes[0][0] <= call.ended == call.latest


def test_a_refused_call_has_the_name_of_its_error(tmp_path: Path) -> None:
    with written(tmp_path).call("void") as running:
        running.refused("AlreadyVoided", reason="wrong")

    call = the_call(tmp_path)
    assert (call.outcome, call.answer) == ("refused", {"error": "AlreadyVoided", "reason": "wrong"})


def test_a_call_without_an_answer_may_take_effect_for_some_time(tmp_path: Path) -> None:
    with written(tmp_path).call("delete") as running:
        running.unanswered(TimeoutError())

    call = the_call(tmp_path)
    assert call.outcome == "unknown"
    assert call.latest == call.ended + LINGERS_SECONDS


def test_a_call_of_a_killed_process_ends_with_the_process(tmp_path: Path) -> None:
    with written(tmp_path).call("delete", lingers=5.0):
        pass
    file = tmp_path / "w0.1.jsonl"
    began, _ended = file.read_text().splitlines(keepends=True)
    file.write_text(began)

    call = the_call(tmp_path, **{"w0.1": 70.0})

    assert (call.outcome, call.ended, call.latest) == ("unknown", 70.0, 75.0)


def test_half_a_line_is_ignored(tmp_path: Path) -> None:
    with written(tmp_path).call("delete") as running:
        running.ok()
    with (tmp_path / "w0.1.jsonl").open("a") as file:
        file.write('{"n": 1, "at": 3, "do": "regi')

    assert the_call(tmp_path).do == "delete"


def test_an_unexpected_exception_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), written(tmp_path).call("delete"):
        _ = 1 / 0

    assert the_call(tmp_path).answer == {"crashed": "ZeroDivisionError('division by zero')"}


def test_the_calls_of_all_processes_are_sorted_by_their_start(tmp_path: Path) -> None:
    first, second = written(tmp_path, "w1.1"), written(tmp_path, "w0.1")
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
