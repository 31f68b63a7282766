"""`retrytask`: let a task that has failed for good run again."""

from typing import Any

from django.core.management.base import CommandParser

from dynamo.management.base import DynamoCommand
from outbox.steps import restart


class Command(DynamoCommand):
    """Restarts one task, with all its attempts."""

    help = "Let a task that has failed for good run again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the id."""
        parser.add_argument("id", metavar="ID", help="the id of the task, as listtasks shows it")

    def handle(self, *args: object, **options: Any) -> None:
        """Restart the task."""
        restart(options["id"])
        self.tell(f"The task {options['id']} runs again.")
