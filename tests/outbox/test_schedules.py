"""Tasks that are enqueued at the times of a cron expression."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.checks import run_checks

from outbox import schedules
from outbox.framework import task_backends
from outbox.models import TaskItem
from outbox.schedules import Schedules
from tests.outbox.conftest import RunTasks
from tests.outbox.functions import CALLS, note
from tests.requests import Requests

At = Callable[[str], None]
NIGHTLY = {"task": note.module_path, "cron": "0 3 * * *", "args": ["report"]}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """Sets the clock of schedules, in UTC."""

    def set_clock(text: str) -> None:
        time = datetime.fromisoformat(text).replace(tzinfo=UTC)
        monkeypatch.setattr(schedules, "now", lambda: time)

    return set_clock


def test_a_schedule_begins_with_its_next_time_and_runs_a_missed_one_once(
    at: At, backend: dict[str, Any], run_tasks: RunTasks
) -> None:
    backend["SCHEDULE"] = {"nightly": NIGHTLY}
    ran = []
    for time in (
        "2026-11-27 10:00",
        "2026-11-28 02:59:59",
        "2026-11-28 03:00",
        "2026-11-28 03:00:01",
        "2026-11-29 02:59",
        # Nothing ran for some days.
        "2026-12-05 01:00",
        "2026-12-05 03:00:00.5",
    ):
        at(time)
        ran.append(len(run_tasks()))

    assert ran == [0, 0, 1, 0, 0, 1, 1]
    assert CALLS == [["report"]] * 3


def test_a_schedule_that_is_not_due_delays_no_other(at: At, run_tasks: RunTasks) -> None:
    hourly = NIGHTLY | {"cron": "0 * * * *", "args": ["hourly"]}
    worker = Schedules("default", {"nightly": NIGHTLY, "hourly": hourly})

    for time in ("2026-11-27 10:30", "2026-11-27 11:00"):
        at(time)
        worker.enqueue_due()

    run_tasks()
    assert CALLS == [["hourly"]]


def test_each_time_is_enqueued_once_however_many_workers_there_are(
    at: At, requests_sent: Requests
) -> None:
    workers = [Schedules("default", {"nightly": NIGHTLY}) for _worker in range(3)]
    for time in ("2026-11-27 10:00", "2026-11-28 03:00", "2026-11-28 03:00:05"):
        at(time)
        for worker in workers:
            worker.enqueue_due()
        if time == "2026-11-28 03:00":
            assert requests_sent.operations[-4:-2] == ["GetItem", "TransactWriteItems"]
            requests_sent.clear()

    # Each worker knows when the next time is.
    assert requests_sent.operations == []
    assert len([item for item in TaskItem.scan() if item.sort != "slot"]) == 1


def test_a_changed_schedule_begins_with_its_next_time(
    at: At, backend: dict[str, Any], run_tasks: RunTasks
) -> None:
    ran = []
    for time, hour in (("27 02:00", 3), ("27 03:00", 3), ("27 10:00", 5), ("28 05:00", 5)):
        backend["SCHEDULE"] = {"nightly": NIGHTLY | {"cron": f"0 {hour} * * *"}}
        at(f"2026-11-{time}")
        ran.append(len(run_tasks()))

    assert ran == [0, 1, 0, 1]


def test_a_schedule_that_cannot_be_enqueued_is_logged_and_tried_again_once_a_minute(
    at: At, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = Schedules("default", {"nightly": NIGHTLY | {"task": "no.such.function"}})
    for time in ("03:00:00", "03:00:05", "03:00:59", "03:01:01"):
        at(f"2026-11-28 {time}")
        schedule.enqueue_due()

    assert caplog.text.count("nightly cannot be enqueued") == 2


def test_schedules_of_two_backends_may_have_the_same_name(at: At, settings: Any) -> None:
    settings.TASKS = {alias: {"BACKEND": "outbox.TaskBackend"} for alias in ("default", "other")}
    backends = [Schedules(alias, {"nightly": NIGHTLY}) for alias in settings.TASKS]
    for time in ("2026-11-27 10:00", "2026-11-28 03:00"):
        at(time)
        for schedules_of_backend in backends:
            schedules_of_backend.enqueue_due()

    assert len([item for item in TaskItem.scan() if item.sort != "slot"]) == 2


def test_times_are_those_of_the_time_zone(
    at: At, backend: dict[str, Any], run_tasks: RunTasks, settings: Any
) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    backend["SCHEDULE"] = {"nightly": NIGHTLY}
    ran = []
    for time in ("2026-11-27 10:00", "2026-11-27 17:59", "2026-11-27 18:00"):
        at(time)
        ran.append(len(run_tasks()))

    assert ran == [0, 0, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"cron": "every night"},
        {"cron": 3},
        {"task": "tests.outbox.functions.removed"},
        {"task": "tests.outbox.functions.CALLS"},
        {"at": "03:00"},
        {"args": "report"},
        {"args": [{1}]},
        {"kwargs": ["report"]},
    ],
)
def test_check_reports_a_schedule_that_cannot_be_used(
    backend: dict[str, Any], changes: dict[str, Any]
) -> None:
    backend["SCHEDULE"] = {"nightly": NIGHTLY}
    assert task_backends["default"].check() == []

    backend["SCHEDULE"]["other"] = NIGHTLY | changes

    [error] = task_backends["default"].check()
    assert (error.id, "other" in error.msg) == ("outbox.E001", True)


def test_check_reports_what_tasks_does_not_know(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "QUEUE": ["mails"]}}

    [error] = task_backends["default"].check()

    assert (error.id, error.msg) == ("outbox.E001", "TASKS['default']: QUEUE is unknown.")


@pytest.mark.parametrize(
    ("options", "id_"),
    [
        ({"SHARD": 8}, "outbox.E001"),
        ({"SHARDS": 0}, "outbox.E001"),
        ({"SHARDS": "8"}, "outbox.E001"),
        ({"SHARDS": 1_001}, "outbox.E001"),
        ({"KEEP_DAYS": -1}, "outbox.E001"),
        ({"KEEP_DAYS": 10**12}, "outbox.E001"),
        ({"RETRY": {"*": {"tries": 3}}}, "outbox.E001"),
        ({"RETRY": {"*": {"attempts": 0}}}, "outbox.E001"),
        ({"RETRY": {"members.tasks.no_such_task": {"attempts": 2}}}, "outbox.E001"),
        ({"RETRY": {"*": {"never": ["no.such.Error"]}}}, "outbox.E001"),
        ({"RETRY": {"*": {"never": ["builtins.len"]}}}, "outbox.E001"),
        ({"RETRY": {"*": {"never": [5]}}}, "outbox.E001"),
        ({"RETRY": ["*"]}, "outbox.E001"),
        ({"SCHEDULE": ["nightly"]}, "outbox.E001"),
        ({"RETRY": {"*": {"never": "builtins.ValueError"}}}, "outbox.E001"),
    ],
)
def test_check_reports_options_that_cannot_be_used(
    backend: dict[str, Any], options: dict[str, Any], id_: str
) -> None:
    backend.update(options)

    [error] = [item for item in run_checks() if item.id and item.id.startswith("outbox")]
    assert error.id == id_
