"""The table `tasks`: tasks that wait, run or have failed, and the records of tasks.

tasks
    partition (S)      of a task: <shard>#<queue>; once it has failed for good: failed#<queue>
                       of a record: the id of its task
    sort (S)           of a task: its place in the queue
                       of a record: `record`
    id, function, arguments (JSON: a list and a map), queue, priority, backend, runAfter, status,
    enqueuedAt, startedAt, lastAttemptedAt, finishedAt, workers (JSON: the lock of each attempt)
    failures (N)       how many attempts have failed since it was enqueued or restarted
    lease, fence       of a task that runs: the lock of its worker, and that lock's fencing token
    errors (JSON), returnValue (JSON), place (JSON: the key of the task)
                       of a record
    expires (N)        once it has finished: when DynamoDB deletes it
    version (N)        of every item; a write requires the version that it read

A task that succeeds at the first attempt is enqueued, claimed, recorded and deleted: one write
unit each. Its record is made when it has finished. Each other step (a retry, a failure for good, a
restart) moves the task to another place, in one transaction with its record.

The place in the queue is the priority (000 is the highest) with the time when the task was placed
there. A task that is not due yet has `d` with the time when it is due. Therefore, one query finds
the tasks that can run, and reads no tasks that are not due or have finished. An id is the first
place of its task, so a task without a record is found by its id. An id that follows from a request
id is found by its record.
"""

from datetime import UTC, datetime
from typing import Any

from django.utils.crypto import get_random_string
from django.utils.translation import gettext_lazy as _

from dynamo import DateTimeAttribute, IntegerAttribute, JSONAttribute, Model, TextAttribute
from outbox.framework import base

RECORD = "record"
FAILED = "failed"
#: The prefix of the place of a task that waits until it is due.
_DEFERRED = "d"
#: The length of the time in a place: microseconds, in hexadecimal digits.
_TIME_DIGITS = 15

#: An id has at most 64 characters (Django), of which the place and the shard have 34.
QUEUE_MAX_LENGTH = 30


class TaskItem(Model):
    class Meta:
        table_name = "tasks"
        verbose_name = _("task")
        verbose_name_plural = _("tasks")

    ttl_attribute = "expires"

    partition = TextAttribute(_("partition"), hash_key=True)
    sort = TextAttribute(range_key=True)
    id = TextAttribute(_("id"))
    function = TextAttribute(_("function"))
    arguments = JSONAttribute(_("arguments"))
    queue = TextAttribute(_("queue"))
    priority = IntegerAttribute(_("priority"), default=0)
    backend = TextAttribute(_("backend"))
    run_after: Any = DateTimeAttribute(_("run after"), attr_name="runAfter", null=True)
    status = TextAttribute(_("status"), choices=base.TaskResultStatus)
    enqueued_at = DateTimeAttribute(_("enqueued at"), attr_name="enqueuedAt")
    started_at: Any = DateTimeAttribute(_("started at"), attr_name="startedAt", null=True)
    last_attempted_at: Any = DateTimeAttribute(
        _("last attempted at"), attr_name="lastAttemptedAt", null=True
    )
    finished_at: Any = DateTimeAttribute(_("finished at"), attr_name="finishedAt", null=True)
    workers = JSONAttribute(_("workers"), default=list)
    failures = IntegerAttribute(_("failures"), default=0)
    lease: Any = TextAttribute(null=True)
    fence: Any = IntegerAttribute(null=True)
    errors = JSONAttribute(_("errors"), null=True)
    return_value = JSONAttribute(_("return value"), attr_name="returnValue", null=True)
    place = JSONAttribute(null=True)
    expires = IntegerAttribute(null=True)

    #: The record of a task, as it was read together with the task. It is not an attribute.
    record: "TaskItem | None" = None

    @property
    def rank(self) -> str:
        """The beginning of its place, which is the same for all tasks of one priority."""
        return str(self.sort[:1] if self.sort.startswith(_DEFERRED) else self.sort[:3])

    @property
    def due_seconds(self) -> float:
        """The time since it became due, or failed; below 0 if it is not due yet."""
        digits = self.sort.removeprefix(self.rank)[:_TIME_DIGITS]
        return now().timestamp() - int(digits, 16) / 1_000_000

    def copied(self, **values: object) -> "TaskItem":
        """A new item with the values of this one and `values`, without the claim."""
        left_out = {"version", "lease", "fence"}
        own = {name: value for name, value in self.attribute_values.items() if name not in left_out}
        return TaskItem(**(own | values))


def partition_of(queue: str, shard: int) -> str:
    return f"{shard}#{queue}"


def sort_of(at: datetime, priority: int | None = None) -> str:
    """The sort key of a new place: at the end of its priority, or at the time when it is due."""
    rank = _DEFERRED if priority is None else f"{100 - priority:03d}"
    return f"{rank}{_time_text(at)}{get_random_string(11)}"


def bounds(at: datetime, *, only_deferred: bool = False) -> tuple[str, str]:
    """A partition has the tasks that can run between these sort keys."""
    return _DEFERRED if only_deferred else "0", f"{_DEFERRED}{_time_text(at)}~"


def place_of(id_: str) -> list[str] | None:
    """The key of a task that was never moved, by its id; None for other ids."""
    sort, _dot, rest = id_.partition(".")
    shard, _dot, queue = rest.partition(".")
    return [f"{shard}#{queue}", sort] if queue else None


def id_of(partition: str, sort: str) -> str:
    shard, _hash, queue = partition.partition("#")
    return f"{sort}.{shard}.{queue}"


def _time_text(at: datetime) -> str:
    return f"{round(at.timestamp() * 1_000_000):0{_TIME_DIGITS}x}"


def now() -> datetime:
    return datetime.now(UTC)
