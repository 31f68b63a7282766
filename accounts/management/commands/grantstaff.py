from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import grant_staff


class Command(UserCommand):
    help = "Let an account use the staff pages. Harmless to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--superuser", action="store_true", help="also allow actions on other staff"
        )

    def act(self, user: User, **options: Any) -> None:
        grant_staff(user, superuser=options["superuser"])
        self.stdout.write(f"{user.username} is {'a superuser' if user.is_superuser else 'staff'}.")
