"""Tasks are stored with the transaction that enqueues them, run by workers, and end once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dynamo import AlreadyExists, RequestIdReused, Transaction
from locks import Lock
from locks.holders import ProcessLease
from outbox import Task, steps, task
from outbox.exceptions import TaskTooLarge
from outbox.framework import TaskResultDoesNotExist, base, signals, task_backends
from outbox.models import TaskItem
from outbox.worker import Worker
from tests.outbox import functions
from tests.outbox.conftest import RunTasks
from tests.outbox.functions import CALLS, Bill, bill, note
from tests.requests import Requests


def stored() -> list[TaskItem]:
    return list(TaskItem.scan())


def test_a_task_is_run_with_its_arguments_and_its_result_can_be_read(run_tasks: RunTasks) -> None:
    result = note.enqueue(1, "zwei", [None, 2.5], key={"a": True})
    assert result.status == base.TaskResultStatus.READY
    assert note.get_result(result.id).status == base.TaskResultStatus.READY
    assert len(result.id) <= 64

    [ran] = run_tasks()

    assert CALLS == [[1, "zwei", [None, 2.5], {"key": {"a": True}}]]
    assert (ran.id, ran.outcome, ran.attempt) == (result.id, "successful", 1)
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 1, 1)
    assert result.enqueued_at <= result.started_at <= result.finished_at  # type: ignore[operator]
    # What the worker reads again and again has nothing of it any more.
    assert [item.sort for item in stored()] == ["record"]
    assert run_tasks() == []


def test_tasks_are_enqueued_and_read_in_an_event_loop() -> None:
    async def status() -> str:
        result = await note.aenqueue(1)
        return (await note.aget_result(result.id)).status

    assert asyncio.run(status()) == base.TaskResultStatus.READY


def test_an_asynchronous_function_is_run(run_tasks: RunTasks) -> None:
    result = functions.note_async.enqueue(3)

    run_tasks()

    result.refresh()
    assert (CALLS, result.return_value) == ([3], 3)


@pytest.mark.fault_of("moto", "counts other units")
def test_what_enqueuing_and_a_run_that_succeeds_cost(requests_sent: Requests) -> None:
    result = note.enqueue(1)
    assert (requests_sent.operations, requests_sent.units) == (["PutItem"], 1)
    requests_sent.clear()
    with Transaction() as write:
        Bill.create(order="7", write=write)
        note.using(write=write).enqueue(2)
    assert (requests_sent.operations, requests_sent.units) == (["TransactWriteItems"], 4)

    lease = ProcessLease("outbox#").current()
    item = steps.find(result.id)
    requests_sent.clear()
    attempt = steps.claim(item, lease)
    assert attempt
    steps.succeed(item, None)
    assert requests_sent.operations == ["UpdateItem", "PutItem", "DeleteItem"]
    assert requests_sent.units == 3
    lease.release(remove=True)


@pytest.mark.fault_of("moto", "counts other units")
def test_what_else_costs(requests_sent: Requests, backend: dict[str, Any]) -> None:
    def cost() -> tuple[list[str], float]:
        spent = requests_sent.operations, requests_sent.units
        requests_sent.clear()
        return spent

    result = note.using(request_id="form-1").enqueue(1)
    assert cost() == (["TransactWriteItems"], 4)
    note.get_result(result.id)
    assert cost() == (["GetItem"] * 2, 2)

    # A look of a worker at 2 queues: half a read unit per shard.
    worker = Worker()
    found = worker._find(worker._partitions, False)
    assert cost() == (["Query"] * 16, 8)

    lease = Lock("w").acquire()
    attempt = steps.claim(found[0], lease)
    assert attempt
    cost()
    with Transaction() as write:
        Bill.create(order="7", write=write)
        attempt.end(write, None)
    # 4 units more than the bill alone.
    assert cost() == (["TransactWriteItems"], 6)
    note.get_result(result.id)
    assert cost() == (["GetItem"], 1)

    again = steps.claim(steps.find(note.enqueue(2).id), lease)
    assert again
    cost()
    steps.place_again(again.item, pause=0, error=ValueError())
    assert cost() == (["TransactWriteItems"], 6)


def test_a_task_exists_if_its_transaction_commits(run_tasks: RunTasks) -> None:
    told: list[str] = []

    def tell(task_result: Any, **_signal: object) -> None:
        told.append(task_result.id)

    signals.task_enqueued.connect(tell)
    used = Bill.create(order="1")

    def refused() -> None:
        with Transaction() as write:
            Bill(pk=used.pk, order="2").insert(write=write)
            note.using(write=write).enqueue("never")

    with pytest.raises(AlreadyExists):
        refused()
    # Not committed.
    note.using(write=Transaction()).enqueue("never")
    assert (told, stored()) == ([], [])

    with Transaction() as write:
        Bill.create(order="3", write=write)
        result = note.using(write=write).enqueue("once")
        assert told == []

    signals.task_enqueued.disconnect(tell)
    assert told == [result.id]
    run_tasks()
    assert CALLS == [["once"]]


@pytest.mark.parametrize("backend_name", ["TaskBackend", "ImmediateBackend"])
def test_a_task_is_not_enqueued_past_the_transaction_around_it(
    settings: Any, backend_name: str
) -> None:
    settings.TASKS = {"default": {"BACKEND": f"outbox.{backend_name}"}}
    with Transaction(), pytest.raises(TypeError, match="Pass write=write"):
        note.enqueue("forgotten")
    with Transaction(), pytest.raises(TypeError, match="Pass write=write"):
        asyncio.run(note.aenqueue("forgotten"))

    assert (stored(), CALLS) == ([], [])


@pytest.mark.parametrize("option", ["run_after", "write", "request_id", "unknown"])
def test_a_function_is_not_declared_with_what_belongs_to_one_call(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        task(**{option: None})  # type: ignore[call-overload]


@pytest.mark.parametrize("request_id", ["", " "])
def test_an_empty_request_id_is_refused(request_id: str) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        note.using(request_id=request_id)


@pytest.mark.parametrize("joins", [False, True])
def test_a_request_id_enqueues_a_function_once(joins: bool, run_tasks: RunTasks) -> None:
    def enqueue(function: Task, *args: Any) -> Any:
        task = function.using(request_id="form-1")
        if not joins:
            return task.enqueue(*args)
        with Transaction() as write:
            return task.using(write=write).enqueue(*args)

    first = enqueue(note, 1)
    assert enqueue(note, 1).id == first.id
    with pytest.raises(RequestIdReused):
        enqueue(note, 2)
    other = enqueue(functions.fail_twice, "x")
    assert other.id != first.id
    assert note.get_result(first.id).status == base.TaskResultStatus.READY

    while run_tasks():
        pass

    assert CALLS.count([1]) == 1
    # Also after it has finished.
    assert enqueue(note, 1).id == first.id
    assert run_tasks() == []
    assert note.get_result(first.id).return_value == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([object()], TypeError),
        ([{1, 2}], TypeError),
        ([float("nan")], ValueError),
        (["x" * 400_000], TaskTooLarge),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused(
    arguments: list[Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        note.enqueue(*arguments)
    assert stored() == []


def test_the_more_urgent_task_runs_first_and_equal_ones_in_their_order(
    backend: dict[str, Any], run_tasks: RunTasks
) -> None:
    backend["SHARDS"] = 1
    note.using(priority=-100).enqueue("last")
    for name in "ab":
        note.enqueue(name)
    note.using(priority=100).enqueue("first")
    note.using(run_after=timezone.now() - timedelta(days=1)).enqueue("c")

    run_tasks()

    assert CALLS == [["first"], ["a"], ["b"], ["c"], ["last"]]


@pytest.mark.parametrize("days", [1, 2_000_000])
def test_a_task_does_not_run_before_it_is_due(days: int, run_tasks: RunTasks) -> None:
    result = note.using(run_after=timezone.now() + timedelta(days=days)).enqueue()

    assert run_tasks() == []
    assert note.get_result(result.id).status == base.TaskResultStatus.READY


def test_an_unknown_id_has_no_result() -> None:
    for id_ in ("", "x", "x" * 3_000, "a.1.default", "a.1.", "#"):
        with pytest.raises(TaskResultDoesNotExist):
            task_backends["default"].get_result(id_)


def test_finish_ends_the_task_in_the_transaction_of_its_effect(run_tasks: RunTasks) -> None:
    told: list[Any] = []

    def tell(task_result: Any, **_signal: object) -> None:
        told.append(task_result.return_value)

    result = bill.enqueue("7")
    signals.task_finished.connect(tell)

    [ran] = run_tasks()

    signals.task_finished.disconnect(tell)
    assert (ran.outcome, told) == ("successful", ["7"])
    assert [item.order for item in Bill.scan()] == ["7"]
    result.refresh()
    assert (result.status, result.return_value) == ("SUCCESSFUL", "7")
    assert [item.sort for item in stored()] == ["record"]


def test_a_worker_runs_only_its_queues(run_tasks: RunTasks) -> None:
    note.using(queue_name="mails").enqueue("mail")
    note.enqueue("other")

    run_tasks(queues=["mails"])

    assert CALLS == [["mail"]]


def test_a_task_that_enqueues_itself_goes_on_until_it_stops(run_tasks: RunTasks) -> None:
    functions.enqueue_itself.enqueue(3)

    run_tasks()

    assert CALLS == [3, 2, 1, 0]
