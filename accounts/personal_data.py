"""The personal data of an account that its owner can download. Times are datetimes."""

from collections.abc import Iterable
from datetime import UTC, datetime

from accounts.models import VALUES, User
from accounts.sessions import services as sessions
from dynamo import Model
from dynamo.inputs import in_camel_case

SHOWN = (
    "pk",
    *VALUES,
    "email_confirmed_at",
    "pending_email",
    "pending_until",
    "is_active",
    "is_staff",
    "is_superuser",
    "date_joined",
    "last_login",
)


def by_stored_name(item: Model, names: Iterable[str]) -> dict[str, object]:
    """The values of attributes by their stored names, such as `fullName`."""
    attributes = item.get_attributes()
    return {str(attributes[name].attr_name): getattr(item, name) for name in names}


def account_of(user: User) -> dict[str, object]:
    shown = by_stored_name(user, SHOWN)
    if user.pending_until is not None:
        shown["pendingUntil"] = datetime.fromtimestamp(user.pending_until, UTC)
    return shown


def sessions_of(user: User) -> list[dict[str, object]]:
    """The sessions that have not ended."""
    shown = ("browser", "address", "signed_in_at", "seen_at", "expires_at")
    return [
        {in_camel_case(name): getattr(session, name) for name in shown}
        for session in sessions.active_sessions(user)
    ]
