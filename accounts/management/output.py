"""How commands show accounts: as JSON for programs, as lines for people; never the hash."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from accounts.models import User

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
