from __future__ import annotations

from typing import Any

from accounts.management.base import UserCommand
from accounts.models import User
from accounts.services import deactivate


class Command(UserCommand):
    help = "End an account's sessions and prevent sign-ins. Its username and email stay taken."

    def act(self, user: User, **options: Any) -> None:
        deactivate(user)
        self.stdout.write(f"{user.username} cannot sign in any more.")
