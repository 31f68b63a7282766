"""The personal data of an account that its owner can download. Times are datetimes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from accounts.models import User
from accounts.sessions import services as sessions

#: Stored name and Python name.
SHOWN = {
    "pk": "pk",
    "userName": "username",
    "email": "email",
    "emailConfirmedAt": "email_confirmed_at",
    "pendingEmail": "pending_email",
    "pendingUntil": "pending_until",
    "fullName": "full_name",
    "phoneNumber": "phone_number",
    "businessName": "business_name",
    "businessAddress": "business_address",
    "vatId": "vat_id",
    "country": "country",
    "taxNumber": "tax_number",
    "iban": "iban",
    "bic": "bic",
    "accountHolder": "account_holder",
    "currency": "currency",
    "paymentDays": "payment_days",
    "paymentTerms": "payment_terms",
    "timeZone": "time_zone",
    "language": "language",
    "isActive": "is_active",
    "isStaff": "is_staff",
    "isSuperuser": "is_superuser",
    "joinedAt": "date_joined",
    "lastLoginAt": "last_login",
}


def account_of(user: User) -> dict[str, Any]:
    shown = {name: getattr(user, attribute) for name, attribute in SHOWN.items()}
    if user.pending_until is not None:
        shown["pendingUntil"] = datetime.fromtimestamp(user.pending_until, UTC)
    return shown


def sessions_of(user: User) -> list[dict[str, Any]]:
    """The sessions that have not ended."""
    return [
        {
            "browser": session.browser,
            "address": session.address,
            "signedInAt": session.signed_in_at,
            "seenAt": session.seen_at,
            "expiresAt": session.expires_at,
        }
        for session in sessions.alive(user)
    ]
