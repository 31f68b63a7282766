"""`checktasks`: find tasks that have waited too long, cannot run, or are damaged."""

import json
import sys
from datetime import timedelta

from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from locks.exceptions import UnknownLock
from locks.registry import look
from outbox.framework import base
from outbox.models import TaskItem, now
from outbox.steps import LONG_SECONDS, task_of
from outbox.worker import stored_tasks


class Command(DynamoCommand):
    """Prints the problems that it finds. The exit code is 1 if there are any."""

    help = "Find tasks that wait for long, have failed, cannot run, or are damaged."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--json`."""
        parser.add_argument("--json", action="store_true", help="print one JSON document")

    def handle(self, *args: object, **options: object) -> None:
        """Read all tasks that have not ended."""
        found: dict[str, list[str]] = {
            kind: [] for kind in ("waiting", "stuck", "failed", "unknown", "damaged")
        }
        for item in stored_tasks(damaged=lambda _stored, error: found["damaged"].append(error.key)):
            for kind in _faults(item):
                found[kind].append(item.id)
        if options["json"]:
            self.stdout.write(json.dumps(found))
        else:
            for kind, ids in found.items():
                for id_ in ids:
                    self.stdout.write(f"{kind:8} {id_}")
        if any(found.values()):
            sys.exit(1)


def _faults(item: TaskItem) -> list[str]:
    faults = []
    if item.status == base.TaskResultStatus.FAILED:
        faults.append("failed")
    elif item.lease is None and item.due_seconds > LONG_SECONDS:
        faults.append("waiting")
    elif item.lease is not None:
        # This is reported if its worker is gone and no other worker has taken over. Clocks may
        # differ by minutes.
        at = now() - timedelta(seconds=LONG_SECONDS)
        try:
            is_gone = look(item.lease).is_silent(at)
        except UnknownLock:
            is_gone = True
        if is_gone:
            faults.append("stuck")
    try:
        task_of(item)
    except Exception:
        # Its function or its queue no longer exists, or its module cannot be imported.
        faults.append("unknown")
    return faults
