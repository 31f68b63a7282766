"""Backends without a worker, `run_tasks` in tests, and the warnings that nothing runs the tasks."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from dynamo import Transaction
from dynamo.signals import serving
from locks import Lock
from outbox import backend as backend_module, models, serverless, steps
from outbox.backend import TaskBackend
from outbox.exceptions import NotFinished
from outbox.framework import base
from outbox.models import now
from outbox.test import run_tasks
from tests.outbox import functions
from tests.outbox.functions import CALLS, Bill, bill, note
from tests.outbox.test_workers import Context
from tests.waiting import wait_until

_FRAMEWORK = base.__name__.removesuffix(".base")
BACKENDS = {
    "ours": {"default": {"BACKEND": "outbox.ImmediateBackend"}},
    # As without TASKS.
    "Django's": {"default": {"BACKEND": f"{_FRAMEWORK}.backends.immediate.ImmediateBackend"}},
}


@pytest.fixture(params=BACKENDS)
def immediate(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.TASKS = BACKENDS[request.param]


@pytest.mark.usefixtures("immediate")
def test_the_process_runs_a_task_after_the_commit_and_not_without_it() -> None:
    with Transaction() as write:
        Bill.create(order="1", write=write)
        result = note.using(write=write).enqueue("one")
        assert (CALLS, result.status) == ([], "READY")
    assert CALLS == [["one"]]
    assert (result.status, result.return_value) == ("SUCCESSFUL", "one")

    note.using(write=Transaction()).enqueue("never")
    assert note.enqueue("two").return_value == "two"
    assert CALLS == [["one"], ["two"]]


@pytest.mark.usefixtures("immediate")
def test_the_process_runs_a_task_that_ends_in_a_transaction_and_a_failure_stops_no_page() -> None:
    result = bill.enqueue("7")
    assert (result.status, result.return_value) == ("SUCCESSFUL", "7")
    assert [item.order for item in Bill.scan()] == ["7"]
    result = functions.forget_to_commit.enqueue()
    assert (result.status, result.errors[0].exception_class) == ("FAILED", NotFinished)
    with Transaction() as write:
        Bill.create(order="8", write=write)
        result = functions.fail.using(write=write).enqueue("oh")

    assert (result.status, result.errors[0].exception_class) == ("FAILED", ValueError)


@pytest.mark.usefixtures("immediate")
def test_a_worker_of_a_project_without_our_backend_says_what_to_set() -> None:
    for run in (run_tasks, lambda: serverless.run_tasks({}, Context(60))):
        with pytest.raises(ImproperlyConfigured, match="No backend in TASKS"):
            run()


def test_a_test_runs_what_was_enqueued_when_it_says_so() -> None:
    note.enqueue(1)
    assert CALLS == []

    [ran] = run_tasks()
    assert (CALLS, ran.outcome) == ([[1]], "successful")

    functions.fail_for_good.enqueue()
    [ran] = run_tasks(raise_errors=False)
    assert (ran.outcome, ran.shown_error) == ("failed", "ValueError")
    functions.fail.enqueue("oh")
    with pytest.raises(ValueError, match="oh"):
        run_tasks()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock of tasks ahead."""

    def move(seconds: float) -> None:
        for module in (models, steps):
            monkeypatch.setattr(module, "now", lambda: now() + timedelta(seconds=seconds))
        monkeypatch.setattr(TaskBackend, "_looks_at", 0.0)

    return move


def warnings() -> list[str]:
    return [str(item.id) for item in run_checks(tags=["dynamodb"], include_deployment_checks=True)]


def test_a_task_that_is_started_again_has_not_waited_since_it_was_enqueued(
    later: Callable[[float], None], backend: dict[str, Any]
) -> None:
    backend["SHARDS"] = 1
    result = functions.fail_for_good.enqueue()
    run_tasks(raise_errors=False)
    later(600)

    steps.restart(result.id)

    assert "outbox.W001" not in warnings()
    later(1000)
    assert "outbox.W001" in warnings()


def test_a_task_that_is_due_again_has_not_waited_since_it_was_enqueued(
    later: Callable[[float], None], backend: dict[str, Any]
) -> None:
    backend["SHARDS"] = 1
    item = steps.find(note.enqueue().id)
    assert steps.claim(item, Lock("w").acquire())
    later(600)
    steps.place_again(item, pause=1, error=ValueError())

    later(602)
    assert "outbox.W001" not in warnings()
    later(1000)
    assert "outbox.W001" in warnings()


def test_check_and_a_log_line_say_that_tasks_wait_and_nothing_runs_them(
    later: Callable[[float], None], backend: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    backend["SHARDS"] = 1
    note.enqueue()
    assert "outbox.W001" not in warnings()

    later(600)

    assert "outbox.W001" in warnings()
    with caplog.at_level(logging.WARNING, backend_module.__name__):
        note.enqueue()
        wait_until(lambda: "Does manage.py runtasks run?" in caplog.text)
    # Also if a task is in front that a worker runs, or ran when it was killed.
    first = steps.find(note.using(priority=100).enqueue().id)
    lease = Lock("killed").acquire()
    assert steps.claim(first, lease)
    assert "outbox.W001" in warnings()
    lease.release(remove=True)
    looks_at = TaskBackend._looks_at
    note.enqueue()
    assert TaskBackend._looks_at == looks_at


def test_runserver_runs_tasks_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    monkeypatch.setattr(apps.get_app_config("outbox"), "stop", stop)
    serving.send(None)
    note.enqueue("one")

    wait_until(lambda: CALLS == [["one"]])

    stop.set()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "outbox"]
    thread.join()
