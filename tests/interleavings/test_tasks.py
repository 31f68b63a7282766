"""Tasks enqueued, claimed, run, ended and taken over at once, in every order of their requests.

A worker that takes over does so at any moment, as if the other one had stood still for a whole
lease just then. So these schedules contain those in which a lease is lost at any request.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pytest_django import Settings

from dynamo import DynamoError, Transaction
from locks import Lease
from outbox import steps, worker
from outbox.models import RECORD, TaskItem
from tests.emptying import empty
from tests.interleavings.conftest import Explore, runs_of
from tests.interleavings.operations import DEAD
from tests.interleavings.scheduler import Scenario
from tests.outbox import functions
from tests.outbox.functions import CALLS, Bill, bill, note


@pytest.fixture(autouse=True)
def _backend(settings: Settings) -> None:
    retry = {"attempts": 9, "delay": 0}
    options = {"SHARDS": 1, "RETRY": {"*": retry}}
    settings.TASKS = {"default": {"BACKEND": "outbox.TaskBackend", "OPTIONS": options}}


def tasks() -> Iterator[TaskItem]:
    return TaskItem.query("0#default")


def work(number: int, *, takes_over: bool = False) -> list[str]:
    """Claim and run what waits; before that take over what others run."""
    lease = cast(Lease, SimpleNamespace(name=f"worker {number}", fence=number))
    outcomes = []
    if takes_over:
        for item in list(tasks()):
            if item.lease:
                worker._recover(item)
    for item in list(tasks()):
        if not item.lease and (attempt := steps.claim(item, lease)):
            outcomes.append(worker._run(attempt)[0])
    return outcomes


def take_over(number: int) -> list[str]:
    return work(number, takes_over=True)


def enqueue(_number: int) -> str:
    with Transaction() as write:
        Bill.create(order="enqueued", write=write)
        return note.using(write=write).enqueue("once").id


def enqueue_for_request(_number: int) -> str:
    return bill.using(request_id="form-1").enqueue("7").id


@dataclass(frozen=True)
class Race:
    """Operations, after `begin` has enqueued a task, and how often their effects happen at most.

    `quick` are the faults of `explore` that `make test` tries, `slow` those of `make test-slow`.
    """

    begin: Callable[[], object]
    operations: Sequence[Callable[[int], object]]
    quick: dict[str, Any] | None
    slow: dict[str, Any] | None = None
    #: Whether each task ends in the transaction of its effect.
    once: bool = False
    #: The outcomes of the tasks in the end.
    ends: set[str] = field(default_factory=lambda: {"SUCCESSFUL"})


DEATH, LOSS = {"deaths": 1}, {"losses": 1}
RACES = {
    "two workers and one task": Race(partial(note.enqueue, 1), [work, work], {}, LOSS),
    "a worker that dies at any request": Race(partial(note.enqueue, 1), [work], DEATH, DEATH),
    "a worker whose task is taken over at any request": Race(
        partial(note.enqueue, 1), [work, take_over], {}, DEATH
    ),
    "an effect and its end in one transaction": Race(
        partial(bill.enqueue, "7"), [work, take_over], {}, {"losses": 1}, once=True
    ),
    "such an effect, and a death": Race(
        partial(bill.enqueue, "7"), [work, take_over], None, DEATH, once=True
    ),
    "a task that fails while it is taken over": Race(
        partial(functions.fail_twice.enqueue, "a"),
        [work, take_over],
        {},
        DEATH,
        # A worker that dies uses up an attempt.
        ends={"SUCCESSFUL", "FAILED"},
    ),
    "a task that fails for good while it is taken over": Race(
        partial(functions.fail_for_good.using(priority=1).enqueue),
        [work, take_over],
        {},
        LOSS,
        ends={"FAILED"},
    ),
    "a transaction that enqueues": Race(lambda: None, [enqueue, work], LOSS, LOSS | DEATH),
    "a form that is sent twice": Race(
        lambda: None, [enqueue_for_request] * 2, {"losses": 1}, once=True
    ),
    "a form that is sent again while its task runs": Race(
        enqueue_for_request.__get__(1), [enqueue_for_request, work], {}, LOSS, once=True
    ),
}


@pytest.mark.parametrize(("race", "faults"), runs_of(RACES))
def test_no_task_is_lost_none_runs_without_its_transaction_and_finish_happens_once(
    explore: Explore, race: Race, faults: dict[str, Any]
) -> None:
    def make() -> Scenario:
        empty(TaskItem.table(), Bill.table())
        CALLS.clear()
        race.begin()
        operations = [partial(act, number) for number, act in enumerate(race.operations, 1)]
        is_alike = len({*race.operations}) == 1
        return Scenario(operations, afterwards, always, is_alike=is_alike)

    def always(wrote: bool) -> None:
        if wrote:
            items = list(TaskItem.scan())
            ended = [item.id for item in items if item.sort == RECORD and item.finished_at]
            assert len(ended) == len({*ended})
            bills = [item.order for item in Bill.scan()]
            assert len(bills) <= 1
            if race.once:
                assert len(bills) == len(ended)

    def afterwards(outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, DynamoError):
                raise outcome
        while any(tasks()):
            take_over(9)
        left = list(TaskItem.scan())
        records = [item for item in left if item.sort == RECORD]
        # A task that has failed for good stays in the list of failures.
        assert {item.partition for item in left if item.sort != RECORD} <= {"failed#default"}
        if enqueue in race.operations:
            assert len(records) == len(list(Bill.scan()))
            assert outcomes[0] == DEAD or isinstance(outcomes[0], DynamoError) or records
            return
        if outcomes[0] != DEAD or len(outcomes) > 1:
            assert {str(item.status) for item in records} <= race.ends
            assert len(records) == 1
        if race.once:
            assert len(list(Bill.scan())) == 1

    assert explore(make, **faults) > 1
