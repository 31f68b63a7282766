from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand, as_json, as_lines
from accounts.models import User


class Command(UserCommand):
    help = "Show an account, without its password hash."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true")

    def act(self, user: User, **options: Any) -> None:
        self.stdout.write(as_json(user) if options["json"] else as_lines(user))
