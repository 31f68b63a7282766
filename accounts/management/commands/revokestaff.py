"""`revokestaff`: takes the rights of staff from an account."""

from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import revoke_staff


class Command(UserCommand):
    """Takes the rights of staff and superuser from an account, at once; harmless to repeat."""

    help = "Take the rights of staff and superuser from an account."

    def act(self, user: User, **options: Any) -> None:
        """Revoke them."""
        revoke_staff(user)
        self.stdout.write(f"{user.username} is not staff.")
