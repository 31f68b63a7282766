"""Attempts that fail, workers that are stopped, killed or slow, and tasks that cannot run."""

import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import ConnectionHandler, connections
from pytest_django import DjangoDbBlocker

from dynamo import Rejected
from locks import Lease, Lock
from outbox import schedules, serverless, steps, worker
from outbox.exceptions import InvalidReturnValue, NotFinished, TaskTooSlow, UnknownTask, WorkerLost
from outbox.framework import signals
from outbox.models import TaskItem, now
from outbox.signals import tasks_looked_for
from outbox.tasks import Retry
from outbox.worker import Ran, Worker
from tests.commands import run
from tests.faults.kinds import Answer, CloseBefore
from tests.faults.proxy import FaultProxy
from tests.items import put_item
from tests.locks.items import abandoned
from tests.outbox import functions
from tests.outbox.conftest import RunTasks
from tests.outbox.functions import CALLS, GO, note, wait
from tests.programs import start
from tests.requests import Requests
from tests.waiting import wait_until


def until_done(run_tasks: RunTasks) -> list[str]:
    """The outcomes of all attempts."""
    outcomes: list[str] = []
    while ran := run_tasks():
        outcomes += [attempt.outcome for attempt in ran]
    return outcomes


def test_a_task_that_fails_is_repeated_and_keeps_its_errors(run_tasks: RunTasks) -> None:
    result = functions.fail_twice.enqueue("a")

    assert until_done(run_tasks) == ["repeated", "repeated", "successful"]

    result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", "a", 3)
    assert [error.exception_class for error in result.errors] == [ValueError] * 2
    assert "ValueError: a" in result.errors[0].traceback


@pytest.mark.parametrize(
    ("retry", "task", "attempts"),
    [
        ({"*": {"attempts": 2, "delay": 0}}, functions.fail, 2),
        ({functions.fail.module_path: {"attempts": 3, "delay": 0}}, functions.fail, 3),
        ({"*": {"never": ["builtins.ValueError"]}}, functions.fail, 1),
        ({"*": {"never": ["builtins.KeyError"], "attempts": 2, "delay": 0}}, functions.fail, 2),
        # The task's own, which the settings of its path overrule.
        ({"*": {"attempts": 2, "delay": 0}}, functions.fail_for_good, 1),
        (
            {functions.fail_for_good.module_path: {"attempts": 2, "delay": 0}},
            functions.fail_for_good,
            2,
        ),
    ],
)
def test_a_task_fails_for_good_after_its_attempts_and_can_be_seen(
    backend: dict[str, Any], run_tasks: RunTasks, retry: Any, task: Any, attempts: int
) -> None:
    told: list[str] = []

    def tell(task_result: Any, **_signal: object) -> None:
        told.append(task_result.status)

    backend["RETRY"].update(retry)
    result = task.enqueue()
    signals.task_finished.connect(tell)

    assert until_done(run_tasks) == ["repeated"] * (attempts - 1) + ["failed"]

    signals.task_finished.disconnect(tell)
    assert told == ["FAILED"]
    result.refresh()
    assert (result.status, len(result.errors)) == ("FAILED", attempts)
    assert [item.id for item in TaskItem.query("failed#default")] == [result.id]


def test_an_error_without_a_text_is_reported_as_others(run_tasks: RunTasks) -> None:
    result = functions.fail_unreadably.enqueue()

    assert until_done(run_tasks) == ["repeated", "failed"]

    result.refresh()
    assert [error.exception_class for error in result.errors] == [functions.Unreadable] * 2


@pytest.mark.parametrize("task", [functions.give, functions.bill_and_give])
@pytest.mark.parametrize("kind", functions.UNUSABLE)
def test_a_task_whose_return_value_cannot_be_stored_runs_once_and_fails_for_good(
    run_tasks: RunTasks, task: Any, kind: str
) -> None:
    result = task.enqueue(kind)

    assert until_done(run_tasks) == ["failed"]

    result.refresh()
    assert [error.exception_class for error in result.errors] == [InvalidReturnValue]
    assert (CALLS, list(functions.Bill.scan())) == ([kind], [])


def test_a_task_ends_with_the_receipt_that_it_issues_or_that_another_one_has_issued(
    run_tasks: RunTasks,
) -> None:
    results = [functions.receipt.enqueue("7") for _ in range(2)]

    assert [attempt.outcome for attempt in run_tasks()] == ["successful"] * 2

    for result in results:
        result.refresh()
        assert (result.status, result.return_value) == ("SUCCESSFUL", "7")
    assert [item.number for item in functions.Receipt.query("2026")] == [1]


def test_times_of_repetitions_are_random_and_twice_as_long_each_time() -> None:
    retry = Retry(delay=10, longest=60, attempts=9)
    for failures, most in [(1, 10), (2, 20), (3, 40), (4, 60), (8, 60)]:
        pauses = [retry.pause(failures, ValueError()) or 0 for _try in range(500)]
        assert 0 <= min(pauses) < most * 0.1
        assert most * 0.9 < max(pauses) <= most
    assert retry.pause(9, ValueError()) is None


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"function": "tests.outbox.functions.removed"}, UnknownTask),
        ({"function": "tests.outbox.functions.CALLS"}, UnknownTask),
        ({"function": "no.such.module"}, UnknownTask),
        ({"arguments": [[], {"unknown": 1}]}, TypeError),
        ({"function": functions.forget_to_commit.module_path}, NotFinished),
    ],
)
def test_a_task_that_cannot_run_is_repeated_and_the_next_ones_run(
    run_tasks: RunTasks, values: dict[str, Any], error: type[Exception]
) -> None:
    result = functions.wait.enqueue()
    # As another version of the program stored it.
    steps.find(result.id).change(**values)
    note.enqueue("next")

    ran = {attempt.id: attempt for attempt in run_tasks()}

    assert (ran[result.id].outcome, type(ran[result.id].error)) == ("repeated", error)
    assert CALLS == [["next"]]


def test_a_task_whose_backend_was_renamed_is_run_by_the_backend_that_has_its_queue(
    settings: Any, run_tasks: RunTasks
) -> None:
    result = note.using(queue_name="mails").enqueue("mail")
    note.enqueue("next")
    backends = {"ours": ["mails"], "default": ["default"]}
    settings.TASKS = {
        alias: {"BACKEND": "outbox.TaskBackend", "QUEUES": queues}
        for alias, queues in backends.items()
    }
    steps.find(result.id).change(backend="renamed")

    run_tasks()

    assert sorted(CALLS) == [["mail"], ["next"]]
    assert (note.get_result(result.id).status, run("checktasks")[2]) == ("SUCCESSFUL", 0)


def test_a_task_that_cannot_be_placed_again_holds_up_no_other(
    run_tasks: RunTasks, backend: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    backend["RETRY"] = {functions.fail.module_path: {"unknown": 1}}
    functions.fail.enqueue()
    run_tasks()
    note.enqueue("next")

    run_tasks()

    assert CALLS == ["no", ["next"]]
    assert "are left to be repeated" in caplog.text


@pytest.mark.parametrize("text", ["\N{HIRAGANA LETTER A}" * 4_000, "\0" * 4_000, "\udcff" * 4_000])
def test_errors_of_a_task_with_large_arguments_fit_into_its_record(text: str) -> None:
    result = functions.fail.enqueue("x" * 320_000)
    for number in range(12):
        item = steps.find(result.id)
        assert steps.claim(item, Lock(f"w{number}").acquire())
        steps.place_again(item, pause=0, error=ValueError(text))

    result.refresh()
    assert result.attempts == 12
    assert result.errors[-1].exception_class is ValueError


def test_an_end_that_is_recorded_is_not_repeated_if_the_task_cannot_be_deleted(
    proxy: FaultProxy, impatient: None, run_tasks: RunTasks
) -> None:
    proxy.plan("DeleteItem", Answer(400, "ThrottlingException"), times=10_000)
    # The first one has a record from the beginning.
    results = [note.using(request_id="form-1").enqueue(1), note.enqueue(2)]
    lease = Lock("w").acquire()
    for result in results:
        attempt = steps.claim(steps.find(result.id), lease)
        assert attempt
        assert worker._run(attempt) == ("successful", None)
    proxy.forget()
    lease.release(remove=True)

    assert [note.get_result(result.id).return_value for result in results] == [1, 2]
    run_tasks()
    assert CALLS == [[1], [2]]
    assert [item.sort for item in TaskItem.scan()] == ["record", "record"]


def test_connections_of_a_task_to_other_databases_are_closed(
    run_tasks: RunTasks,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    django_db_blocker: DjangoDbBlocker,
) -> None:
    engine = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "db"}
    databases = ConnectionHandler({"default": {}, "other": engine}).settings
    monkeypatch.setitem(connections.settings, "other", databases["other"])
    functions.ask_another_database.enqueue()

    with django_db_blocker.unblock():
        [ran] = run_tasks()

    assert ran.outcome == "successful"
    [connection] = CALLS
    wait_until(lambda: connection.connection is None)


# Other workers ------------------------------------------------------------------------------------


@pytest.fixture
def running() -> Iterator[Callable[..., threading.Event]]:
    """Starts a worker in a thread; returns the event that stops it."""
    started: list[tuple[threading.Event, threading.Thread]] = []

    def start(**options: Any) -> threading.Event:
        stop = threading.Event()
        thread = threading.Thread(target=Worker(stop=stop, **options).run)
        thread.start()
        started.append((stop, thread))
        return stop

    yield start
    GO.set()
    for stop, thread in started:
        stop.set()
        thread.join()


def test_a_damaged_task_is_left_out_and_logged_once_and_the_next_ones_run(
    running: Callable[..., threading.Event], caplog: pytest.LogCaptureFixture
) -> None:
    item = steps.find(note.enqueue("damaged").id)
    broken = {**item.serialize(), "arguments": {"N": "1"}}
    put_item(TaskItem.table(), **broken)
    note.enqueue("next")
    looks: list[float] = []

    def count(seconds: float, **_signal: object) -> None:
        looks.append(seconds)

    tasks_looked_for.connect(count)
    running(threads=1)

    wait_until(lambda: len(looks) >= 3)
    tasks_looked_for.disconnect(count)
    assert CALLS == [["next"]]
    assert caplog.text.count("A task is left out") == 1


def refuse_claims(proxy: FaultProxy) -> None:
    refused = Answer(400, "AccessDeniedException")
    proxy.plan("UpdateItem", refused, times=10_000, when=lambda body: body["TableName"] == "tasks")


def test_a_worker_whose_claims_are_refused_looks_more_rarely(
    proxy: FaultProxy, running: Callable[..., threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_PAUSE", 0.3)
    note.enqueue("refused")
    refuse_claims(proxy)
    looked_at: list[float] = []

    def look(**_signal: object) -> None:
        looked_at.append(monotonic())

    tasks_looked_for.connect(look)
    running(threads=1)
    wait_until(lambda: len(looked_at) >= 9)
    tasks_looked_for.disconnect(look)

    assert looked_at[-1] - looked_at[-2] >= worker.LONGEST_PAUSE
    proxy.forget()
    wait_until(lambda: CALLS == [["refused"]])


def test_a_run_of_what_is_due_ends_if_claims_are_refused(
    proxy: FaultProxy, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_PAUSE", 0.05)
    note.enqueue("refused")
    refuse_claims(proxy)

    with pytest.raises(Rejected):
        run_tasks()


def test_a_schedule_does_not_wait_for_a_free_thread(
    running: Callable[..., threading.Event],
    backend: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = datetime(2026, 11, 27, 10, tzinfo=UTC)
    monkeypatch.setattr(schedules, "now", lambda: time)
    monkeypatch.setattr(worker, "LONGEST_PAUSE", 0.05)
    backend["SCHEDULE"] = {"nightly": {"task": note.module_path, "cron": "0 3 * * *"}}
    for name in ("runs", "waits"):
        wait.enqueue(name)
    running(threads=1)
    wait_until(lambda: CALLS)

    time = datetime(2026, 11, 28, 3, tzinfo=UTC)

    functions_waiting = {wait.module_path, note.module_path}
    wait_until(
        lambda: (
            {item.function for item in TaskItem.scan() if item.sort != "slot"} == functions_waiting
        )
    )
    assert len(CALLS) == 1


def test_many_tasks_are_run_once_by_several_workers(
    running: Callable[..., threading.Event],
) -> None:
    for number in range(60):
        note.enqueue(number)

    for _worker in range(3):
        running(threads=2)

    wait_until(lambda: len(CALLS) >= 60)
    assert sorted(call[0] for call in CALLS) == list(range(60))


def test_a_worker_claims_no_tasks_that_others_ran_since_it_found_them(
    run_tasks: RunTasks, requests_sent: Requests
) -> None:
    for number in range(20):
        note.enqueue(number)
    functions.run_others.using(priority=1).enqueue()
    requests_sent.clear()

    [ran] = run_tasks()

    assert ran.outcome == "successful"
    # One claim of this worker, and those of the other one.
    claims = [update for update in requests_sent.of("UpdateItem") if update["TableName"] == "tasks"]
    assert len(claims) == 1 + 20


@pytest.fixture
def full_shards(backend: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards that never have less tasks than a look reads, because each enqueues itself."""
    backend["SHARDS"] = 2
    places = cycle([0, 1])
    monkeypatch.setattr(random, "randrange", lambda _shards: next(places))
    for _task in range(4 * worker.FOUND_PER_SHARD):
        functions.enqueue_itself.enqueue(10_000)


def deferred(call: str, lease: Lease) -> TaskItem:
    """A task whose first attempt has failed, and that is due again."""
    id_ = note.enqueue(call).id
    item = steps.find(id_)
    assert steps.claim(item, lease)
    steps.place_again(item, pause=0.001, error=ValueError())
    return steps.find(id_)


@pytest.mark.usefixtures("full_shards")
def test_a_task_that_is_due_again_runs_under_load(
    running: Callable[..., threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if each task took longer than the time until the next look.
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0)
    deferred("due again", Lock("w").acquire())

    running(threads=1)

    wait_until(lambda: len(CALLS) >= 4)
    assert ["due again"] in CALLS[:4]


@pytest.mark.usefixtures("full_shards")
def test_a_task_whose_worker_is_gone_runs_again_under_load(
    running: Callable[..., threading.Event], backend: dict[str, Any]
) -> None:
    backend["RETRY"]["*"] = {"delay": 0}
    assert steps.claim(deferred("taken over", Lock("w").acquire()), abandoned("gone"))

    running(threads=1)

    wait_until(lambda: ["taken over"] in CALLS)


def test_a_worker_that_is_stopped_lets_tasks_end_and_claims_no_more(
    running: Callable[..., threading.Event],
) -> None:
    ran: list[Ran] = []
    stop = running(threads=1, on_ran=ran.append)
    first = wait.enqueue("first")
    wait_until(lambda: CALLS)

    stop.set()
    second = wait.enqueue("second")
    GO.set()

    wait_until(lambda: ran)
    assert first.status == "READY"  # as it was when it was enqueued
    first.refresh()
    second.refresh()
    assert (first.status, second.status) == ("SUCCESSFUL", "READY")


def test_a_worker_that_is_stopped_gives_back_what_does_not_end_in_time(
    running: Callable[..., threading.Event], run_tasks: RunTasks
) -> None:
    ran: list[Ran] = []
    stop = running(threads=1, grace_seconds=0, on_ran=ran.append)
    result = wait.enqueue("long")
    wait_until(lambda: CALLS)

    stop.set()
    wait_until(lambda: wait.get_result(result.id).status == "READY")
    GO.set()
    # The thread of the old worker cannot end it any more.
    wait_until(lambda: ran)
    assert ran[0].outcome == "lost"

    assert until_done(run_tasks) == ["successful"]
    result.refresh()
    assert (result.status, result.errors, result.attempts) == ("SUCCESSFUL", [], 2)


def test_a_worker_that_cannot_give_back_a_task_says_so_and_leaves_it_to_another(
    proxy: FaultProxy,
    running: Callable[..., threading.Event],
    backend: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend["RETRY"]["*"] = {"attempts": 2, "delay": 0}
    stop = running(threads=1, grace_seconds=0)
    result = wait.enqueue("long")
    wait_until(lambda: CALLS)
    refused = Answer(400, "AccessDeniedException")
    proxy.plan("GetItem", refused, times=10_000, when=lambda body: body["TableName"] == "tasks")

    stop.set()
    warning = f"The task {result.id} was not given back: DynamoDB refused GetItem"
    wait_until(lambda: warning in caplog.text)
    proxy.forget()

    # The first worker released its lease, although it still runs the task.
    running(threads=1)
    wait_until(lambda: len(CALLS) == 2)
    GO.set()
    wait_until(lambda: wait.get_result(result.id).status == "SUCCESSFUL")


@pytest.mark.parametrize("task", [note, functions.fail_twice])
def test_a_task_that_kills_its_workers_fails_for_good(
    run_tasks: RunTasks, backend: dict[str, Any], task: Any
) -> None:
    """After three attempts: by the settings, or by its own declaration."""
    told: list[list[Any]] = []

    def tell(task_result: Any, **_signal: object) -> None:
        told.append([error.exception_class for error in task_result.errors])

    if task is note:
        backend["RETRY"]["*"] = {"attempts": 3, "delay": 0}
    result = task.enqueue("poison")
    signals.task_finished.connect(tell)

    for number in range(3):
        lease = Lock(f"w{number}").acquire()
        [item] = [item for item in TaskItem.scan() if item.sort != "record"]
        assert steps.claim(item, lease)
        lease.release(remove=True)
        if number < 2:
            worker._recover(TaskItem.get(item.partition, item.sort))

    [ran] = run_tasks()
    assert (ran.outcome, ran.attempt, type(ran.error)) == ("failed", 3, WorkerLost)
    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 3)
    signals.task_finished.disconnect(tell)
    assert told == [[WorkerLost] * 3]
    assert [error.exception_class for error in result.errors] == [WorkerLost] * 3
    assert run_tasks() == []


class Context:
    """What AWS Lambda tells a function about its invocation."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> float:
        return self._seconds * 1000


def test_a_task_that_is_too_slow_for_lambda_is_not_repeated_for_ever(
    monkeypatch: pytest.MonkeyPatch, backend: dict[str, Any]
) -> None:
    for name in ("SECONDS_LEFT", "GRACE_SECONDS"):
        monkeypatch.setattr(serverless, name, 0)
    backend["RETRY"]["*"] = {"attempts": 2, "delay": 0}
    result = wait.enqueue("long")

    for _invocation in range(2):
        serverless.run_tasks({}, Context(1))

    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 2)
    assert [error.exception_class for error in result.errors] == [TaskTooSlow] * 2


def test_a_function_with_a_short_time_out_says_so() -> None:
    with pytest.raises(ImproperlyConfigured, match="must exceed 15 seconds"):
        serverless.run_tasks({}, Context(3))


def test_a_slow_worker_does_not_report_the_end_that_another_recorded(
    run_tasks: RunTasks, backend: dict[str, Any]
) -> None:
    backend["RETRY"]["*"] = {"attempts": 1}
    item = steps.find(note.enqueue("slow").id)
    lease = Lock("slow").acquire()
    attempt = steps.claim(item, lease)
    assert attempt
    lease.release(remove=True)
    run_tasks()

    assert worker._run(attempt)[0] == "lost"
    assert note.get_result(item.id).status == "FAILED"


@pytest.mark.parametrize("seconds", [-60, 60])
def test_a_worker_whose_clock_differs_by_a_minute_runs_what_can_run_at_once(
    run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    note.enqueue("now")
    note.using(run_after=now() + timedelta(seconds=30)).enqueue("soon")
    note.using(run_after=now() + timedelta(seconds=90)).enqueue("later")
    for module in (steps, worker):
        monkeypatch.setattr(module, "now", lambda: now() + timedelta(seconds=seconds))

    run_tasks()

    assert ([["now"], ["soon"]] if seconds > 0 else [["now"]]) == CALLS


@pytest.mark.parametrize("fault", [CloseBefore(), Answer(400, "ThrottlingException")], ids=str)
def test_a_worker_goes_on_when_the_engine_was_away_and_a_throttled_shard_holds_up_no_other(
    proxy: FaultProxy,
    impatient: None,
    running: Callable[..., threading.Event],
    backend: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    fault: Any,
) -> None:
    if isinstance(fault, CloseBefore):
        proxy.plan("Query", fault, times=10_000)
    else:
        proxy.plan("Query", fault, times=10_000, when=lambda body: "0#default" in str(body))
    for number in range(40):
        note.enqueue(number)
    waiting = [item.id for item in TaskItem.scan() if item.partition.startswith("0#")]
    running(threads=2)
    reached = 0 if isinstance(fault, CloseBefore) else 40 - len(waiting)
    wait_until(lambda: len(CALLS) >= reached and proxy.count("Query") >= 8)
    assert len(CALLS) == reached
    if not reached:
        told = [text for text in caplog.messages if "cannot be read" in text]
        assert all("0#default, 1#default, 2#default" in text for text in told), told

    proxy.forget()

    wait_until(lambda: len(CALLS) == 40)


@pytest.mark.slow
def test_ten_thousand_tasks_at_once_all_run_once(running: Callable[..., threading.Event]) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note.enqueue, range(10_000)))

    for _worker in range(2):
        running(threads=4)

    wait_until(lambda: len(CALLS) >= 10_000)
    assert sorted(call[0] for call in CALLS) == list(range(10_000))


PROGRAM = """
import django, os
django.setup()
from django.test import override_settings
from django.core.management import call_command
options = {"RETRY": {"*": {"delay": 0}}}
tasks = {"default": {"BACKEND": "outbox.TaskBackend", "OPTIONS": options}}
with override_settings(TASKS=tasks):
    call_command("runtasks", threads=1, lease=0.5)
"""


@pytest.mark.parametrize(("number", "outcome"), [(signal.SIGKILL, 2), (signal.SIGTERM, 1)])
def test_no_task_is_lost_when_its_process_is_killed_or_ended(
    tmp_path: Path, run_tasks: RunTasks, backend: dict[str, Any], number: int, outcome: int
) -> None:
    backend["RETRY"]["*"] = {"delay": 0}
    begun, go = tmp_path / "begun", tmp_path / "go"
    result = functions.touch_and_wait.enqueue(str(begun), str(go))
    with start("-c", PROGRAM, stderr=False) as process:
        wait_until(begun.exists)
        process.send_signal(number)
        go.touch()
        ended = process.wait()

    assert ended == (-number if number == signal.SIGKILL else 0)
    run_tasks()
    result.refresh()
    assert result.status == "SUCCESSFUL"
    assert result.attempts == outcome
