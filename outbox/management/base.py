"""What the commands for tasks share: the tasks of the queues, and how one is shown."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamo import DamagedItem
from dynamo.wire.types import Item
from outbox.models import FAILED, TaskItem, now, place_time
from outbox.worker import own_backends, partitions


def stored_tasks(
    queues: Iterable[str] = (), damaged: Callable[[Item, DamagedItem], Any] | None = None
) -> Iterator[TaskItem]:
    """The tasks that wait, run or have failed for good. Costs 1 read unit per 4 KB of them."""
    known = {queue for backend in own_backends() for queue in backend.queues}
    failed = (f"{FAILED}#{queue}" for queue in sorted({*queues} or known))
    for partition in (*partitions(queues), *failed):
        yield from TaskItem.query(partition, damaged=damaged)


def as_json(item: TaskItem) -> dict[str, Any]:
    """A task for programs. `seconds`: how long it has been due, below 0 if it is not due yet."""
    return {
        "id": item.id,
        "function": item.function,
        "queue": item.queue,
        "status": item.status,
        "attempts": len(item.workers),
        "failures": item.failures,
        "seconds": round((now() - place_time(item.sort)).total_seconds(), 3),
        "worker": item.lease,
    }
