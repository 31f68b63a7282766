"""`listtasks`: list the tasks that wait, run or have failed for good."""

import json

from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand, unreadable
from outbox.models import TaskItem
from outbox.worker import stored_tasks


class Command(DynamoCommand):
    """Prints one line per task. The tasks of a shard are in the order in which they run."""

    help = "List the tasks that wait, run or have failed for good."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--json`."""
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def handle(self, *args: object, **options: object) -> None:
        """Print each task as soon as it is read."""
        damaged: list[str] = []
        for item in stored_tasks(damaged=lambda _stored, error: damaged.append(error.key)):
            task = _as_json(item)
            text = "{status:8} {due:>12,} s  {id}  {function}, {attempts} attempts"
            text = text.format(due=round(item.due_seconds), **task)
            self.stdout.write(json.dumps(task) if options["json"] else text)
        if damaged:
            raise unreadable("task", damaged)


def _as_json(item: TaskItem) -> dict[str, object]:
    """The JSON object of a task.

    `seconds` is the time since it became due, below 0 if it is not due yet.
    """
    return {
        "id": item.id,
        "function": item.function,
        "queue": item.queue,
        "status": item.status,
        "attempts": len(item.workers),
        "failures": item.failures,
        "seconds": round(item.due_seconds, 3),
        "worker": item.lease,
    }
