"""The personal data of an account that its owner can download. Times are datetimes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from accounts.attributes import in_camel_case
from accounts.models import VALUES, User
from accounts.sessions import services as sessions

_NAMES = (
    "pk",
    *VALUES,
    *("email_confirmed_at", "pending_email", "pending_until"),
    *("is_active", "is_staff", "is_superuser", "date_joined", "last_login"),
)
#: Stored name and Python name.
SHOWN = {str(User.get_attributes()[name].attr_name): name for name in _NAMES}


def account_of(user: User) -> dict[str, Any]:
    shown = {name: getattr(user, attribute) for name, attribute in SHOWN.items()}
    if user.pending_until is not None:
        shown["pendingUntil"] = datetime.fromtimestamp(user.pending_until, UTC)
    return shown


def sessions_of(user: User) -> list[dict[str, Any]]:
    """The sessions that have not ended."""
    shown = ("browser", "address", "signed_in_at", "seen_at", "expires_at")
    return [
        {in_camel_case(name): getattr(session, name) for name in shown}
        for session in sessions.alive(user)
    ]
