from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import activate


class Command(UserCommand):
    help = "Let a deactivated account sign in again."

    def act(self, user: User, **options: Any) -> None:
        activate(user)
        self.stdout.write(f"{user.username} can sign in.")
