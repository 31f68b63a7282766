"""`deactivateuser`: nobody signs in to the account any more."""

from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import deactivate


class Command(UserCommand):
    """Ends an account's sessions and lets nobody sign in; its name and address stay taken."""

    help = "Let nobody sign in to an account."

    def act(self, user: User, **options: Any) -> None:
        """Deactivate it."""
        deactivate(user)
        self.stdout.write(f"{user.username} may not sign in any more.")
