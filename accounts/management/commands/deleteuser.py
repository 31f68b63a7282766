"""`deleteuser`: the end of an account."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import delete


class Command(UserCommand):
    """Deletes an account with its guards in one transaction; asks first."""

    help = "Delete an account; its username and email address become free."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, and whether to ask."""
        super().add_arguments(parser)
        parser.add_argument(
            "--no-input", "--noinput", action="store_false", dest="interactive", help="do not ask"
        )

    def act(self, user: User, **options: Any) -> None:
        """Ask, then delete."""
        if options["interactive"] and not self._confirmed(user):
            raise CommandError("Nothing was deleted.")
        delete(user)
        self.stdout.write(f"The account of {user.username} is deleted.")

    def _confirmed(self, user: User) -> bool:
        question = f"Delete the account of {user.username} ({user.email})? Type yes to go on: "
        try:
            return input(question).strip().lower() == "yes"
        except EOFError:
            return False
