from typing import Any

from accounts.emails.links import mark_confirmed
from accounts.management.base import UserCommand
from accounts.models import User


class Command(UserCommand):
    help = "Confirm an account's email address without a link."

    def act(self, user: User, **options: Any) -> str:
        if not user.is_confirmed:
            mark_confirmed(user)
        return f"{user.email} is confirmed."
