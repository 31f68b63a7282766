from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import change_email


class Command(UserCommand):
    help = "Change an account's email address."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("email", metavar="EMAIL")

    def act(self, user: User, **options: Any) -> None:
        change_email(user, options["email"])
        self.stdout.write(f"{user.username} has the email address {user.email}.")
