"""`changepassword`: Django's own, which finds WHO and says plainly what went wrong."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandError

from accounts.management.base import said_plainly
from accounts.values import PASSWORD_MAX_LENGTH
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand, changepassword.Command):
    """Asks twice for a password on a terminal and stores its hash."""

    def handle(self, *args: Any, **options: Any) -> Any:
        """Change it."""
        with said_plainly():
            return super().handle(*args, **options)

    def _get_pass(self, *args: Any, **options: Any) -> str:
        password: str = super()._get_pass(*args, **options)  # type: ignore[misc]  # not in the stubs
        if len(password) > PASSWORD_MAX_LENGTH:
            # No form takes it, so nobody could sign in with it.
            raise CommandError(f"Use at most {PASSWORD_MAX_LENGTH} characters.")
        return password
