"""What the account commands share: how they find an account, show it and report errors."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TextIO

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.exceptions import AccountError
from accounts.models import User
from accounts.services import find_user
from accounts.values import PASSWORD_MAX_LENGTH
from dynamo import Refused
from dynamo.management.base import DynamoCommand

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


class UserCommand(DynamoCommand, ABC):
    """A command on one account, WHO."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "who", metavar="WHO", help="a username, an email address or a primary key"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with explained_errors():
            self.act(find_user(options["who"]), **options)

    @abstractmethod
    def act(self, user: User, **options: Any) -> None: ...


@contextmanager
def explained_errors() -> Iterator[None]:
    """Turn the errors of account operations into one line on stderr and exit code 1."""
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
    """Whether `typed` can be stored. Python reads bytes that are not UTF-8 as lone surrogates."""
    try:
        typed.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_typed_password(password: str) -> None:
    """Refuse a password that no form accepts, because nobody could sign in with it.

    Raises:
        ValidationError
    """
    if not is_text(password):
        raise ValidationError("This is not valid text.")
    if len(password) > PASSWORD_MAX_LENGTH:
        raise ValidationError(f"Use at most {PASSWORD_MAX_LENGTH} characters.")


def read_line(file: TextIO, default: str | None = None) -> str:
    """A line without its end. At the end of the file `default`.

    Raises:
        ValidationError: the line is not in the file's encoding.
        EOFError: the file has ended, and there is no default.
    """
    try:
        line = file.readline()
    except UnicodeDecodeError as error:
        raise ValidationError("This is not valid text.") from error
    if not line and default is None:
        raise EOFError
    return line.rstrip("\r\n") or default or ""


def as_json(user: User) -> str:
    """One JSON object. Times are ISO 8601 in UTC, missing values are null."""
    shown = {key: getattr(user, name) for key, name in _SHOWN.items()}
    return json.dumps(shown, default=_iso, ensure_ascii=False)


def as_lines(user: User) -> str:
    """One line for each value that the account has."""
    shown = {key: getattr(user, name) for key, name in _SHOWN.items()}
    if user.is_superuser:
        shown["isSuperuser"] = True
    return "\n".join(
        f"{key + ':':<13}{_readable(value)}" for key, value in shown.items() if value is not None
    )


def as_row(user: User) -> str:
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
