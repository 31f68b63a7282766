"""What the account commands share: how they find an account and show it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from accounts.models import User
from accounts.services import find_user
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
        self.act(find_user(options["who"]), **options)

    @abstractmethod
    def act(self, user: User, **options: Any) -> None: ...


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
