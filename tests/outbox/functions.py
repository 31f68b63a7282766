"""Tasks of the tests. Each notes its calls in `CALLS`."""

import threading
from pathlib import Path
from typing import Any

from django.db import connections

from dynamo import Model, TextAttribute, Transaction
from locks import Lock
from outbox import Retry, TaskContext, steps, task
from outbox.models import RECORD, TaskItem
from sequences import NumberedItem, issue
from tests.waiting import wait_until

CALLS: list[Any] = []
#: `wait` runs until it is set.
GO = threading.Event()


class Bill(Model):
    class Meta:
        table_name = "test-bills"

    order = TextAttribute()


@task
def note(*args: Any, **kwargs: Any) -> Any:
    CALLS.append([*args, kwargs] if kwargs else [*args])
    return args[0] if args else None


#: What cannot be stored as a return value.
UNUSABLE = {
    "a set": {1},
    "not a number": float("nan"),
    "half a character": "\ud800",
    "too large": "x" * 410_000,
    "too large in UTF-8": "あ" * 140_000,
}


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


@task
def give(kind: str) -> Any:
    CALLS.append(kind)
    return UNUSABLE[kind]


@task(takes_context=True)
def bill_and_give(context: TaskContext, kind: str) -> None:
    CALLS.append(kind)
    with Transaction() as write:
        Bill.create(order=kind, write=write)
        context.finish(write=write, return_value=UNUSABLE[kind])


@task
def fail(message: str = "no") -> None:
    CALLS.append(message)
    raise ValueError(message)


@task(retry=Retry(attempts=3, delay=0))
def fail_twice(name: str) -> str:
    CALLS.append(name)
    if CALLS.count(name) < 3:
        raise ValueError(name)
    return name


@task(retry=Retry(never=[ValueError]))
def fail_for_good() -> None:
    raise ValueError


@task(retry=Retry(attempts=2, delay=0))
def fail_unreadably() -> None:
    raise Unreadable


@task
def ask_another_database() -> None:
    """Notes its connection, which must not stay open."""
    with connections["other"].cursor() as cursor:
        cursor.execute("SELECT 1")
    CALLS.append(connections["other"])


@task
async def note_async(value: int) -> int:
    CALLS.append(value)
    return value


@task(takes_context=True)
def bill(context: TaskContext, order: str) -> None:
    CALLS.append(order)
    with Transaction() as write:
        Bill.create(order=order, write=write)
        context.finish(write=write, return_value=order)


class Receipt(NumberedItem):
    class Meta:
        table_name = "tests-tasks-receipts"

    order = TextAttribute()


@task(takes_context=True)
def receipt(context: TaskContext, order: str) -> None:
    CALLS.append(order)
    with Transaction() as write:
        context.finish(write=write, return_value=order)
        issue(Receipt(order=order), series="2026", request_id=order, also=write)


@task(takes_context=True)
def forget_to_commit(context: TaskContext) -> None:
    context.finish(write=Transaction())


@task
def enqueue_itself(left: int) -> None:
    CALLS.append(left)
    if left:
        enqueue_itself.enqueue(left - 1)


@task
def run_others() -> None:
    """Runs all tasks that wait, as another worker does in the meantime."""
    lease = Lock("faster").acquire()
    for item in list(TaskItem.scan()):
        if item.sort != RECORD and item.lease is None:
            assert steps.claim(item, lease)
            steps.succeed(item, None)
    lease.release(remove=True)


@task
def wait(name: str = "") -> str:
    CALLS.append(name)
    GO.wait(60)
    return name


@task
def touch_and_wait(begun: str, go: str) -> None:
    Path(begun).touch()
    wait_until(Path(go).exists)
