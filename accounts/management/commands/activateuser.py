"""`activateuser`: the opposite of `deactivateuser`."""

from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import activate


class Command(UserCommand):
    """Lets a deactivated account sign in again."""

    help = "Let a deactivated account sign in again."

    def act(self, user: User, **options: Any) -> None:
        """Activate it."""
        activate(user)
        self.stdout.write(f"{user.username} may sign in.")
