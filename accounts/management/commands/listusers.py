"""`listusers`: all accounts, in no order, as they are read."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.output import as_json, as_row
from accounts.models import User
from dynamo.management.arguments import positive
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand):
    """Streams the accounts. It scans the table: 1 read unit per 4 KB of all that is in it."""

    help = "List accounts. Reads the whole table: 1 read unit per 4 KB of all that is in it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take how many, and the form of the answer."""
        parser.add_argument("--limit", type=positive, help="stop after so many")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each as it comes."""
        shape = as_json if options["json"] else as_row
        for user in User.scan(User.username.exists(), limit=options["limit"]):
            self.stdout.write(shape(user))
