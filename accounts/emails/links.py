"""Links that mails carry: signed by the server, for one purpose, good for three days.

Signing says only that we made the link, and when. What it may do is decided where it is followed,
by what is stored then: that makes it good for once, and for its account and address alone.
"""

from __future__ import annotations

from typing import Any

from django.core import signing

from accounts.exceptions import BadLink
from accounts.models import User

VALID_DAYS = 3
VALID_SECONDS = VALID_DAYS * 24 * 60 * 60


def make(purpose: str, *parts: str) -> str:
    """The token of a link for `purpose`, which says `parts` to who follows it; readable by all.

    Costs no request.
    """
    return signing.dumps(parts, salt=_salt(purpose))


def read(purpose: str, token: str, count: int) -> list[str]:
    """The `count` parts that the token was made of.

    Raises:
        BadLink: it is older than three days, was made for another purpose, or not by us.
    """
    parts = check(purpose, token)
    if not isinstance(parts, list) or len(parts) != count:
        # As another version of this site made it.
        raise BadLink(purpose)
    return parts


def check(purpose: str, token: str) -> Any:
    """What the token holds. Costs no request, so it does not tell whether the link was used.

    Raises:
        BadLink: as `read`.
    """
    try:
        return signing.loads(token, salt=_salt(purpose), max_age=VALID_SECONDS)
    except signing.BadSignature as error:
        raise BadLink(purpose) from error


def account_of(purpose: str, pk: str) -> User:
    """The account that a link names. Costs 1 request and 1 read unit.

    Raises:
        BadLink: it was deleted.
    """
    try:
        return User.get(pk)
    except User.DoesNotExist:
        raise BadLink(purpose) from None


def _salt(purpose: str) -> str:
    return f"accounts.links.{purpose}"
