"""`changeusername`: another username for an account."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import change_username


class Command(UserCommand):
    """Moves the username and its guard in one transaction."""

    help = "Give an account another username."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO and the new name."""
        super().add_arguments(parser)
        parser.add_argument("username", metavar="NAME")

    def act(self, user: User, **options: Any) -> None:
        """Change it."""
        change_username(user, options["username"])
        self.stdout.write(f"{user.email} has the username {user.username}.")
