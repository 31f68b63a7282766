"""`changeemail`: another address for an account."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import change_email


class Command(UserCommand):
    """Moves the address and its guard in one transaction."""

    help = "Give an account another email address."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO and the new address."""
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def act(self, user: User, **options: Any) -> None:
        """Change it."""
        change_email(user, options["email"])
        self.stdout.write(f"{user.username} has the address {user.email}.")
