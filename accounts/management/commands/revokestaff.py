from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import revoke_staff


class Command(UserCommand):
    help = "Take the rights of staff and superuser from an account. Harmless to repeat."

    def act(self, user: User, **options: Any) -> None:
        revoke_staff(user)
        self.stdout.write(f"{user.username} is not staff.")
