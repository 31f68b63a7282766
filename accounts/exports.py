"""All that is kept about a person, as one JSON document, made while it is sent.

    {"account": {...},
    "sessions": [...],
    "invoices": [
    {...},
    {...}
    ]}

Memory holds one page of invoices (1 MB). The document is whole only with its last line: what breaks
off before, because DynamoDB does not answer, is no JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from accounts import sessions
from accounts.models import User
from invoices.documents import Invoice
from invoices.jsonform import as_full_json
from invoices.records import all_invoices
from invoices.years import years_of

#: What of an account its owner may see, by the names under which it is stored.
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
    "language": "language",
    "isActive": "is_active",
    "isStaff": "is_staff",
    "joinedAt": "date_joined",
    "lastLoginAt": "last_login",
}


def as_json(user: User) -> Iterator[bytes]:
    """The document of `user` in UTF-8, piece by piece; the first invoice is read right away.

    Costs 6 requests and 260 read units to find the years (`invoices.years`), then 1 request for
    each of them and for each MB, and 1 read unit per 4 KB of invoices.
    """
    invoices = _invoices(user.pk)
    first = next(invoices, None)
    return _pieces(user, invoices if first is None else chain([first], invoices))


def _invoices(account: str) -> Iterator[Invoice]:
    for year in sorted(years_of(account)):
        yield from all_invoices(account, year, oldest_first=True)


def _pieces(user: User, invoices: Iterator[Invoice]) -> Iterator[bytes]:
    yield f'{{"account": {_dumped(_account(user))},\n'.encode()
    yield f'"sessions": {_dumped([_session(each) for each in sessions.alive(user)])},\n'.encode()
    yield b'"invoices": ['
    before = "\n"
    for invoice in invoices:
        yield f"{before}{as_full_json(invoice)}".encode()
        before = ",\n"
    yield b"\n]}\n"


def _account(user: User) -> dict[str, Any]:
    shown = {name: getattr(user, attribute) for name, attribute in SHOWN.items()}
    if user.pending_until is not None:
        shown["pendingUntil"] = datetime.fromtimestamp(user.pending_until, UTC)
    return shown


def _session(session: sessions.Session) -> dict[str, Any]:
    return {
        "browser": session.browser,
        "address": session.address,
        "signedInAt": session.signed_in_at,
        "seenAt": session.seen_at,
        "expiresAt": session.expires_at,
    }


def _dumped(shown: Any) -> str:
    return json.dumps(shown, default=datetime.isoformat, ensure_ascii=False)
