"""The steps in the life of a task, each one write or one transaction.

store         put the task
claim         name the worker in the task, under the version that was read
succeed       write the record, and delete the task; in a caller's transaction both together
place_again   move the task, with its record: repeated, given back, failed for good, or restarted
recover       place a task again whose worker is gone; delete it if its record says that it ended

All of them require that the task is as it was read. If a worker was stopped for longer than its
lease, it cannot end its task after that was placed again. Placing a task again writes the record,
and the worker requires the record that it had when it claimed the task. If the worker is faster,
the task is not placed again.
"""

import json
import random
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from traceback import format_exception
from typing import Any

from django.utils import timezone
from django.utils.module_loading import import_string

from dynamo import (
    AlreadyDone,
    AlreadyExists,
    DynamoError,
    Refused,
    RequestIdReused,
    Stale,
    Transaction,
    joined,
)
from dynamo.model.creating import REQUEST_IDS
from dynamo.wire.types import Item
from dynamo.wire.values import ITEM_MAX_BYTES, item_bytes
from locks import Lease
from outbox.exceptions import InvalidReturnValue, NotFailed, TaskTooLarge, UnknownTask
from outbox.framework import TaskResultDoesNotExist, base, normalize_json, task_backends
from outbox.models import (
    FAILED,
    RECORD,
    TaskItem,
    bounds,
    id_of,
    now,
    partition_of,
    place_of,
    sort_of,
)
from outbox.tasks import Ending, Retry, new_result

#: The largest stored task. The rest of an item's 400 KB is for errors and the return value.
MOST_BYTES = ITEM_MAX_BYTES - 80 * 1024
#: The last errors that a record keeps, and the last characters of each traceback.
MOST_ERRORS, ERROR_MAX_LENGTH = 10, 4_000
#: The limit of all errors of a record together, as JSON, where a character can take six bytes.
ERRORS_MAX_BYTES = 64 * 1024
#: The attributes that a record gets when the task ends, in addition to the return value.
END_MAX_BYTES = 1024

#: If a task has waited for this time, no worker runs, or too few.
LONG_SECONDS = 300.0

#: If a task is moved between two reads, it is looked for this many times.
READS = 5

#: The task has ended, was placed again, or was claimed by another worker.
LOST = (Stale, AlreadyExists, AlreadyDone, Refused)


def store(
    result: base.TaskResult, *, request_id: str | None, write: Transaction | None
) -> TaskItem:
    """Put the task of `result`, and set the id of `result`. Returns the item that has the id.

    Costs 1 request and 1 write unit per KB, 2 in a caller's transaction; 4 with a request id.

    Raises:
        TaskTooLarge: it does not fit into an item.
        RequestIdReused: the request id enqueued the function with other arguments.
    """
    task, due = result.task, result.task.run_after
    if due is not None and timezone.is_naive(due):
        due = timezone.make_aware(due)
    item = TaskItem(
        function=task.module_path,
        arguments=[result.args, result.kwargs],
        queue=task.queue_name,
        priority=task.priority,
        backend=result.backend,
        run_after=due,
        status=base.TaskResultStatus.READY,
        enqueued_at=now(),
    )
    item.partition, item.sort = place = _new_place(item, due)
    item.id = id_of(*place)
    if (size := item_bytes(item.serialize())) > MOST_BYTES:
        raise TaskTooLarge(item.function, size, MOST_BYTES)
    if request_id is None:
        return item.insert(write=write)
    item.id = str(uuid.uuid5(REQUEST_IDS, f"{item.function}#{request_id}"))
    record = item.copied(partition=item.id, sort=RECORD, place=[*place])
    asked = record.serialize()

    def explained(stored: Item) -> Exception | None:
        names = ("function", "arguments")
        is_same = all(stored.get(name) == asked[name] for name in names)
        return None if is_same else RequestIdReused(str(request_id), "task")

    with joined(write) as write:
        record.insert(write=write, explained=explained)
        # This is part of the write of the record, which decides whether the call is a repetition.
        alone = Transaction()
        item.insert(write=alone)
        write.add(*(replace(put, part_of=record) for put in alone))
    return record


def _new_place(item: TaskItem, due: datetime | None) -> tuple[str, str]:
    """A key in a random shard: at the end of the item's priority, or at a time in the future."""
    shard = random.randrange(backend_of(item).options["SHARDS"])  # noqa: S311 - no secret
    at = now()
    sort = sort_of(due) if due is not None and due > at else sort_of(at, item.priority)
    return partition_of(item.queue, shard), sort


def backend_of(item: TaskItem) -> Any:
    """The `TaskBackend` that stored the task, or another one if TASKS does not name it any more."""
    backends = [one for one in task_backends.all() if getattr(one, "joins_transactions", False)]
    return min(backends, key=lambda one: (one.alias != item.backend, item.queue not in one.queues))


def find(id_: str) -> TaskItem:
    """The task with this id; its record if it has finished.

    Costs 1 request and 1 read unit if it has finished, else 2 of each.

    Raises:
        TaskResultDoesNotExist: there is none, or it was deleted by TTL.
    """
    for _read in range(READS):
        record = TaskItem.get_or_none(id_, RECORD)
        if record is not None and record.finished_at is not None:
            return record
        place = _place(id_, record)
        item = TaskItem.get_or_none(*place) if place else None
        if item is not None and item.id == id_:
            item.record = record
            return item
        if record is None and TaskItem.get_or_none(id_, RECORD) is None:
            break
    raise TaskResultDoesNotExist(id_)


def _place(id_: str, record: TaskItem | None) -> list[str] | None:
    """The key of the task with this id and record; None if it has ended."""
    if record is None:
        return place_of(id_)
    place: list[str] | None = record.place
    return place if record.finished_at is None else None


def _is_current(item: TaskItem) -> bool:
    """Whether the record says that the task is at this place and has not ended."""
    return _place(item.id, item.record) == [item.partition, item.sort]


def task_of(item: TaskItem) -> base.Task:
    """The task as it was enqueued.

    Raises:
        UnknownTask: its function does not exist any more.
        InvalidTask: its backend does not allow it any more.
    """
    try:
        found = import_string(item.function)
    except ImportError as error:
        raise UnknownTask(item.function) from error
    if not isinstance(found, base.Task):
        raise UnknownTask(item.function)
    return replace(
        found,
        priority=item.priority,
        queue_name=item.queue,
        run_after=item.run_after,
        backend=backend_of(item).alias,
    )


def result_of(item: TaskItem) -> base.TaskResult:
    """Django's result of a task, by the task or its record.

    Raises: the errors of `task_of`.
    """
    args, kwargs = item.arguments
    result = replace(
        new_result(task_of(item), item.id, args, kwargs),
        status=base.TaskResultStatus(item.status),
        enqueued_at=item.enqueued_at,
        started_at=item.started_at,
        finished_at=item.finished_at,
        last_attempted_at=item.last_attempted_at,
        worker_ids=[*item.workers],
        errors=[
            base.TaskError(exception_class_path=path, traceback=text)
            for path, text in (item.record or item).errors or []
        ],
    )
    object.__setattr__(result, "_return_value", item.return_value)
    return result


def error_texts(error: BaseException) -> tuple[str, str]:
    """The path of the error's class, and the end of the traceback."""
    kind = type(error)
    text = "".join(format_exception(error))[-ERROR_MAX_LENGTH:]
    # The text may have lone surrogates, for example from a file name, which cannot be stored.
    storable = text.encode(errors="backslashreplace").decode()
    return f"{kind.__module__}.{kind.__qualname__}", storable


@dataclass(kw_only=True)
class Attempt(Ending):
    """A task that this worker has claimed."""

    item: TaskItem

    def end(self, write: Transaction, value: object) -> None:
        """Add the end of the task to the transaction."""
        self.write = write
        succeed(self.item, value, write=write)
        super().end(write, value)


def claim(item: TaskItem, lease: Lease) -> Attempt | None:
    """Let this worker run `item`; None if another worker has it.

    Costs 1 request and 1 write unit; 1 read unit more for a task that was placed again.
    """
    at = now()
    try:
        item.change(
            status=base.TaskResultStatus.RUNNING,
            started_at=at if item.started_at is None else item.started_at,
            last_attempted_at=at,
            workers=[*item.workers, lease.name],
            lease=lease.name,
            fence=lease.fence,
        )
    except Stale:
        return None
    if not _is_current(item):
        # The task was moved before, so it has a record.
        item.record = TaskItem.get_or_none(item.id, RECORD)
    # If the task is not current, this worker was stopped, and the task was placed again.
    return Attempt(item=item) if _is_current(item) else None


def _clean_return_value(item: TaskItem, value: object) -> object:
    """The return value in the form in which it is read again."""
    if value is None:
        return None
    try:
        value = normalize_json(value)
        size = len(TaskItem.return_value.serialize(value).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidReturnValue(item.function, str(error)) from error
    most = ITEM_MAX_BYTES - END_MAX_BYTES - item_bytes((item.record or item).serialize())
    if size > most:
        problem = f"it has {size:,} bytes, and {most:,} are left in the item of the task"
        raise InvalidReturnValue(item.function, problem)
    return value


def succeed(item: TaskItem, value: object, *, write: Transaction | None = None) -> None:
    """Record that the task has ended, and delete it. Costs 2 requests and 2 write units.

    Raises:
        InvalidReturnValue: the value is not JSON, or does not fit into the record.
        one of `LOST`: it was placed again.
        Unavailable: no answer. The task is repeated if its end was not recorded.
    """
    values = {
        "status": base.TaskResultStatus.SUCCESSFUL,
        "return_value": _clean_return_value(item, value),
    }
    _write_record(item, values | _ended(item), write)
    if write is not None:
        item.delete(write=write)
        return
    # The end is already recorded. If this deletion fails, `recover` repeats it.
    with suppress(DynamoError):
        item.delete()


def recorded_end(item: TaskItem) -> str | None:
    """The recorded status of this attempt, if it has ended. In that case, delete the task.

    Costs 1 request and 1 read unit.
    """
    item.record = record = TaskItem.get_or_none(item.id, RECORD)
    if record is None or record.finished_at is None or record.workers != item.workers:
        return None
    item.delete()
    return str(record.status)


def place_again(
    item: TaskItem,
    *,
    pause: float | None,
    error: BaseException | None = None,
    write: Transaction | None = None,
) -> None:
    """Let the task run after `pause` seconds. With None, it has failed for good.

    An `error` is recorded and counts as a failed attempt. Costs 1 request and 6 write units.

    Raises:
        one of `LOST`: it changed since it was read.
    """
    values: dict[str, Any] = {"failures": item.failures}
    errors = [*((item.record and item.record.errors) or [])]
    if item.status == base.TaskResultStatus.FAILED:
        values |= {"failures": 0, "finished_at": None, "expires": None}
    if error is not None:
        values["failures"] += 1
        errors = [*errors, error_texts(error)][-MOST_ERRORS:]
        while len(errors) > 1 and len(json.dumps(errors)) > ERRORS_MAX_BYTES:
            del errors[0]
    if pause is None:
        place = f"{FAILED}#{item.queue}", sort_of(now())
        values |= {"status": base.TaskResultStatus.FAILED} | _ended(item)
    else:
        place = _new_place(item, now() + timedelta(seconds=pause))
        values["status"] = base.TaskResultStatus.READY
    partition, sort = place
    with joined(write) as write:
        item.delete(write=write)
        item.copied(partition=partition, sort=sort, **values).insert(write=write)
        _write_record(item, values | {"errors": errors, "place": [*place]}, write)


def _write_record(item: TaskItem, values: dict[str, Any], write: Transaction | None) -> None:
    """Write the record, which must not have changed since it was read.

    After the commit, `item` has it.
    """
    record = item.record
    if record is None:
        record = item.copied(partition=item.id, sort=RECORD, **values)
        with joined(write) as write:
            record.insert(write=write)
            write.on_commit(record, lambda _stored: setattr(item, "record", record))
        return
    names = ("workers", "started_at", "last_attempted_at", "failures")
    record.change(write=write, **({name: getattr(item, name) for name in names} | values))


def _ended(item: TaskItem) -> dict[str, object]:
    at = now()
    expires = at + timedelta(days=backend_of(item).options["KEEP_DAYS"])
    return {"finished_at": at, "expires": round(expires.timestamp())}


def is_unfinished(item: TaskItem) -> bool:
    """Whether a claimed task has not ended, so that it may be placed again.

    Costs 1 request and 1 read unit.
    """
    return recorded_end(item) is None and _is_current(item)


def fail(item: TaskItem, error: BaseException) -> float | None:
    """Let the task be repeated, or fail for good. Returns the seconds until it is due, or None.

    Has the costs and errors of `place_again`.
    """
    retry: Retry = backend_of(item).retry_of(item.function)
    # Such a task is not repeated, because it would return the same value again.
    is_final = isinstance(error, InvalidReturnValue)
    pause = None if is_final else retry.pause(item.failures + 1, error)
    place_again(item, pause=pause, error=error)
    return pause


def _find_failed(id_: str) -> tuple[TaskItem, TaskItem]:
    """A task that has failed for good, and its record. Costs 2 requests and 2 read units.

    Raises:
        NotFailed: there is none with this id, or it has not failed for good.
    """
    record = TaskItem.get_or_none(id_, RECORD)
    if record is None or record.status != base.TaskResultStatus.FAILED:
        raise NotFailed(id_)
    item = TaskItem.get_or_none(*record.place)
    if item is None:
        raise NotFailed(id_)
    item.record = record
    return item, record


def restart(id_: str, *, write: Transaction | None = None) -> None:
    """Let a task that has failed for good run again, with all its attempts.

    Costs 3 requests, 2 read and 6 write units.

    Raises:
        NotFailed: there is none with this id, or it has not failed for good.
        one of `LOST`: another call restarted or discarded it.
    """
    item, _record = _find_failed(id_)
    place_again(item, pause=0, write=write)


def discard(id_: str, *, write: Transaction | None = None) -> None:
    """Delete a task that has failed for good. Costs 3 requests, 2 read and 4 write units.

    Raises: the errors of `restart`.
    """
    with joined(write) as write:
        for item in _find_failed(id_):
            item.delete(write=write)


def waited_seconds(partition: str) -> float:
    """The waiting time of the first task of a shard that could run now; 0 if there is none.

    Costs 1 request and half a read unit; more if many tasks run, because these come first.
    """
    between = TaskItem.sort.between(*bounds(now()))
    found = TaskItem.query(partition, between, page_size=10, consistent_read=False)
    return next((item.due_seconds for item in found if item.lease is None), 0)
