"""`showuser`: one account."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand, as_json, as_lines
from accounts.models import User


class Command(UserCommand):
    """Prints what is stored of an account, but for its password hash."""

    help = "Show an account."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, and the form of the answer."""
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true")

    def act(self, user: User, **options: Any) -> None:
        """Print it."""
        self.stdout.write(as_json(user) if options["json"] else as_lines(user))
