"""What the account commands share: finding WHO, what is text, and saying what went wrong."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.exceptions import AccountError
from accounts.models import User
from accounts.services import find_user
from dynamo.exceptions import Refused
from dynamo.management.base import DynamoCommand


@contextmanager
def said_plainly() -> Iterator[None]:
    """Turn what an account operation refuses into one line on stderr and exit code 1."""
    try:
        yield
    except Refused as error:
        raise CommandError(" ".join(str(each) for each in error.exceptions)) from error
    except AccountError as error:
        raise CommandError(str(error)) from error
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from error
    except EOFError as error:
        raise CommandError("The input ended before there was an answer.") from error


def is_text(typed: str) -> bool:
    """Whether it can be hashed and stored: bytes that are no UTF-8 are read as lone surrogates."""
    try:
        typed.encode()
    except UnicodeEncodeError:
        return False
    return True


class UserCommand(DynamoCommand, ABC):
    """A command on one account, WHO. Subclasses say what is done, in `act`."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO."""
        parser.add_argument(
            "who", metavar="WHO", help="a username, an email address or a primary key"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Find the account and act on it."""
        with said_plainly():
            self.act(find_user(options["who"]), **options)

    @abstractmethod
    def act(self, user: User, **options: Any) -> None:
        """Do it."""


_SHOWN = {
    "pk": "pk",
    "userName": "username",
    "email": "email",
    "fullName": "full_name",
    "phoneNumber": "phone_number",
    "isActive": "is_active",
    "isStaff": "is_staff",
    "joinedAt": "date_joined",
    "lastLoginAt": "last_login",
}


def as_json(user: User) -> str:
    """One JSON object; times are ISO 8601 in UTC, what is not there is null."""
    shown = {key: getattr(user, name) for key, name in _SHOWN.items()}
    return json.dumps(shown, default=_iso, ensure_ascii=False)


def as_lines(user: User) -> str:
    """One line for each value that is there."""
    shown = {key: getattr(user, name) for key, name in _SHOWN.items()}
    if user.is_superuser:
        shown["isSuperuser"] = True
    return "\n".join(
        f"{key + ':':<13}{_readable(value)}" for key, value in shown.items() if value is not None
    )


def as_row(user: User) -> str:
    """One line: key, name, address, and whether it cannot sign in."""
    state = "" if user.is_active else "  (deactivated)"
    return f"{user.pk}  {user.username}  {user.email}{state}"


def _iso(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON form")


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _iso(value) if isinstance(value, datetime) else str(value)
