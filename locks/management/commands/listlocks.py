"""`listlocks`: list all locks and their holders."""

import json
from datetime import UTC, datetime

from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from dynamo.runtime.terminal import printable
from locks.registry import LockView, all_locks


class Command(DynamoCommand):
    """Prints the table as it is read, in no order. Ages are by the clocks of the holders."""

    help = "List all locks: holder, state, age of the last renewal, lease, fencing token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add `--json`."""
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def handle(self, *args: object, **options: object) -> None:
        """Print each lock as soon as it is read."""
        shape = _as_json if options["json"] else as_row
        for lock in all_locks():
            self.stdout.write(shape(lock, datetime.now(UTC)))


def as_row(lock: LockView, at: datetime) -> str:
    """One line: name, state, holder, age of the last renewal, lease, fencing token."""
    age = _rounded_age(lock, at)
    return "  ".join(
        (
            printable(lock.name),
            lock.state.value,
            f"by {printable(lock.owner) if lock.owner else '?'}",
            f"renewed {'?' if age is None else f'{age:g} s'} ago",
            "no lease" if lock.lease_seconds is None else f"lease {lock.lease_seconds:g} s",
            f"fence {'?' if lock.fence is None else lock.fence}",
        )
    )


def _as_json(lock: LockView, at: datetime) -> str:
    shown = {
        "key": lock.name,
        "ownerName": lock.owner,
        "state": lock.state.value,
        "ageSeconds": _rounded_age(lock, at),
        "leaseSeconds": lock.lease_seconds,
        "fencingToken": lock.fence,
        "renewedAt": lock.renewed_at and lock.renewed_at.isoformat(timespec="milliseconds"),
    }
    # In ASCII: the line may be printed to a terminal, which control characters could affect.
    return json.dumps(shown)


def _rounded_age(lock: LockView, at: datetime) -> float | None:
    """The age of the last renewal in seconds. Never negative, although two clocks may differ."""
    age = lock.age_seconds(at)
    return None if age is None else max(0.0, round(age, 1))
