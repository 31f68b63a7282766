"""`changepassword`: Django's own, which finds WHO and says plainly what went wrong."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.management.commands import changepassword

from accounts.management.base import said_plainly
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand, changepassword.Command):
    """Asks twice for a password on a terminal and stores its hash."""

    def handle(self, *args: Any, **options: Any) -> Any:
        """Change it."""
        with said_plainly():
            return super().handle(*args, **options)
