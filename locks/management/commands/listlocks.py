"""`listlocks`: who holds what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.core.management.base import CommandParser

from locks.management.base import LockCommand
from locks.management.output import as_json, as_row
from locks.registry import all_locks


class Command(LockCommand):
    """Streams the table, in no order. The age of a renewal is by the holder's time of day."""

    help = "List all locks: holder, state, age of the last renewal, lease, fencing token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form of the answer."""
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each as it comes."""
        shape = as_json if options["json"] else as_row
        for lock in all_locks():
            self.stdout.write(shape(lock, datetime.now(UTC)))
