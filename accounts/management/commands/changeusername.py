from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import change_username


class Command(UserCommand):
    help = "Change an account's username."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("username", metavar="NAME")

    def act(self, user: User, **options: Any) -> None:
        change_username(user, options["username"])
        self.stdout.write(f"{user.email} has the username {user.username}.")
