"""Links in mails: signed, for one purpose, valid for three days.

The signature only proves that this site made the link, and when. What a link may do depends on
what is stored when it is followed. So it works once, and only for its account and address.
"""

from __future__ import annotations

from typing import Any

from django.core import signing

from accounts.exceptions import BadLink
from accounts.models import User

VALID_DAYS = 3
VALID_SECONDS = VALID_DAYS * 24 * 60 * 60


def make(purpose: str, *parts: str) -> str:
    """The token of a link for `purpose`. Everybody can read its `parts`."""
    return signing.dumps(parts, salt=_salt(purpose))


def read(purpose: str, token: str, count: int) -> list[str]:
    """The `count` parts of a token.

    Raises:
        BadLink: it is older than three days, or this site did not make it for this purpose.
    """
    parts = check(purpose, token)
    if not isinstance(parts, list) or len(parts) != count:
        # Made by another version of this site.
        raise BadLink(purpose)
    return parts


def check(purpose: str, token: str) -> Any:
    """The contents of a token. Sends no request, so it does not know whether the link was used.

    Raises:
        BadLink: as `read`.
    """
    try:
        return signing.loads(token, salt=_salt(purpose), max_age=VALID_SECONDS)
    except signing.BadSignature as error:
        raise BadLink(purpose) from error


def account(purpose: str, token: str) -> tuple[User, str]:
    """The account of a link, and the id that it has. Costs 1 request and 1 read unit.

    Raises:
        BadLink: as `read`; or the account was deleted.
    """
    pk, link_id = read(purpose, token, 2)
    return account_of(purpose, pk), link_id


def account_of(purpose: str, pk: str) -> User:
    """The account of a link. Costs 1 request and 1 read unit.

    Raises:
        BadLink: the account was deleted.
    """
    try:
        return User.get(pk)
    except User.DoesNotExist:
        raise BadLink(purpose) from None


def _salt(purpose: str) -> str:
    return f"accounts.links.{purpose}"
