"""Confirming that an email address belongs to the account's owner, by a link to the address.

The link contains the account's `confirmation_id`, which changes with the address.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from accounts.emails import links
from accounts.exceptions import BadLink, StaleUser
from accounts.models import User, new_confirmation_id
from dynamo import Transaction

PURPOSE = "confirm"

#: How often a link's write is attempted while other requests change the account.
ATTEMPTS = 5


def link_token(user: User) -> str:
    """The token of a link that confirms the address of `user`.

    Costs nothing; 1 request and 1 write unit for an account that is older than confirmations.

    Raises:
        StaleUser: such an account changed or was deleted since it was read.
    """
    if not user.confirmation_id:
        user.change(confirmation_id=new_confirmation_id())
    return links.make(PURPOSE, user.pk, str(user.confirmation_id))


def address_of(token: str) -> str:
    """The address that the link confirms; empty if the account has another one by now.

    Costs 1 request and 1 read unit.

    Raises:
        BadLink: the link is too old, or the account was deleted.
    """
    user, confirmation_id = links.account(PURPOSE, token)
    return user.email if user.confirmation_id == confirmation_id else ""


def confirm(token: str, *, write: Transaction | None = None) -> User:
    """Confirm the address of the link's account. If it is confirmed already, it is a success.

    Costs 2 requests, 1 read and 1 write unit; only the read if it was confirmed before.

    Raises:
        BadLink: the link is too old, the account has another address, or it was deleted.
        StaleUser: others changed the account at each attempt.
    """
    for _attempt in range(ATTEMPTS):
        user, confirmation_id = links.account(PURPOSE, token)
        if user.confirmation_id != confirmation_id:
            raise BadLink(PURPOSE)
        if user.is_confirmed:
            return user
        with suppress(StaleUser):
            mark_confirmed(user, write=write)
            return user
    raise StaleUser(user.pk)


def mark_confirmed(user: User, *, write: Transaction | None = None) -> None:
    """Record that the address of `user` is confirmed. Costs 1 request and 1 write unit.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    user.change(email_confirmed_at=datetime.now(UTC), write=write)
