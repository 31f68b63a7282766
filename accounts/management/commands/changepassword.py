"""`changepassword`: Django's own, which finds WHO and says plainly what went wrong."""

from __future__ import annotations

import sys
import warnings
from getpass import GetPassWarning
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandError

from accounts.management.base import is_text, said_plainly
from accounts.values import PASSWORD_MAX_LENGTH
from dynamo.management.base import DynamoCommand


class Command(DynamoCommand, changepassword.Command):
    """Asks twice for a password and stores its hash; without a terminal it reads two lines."""

    def handle(self, *args: Any, **options: Any) -> Any:
        """Change it."""
        with said_plainly():
            return super().handle(*args, **options)

    def _get_pass(self, *args: Any, **options: Any) -> str:
        try:
            with warnings.catch_warnings():
                # Else it says in five lines that what is typed may be seen: nobody types.
                warnings.simplefilter("error", GetPassWarning)
                password: str = super()._get_pass(*args, **options)  # type: ignore[misc]  # not in the stubs
        except GetPassWarning:
            password = _next_line()
        if not is_text(password):
            raise CommandError("This is no text.")
        if len(password) > PASSWORD_MAX_LENGTH:
            # No form takes it, so nobody could sign in with it.
            raise CommandError(f"Use at most {PASSWORD_MAX_LENGTH} characters.")
        return password


def _next_line() -> str:
    try:
        line = sys.stdin.readline()
    except UnicodeDecodeError as error:
        raise CommandError("This is no text.") from error
    if not line:
        raise EOFError
    return line.rstrip("\r\n")
