"""The personal data of an account that its owner can download. Times are datetimes."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from accounts.models import AbstractAccount, account_model
from accounts.sessions import services as sessions
from accounts.signals import account_exporting
from dynamo import Model
from dynamo.inputs import in_camel_case

_ALWAYS_SHOWN = (
    "email_confirmed_at",
    "pending_email",
    "pending_until",
    "is_active",
    "is_staff",
    "is_superuser",
    "date_joined",
    "last_login",
)


def own_attributes() -> list[str]:
    """The names of the attributes that the project's model adds, without sensitive ones."""
    own = account_model().own_fields().items()
    return [name for name, one in own if not getattr(one.attribute, "sensitive", False)]


def shown_attributes() -> tuple[str, ...]:
    """The names of the attributes that the owner gets."""
    return ("pk", *account_model().typed_attributes(), *own_attributes(), *_ALWAYS_SHOWN)


def by_stored_name(item: Model, names: Iterable[str]) -> dict[str, object]:
    """The values of those `names` that the model has, by stored name, such as `fullName`."""
    attributes = item.get_attributes()
    return {
        str(attributes[name].attr_name): getattr(item, name) for name in names if name in attributes
    }


def account_of(user: AbstractAccount) -> dict[str, object]:
    shown = by_stored_name(user, shown_attributes())
    if user.pending_until is not None:
        shown["pendingUntil"] = datetime.fromtimestamp(user.pending_until, UTC)
    return shown


def exported_by_apps(user: AbstractAccount) -> dict[str, object]:
    """The data that receivers of `account_exporting` store about the account, by name.

    Raises:
        ValueError: two of them use the same name, or a name that the export has already.
    """
    parts: Sequence[tuple[object, Any]] = account_exporting.send(account_model(), user=user)
    exported: dict[str, object] = {}
    for receiver, part in parts:
        if repeated := (part or {}).keys() & {"account", "sessions", *exported}:
            raise ValueError(f"{receiver} exports {', '.join(repeated)}, as something else does.")
        exported |= part or {}
    return exported


def sessions_of(user: AbstractAccount) -> list[dict[str, object]]:
    """The sessions that have not ended."""
    shown = ("browser", "address", "signed_in_at", "seen_at", "expires_at")
    return [
        {in_camel_case(name): getattr(session, name) for name in shown}
        for session in sessions.active_sessions(user)
    ]
