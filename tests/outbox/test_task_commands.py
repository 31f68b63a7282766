"""The commands for tasks, and what operators do with failed ones."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from dynamo import Transaction
from locks import Lock
from outbox import models, steps
from outbox.exceptions import NotFailed
from outbox.framework import task_backends
from outbox.management.commands import checktasks
from outbox.models import TaskItem, now
from outbox.worker import Worker
from tests.commands import run
from tests.conftest import PATIENCE_SECONDS
from tests.items import put_item
from tests.outbox import functions
from tests.outbox.conftest import RunTasks
from tests.outbox.functions import CALLS, note
from tests.programs import start


def printed(*arguments: str) -> list[dict[str, Any]]:
    out, _log, _code = run(*arguments, "--json")
    return [json.loads(line) for line in out.splitlines()]


def failed(run_tasks: RunTasks) -> Any:
    result = functions.fail_for_good.enqueue()
    run_tasks()
    return result


def test_runtasks_prints_a_line_for_each_attempt() -> None:
    note.enqueue(1)
    functions.fail.enqueue("oh")

    lines, _err, code = run("runtasks", "--once", "--threads", "1")

    assert code == 0
    # The task that failed may be due again at once.
    assert {line.split(",")[0] for line in lines.splitlines()} == {
        "repeated   tests.outbox.functions.fail",
        "successful tests.outbox.functions.note",
    }
    note.using(queue_name="mails").enqueue(2)
    [ran] = printed("runtasks", "--once", "--queue", "mails")
    assert (ran["outcome"], ran["attempt"], ran["error"]) == ("successful", 1, "")


@pytest.mark.site
def test_a_reader_that_closes_the_pipe_ends_the_worker_after_its_task() -> None:
    result = note.enqueue(1)
    process = start("manage.py", "runtasks", "--threads", "1")
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.close()

    assert process.wait(timeout=PATIENCE_SECONDS) == 141
    assert process.stderr.read() == ""
    process.stderr.close()
    result.refresh()
    assert (result.status, result.attempts) == ("SUCCESSFUL", 1)


def test_runtasks_without_a_queue_of_this_backend_says_what_to_set(settings: Any) -> None:
    _out, err, code = run("runtasks", "--queue", "default", "--queue", "unknown")
    assert ("the queue 'unknown'" in err, code) == (True, 1)
    _out, err, code = run("runtasks", "--once", "--lease", "0")
    assert ("lease_seconds must be" in err, code) == (True, 2)
    settings.TASKS = {"default": {"BACKEND": "outbox.ImmediateBackend"}}
    assert "No backend in TASKS" in run("runtasks", "--once")[1]


@pytest.mark.parametrize(
    ("queues", "missing", "said"),
    [
        ([], "", "at least one name in QUEUES"),
        (["default"], "locks", "add locks to INSTALLED_APPS"),
        (["default"], "outbox", "add outbox to INSTALLED_APPS"),
    ],
)
def test_a_backend_whose_tasks_could_not_run_is_refused(
    settings: Any, queues: list[str], missing: str, said: str
) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != missing]
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "QUEUES": queues}}
    for use in (note.enqueue, Worker, lambda: call_command("check")):
        with pytest.raises(ImproperlyConfigured, match=said):
            use()


def test_listtasks_lists_what_waits_runs_and_has_failed(run_tasks: RunTasks) -> None:
    ended = failed(run_tasks)
    waiting = note.enqueue(1)
    runs = note.using(queue_name="mails").enqueue(2)
    assert steps.claim(steps.find(runs.id), Lock("w").acquire())

    listed = {task["id"]: task for task in printed("listtasks")}

    assert {id_: task["status"] for id_, task in listed.items()} == {
        ended.id: "FAILED",
        waiting.id: "READY",
        runs.id: "RUNNING",
    }
    assert (listed[runs.id]["worker"], listed[runs.id]["queue"]) == ("w", "mails")
    assert 0 <= listed[waiting.id]["seconds"] < 3600
    assert re.search(rf"^FAILED +\d+ s  {ended.id}  ", run("listtasks")[0], re.MULTILINE)


def test_a_failed_task_runs_again_after_retrytask_and_a_discarded_one_is_gone(
    run_tasks: RunTasks, backend: dict[str, Any]
) -> None:
    result = failed(run_tasks)
    out, _err, code = run("retrytask", result.id)
    assert (out, code) == (f"The task {result.id} runs again.\n", 0)
    result.refresh()
    assert (result.status, result.finished_at) == ("READY", None)

    [again] = run_tasks()
    assert (again.outcome, again.attempt) == ("failed", 2)
    result.refresh()
    assert len(result.errors) == 2

    steps.discard(result.id)
    assert list(TaskItem.scan()) == []


@pytest.mark.parametrize("operation", [steps.restart, steps.discard])
def test_only_a_failed_task_is_restarted_or_discarded_and_only_once(
    operation: Callable[..., None], run_tasks: RunTasks
) -> None:
    ready, ended = note.enqueue(1), note.enqueue(2)
    run_tasks()
    ready = note.enqueue(3)
    for id_ in (ready.id, ended.id, "unknown", ""):
        with pytest.raises(NotFailed):
            operation(id_)
    assert "has failed for good" in run("retrytask", ready.id)[1]

    result = failed(run_tasks)
    write = Transaction()
    operation(result.id, write=write)
    # Another call is faster.
    operation(result.id)
    with pytest.raises(steps.LOST):
        write.commit()
    with pytest.raises(NotFailed):
        operation(result.id)


def test_checktasks_names_what_has_waited_for_five_minutes_and_no_worker_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = note.enqueue(1)
    assert steps.claim(steps.find(note.enqueue(2).id), Lock("w").acquire())
    assert run("checktasks")[2] == 0

    monkeypatch.setattr(models, "now", lambda: now() + timedelta(minutes=5, seconds=1))

    [found] = printed("checktasks")
    assert {kind: ids for kind, ids in found.items() if ids} == {"waiting": [waiting.id]}
    assert run("checktasks")[2] == 1


def test_checktasks_names_a_task_whose_killed_worker_left_its_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = note.enqueue(1)
    assert steps.claim(steps.find(runs.id), Lock("w").acquire())
    assert run("checktasks")[2] == 0

    monkeypatch.setattr(checktasks, "now", lambda: now() + timedelta(minutes=6))

    assert printed("checktasks")[0]["stuck"] == [runs.id]


def test_checktasks_names_what_is_wrong(
    run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run("checktasks") == ("", "", 0)
    ended = failed(run_tasks)
    note.enqueue(1)
    item = steps.find(note.enqueue("x").id)
    item.change(function="tests.outbox.functions.removed")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "unfinished.py").write_text("def function(:")
    broken_module = steps.find(note.enqueue("y").id)
    broken_module.change(function="unfinished.function")
    stuck = note.enqueue(2)
    lease = Lock("w").acquire()
    assert steps.claim(steps.find(stuck.id), lease)
    lease.release(remove=True)
    damaged = steps.find(note.enqueue("damaged").id)
    broken = {**damaged.serialize(), "arguments": {"N": "1"}}
    put_item(TaskItem.table(), **broken)

    [found] = printed("checktasks")
    found["unknown"].sort()
    out, err, code = run("listtasks")

    assert (len(out.splitlines()), code) == (5, 1)
    assert f"1 damaged task could not be read: {damaged.partition}#{damaged.sort}." in err
    key = f"{damaged.partition}#{damaged.sort}"
    assert found == {
        "waiting": [],
        "stuck": [stuck.id],
        "failed": [ended.id],
        "unknown": sorted([item.id, broken_module.id]),
        "damaged": [key],
    }
    out, _err, code = run("checktasks")
    assert (f"stuck    {stuck.id}\n" in out, code) == (True, 1)
    assert CALLS == []
    assert task_backends["default"].check() == []
