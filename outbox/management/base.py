"""Functions that the commands for tasks share."""

from typing import Any

from outbox.models import TaskItem, now, place_time


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
