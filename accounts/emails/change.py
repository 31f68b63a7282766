"""An email change that is made when a link to the new address is followed.

Until then the account keeps its address and only notes the new one, with a random id. The new
address stays free: nobody can keep a stranger's address by requesting it, and the page does not
tell whether an account has it. Who follows a link first gets the address. The link contains the
account's key and that id. So it works for this change only: not after another change, a newer
request or another password, and not for another account with the same key. The id becomes the
`confirmation_id` of the changed account, so a link that is followed twice is recognized.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accounts import services
from accounts.emails import links
from accounts.emails.confirmation import ATTEMPTS
from accounts.exceptions import BadLink, StaleUser
from accounts.models import NO_PENDING_CHANGE, User
from dynamo import Transaction

PURPOSE = "email_change"


@dataclass(frozen=True)
class Confirmed:
    """The account with its new address, and the `former` one. None if nothing was written.

    `was_confirmed` says whether the former address was.
    """

    user: User
    former: str | None
    was_confirmed: bool = False


def request_change(user: User, email: str, *, write: Transaction | None = None) -> None:
    """Store the change of `user` to `email`, which waits for its link for three days.

    It replaces a change that waits already, even one to the same address, and makes its link void.
    If `email` is another spelling of the account's address, it is changed at once. Whether another
    account has it is decided when the link is followed.

    Costs 1 request and 1 write unit.

    Raises:
        ValidationError: not a valid email address.
        StaleUser: the account changed or was deleted since `user` was read.
    """
    values = User.cleaned(email=email)
    if User.guard_key_of(email=values["email"]) == User.guard_keys_of(user.stored).get(("email",)):
        services.change_email(user, email, write=write)
        return
    user.await_email(values["email"], links.VALID_SECONDS, write=write)


def link_token(user: User) -> str:
    """The token of a link that makes the change that waits."""
    return links.make(PURPOSE, user.pk, str(user.pending_id))


def address_of(token: str) -> str:
    """The address that the link gives the account; empty if the change does not wait any more.

    Costs 1 request and 1 read unit.

    Raises:
        BadLink: the link is too old, or the account was deleted.
    """
    user, pending_id = links.account(PURPOSE, token)
    return (user.awaited_email or "") if user.pending_id == pending_id else ""


def confirm_change(token: str, *, write: Transaction | None = None) -> Confirmed:
    """Give the link's account its new address, which is then confirmed, and free the old one.

    If the link was followed before, nothing changes. Costs 2 requests, 1 read and 8 write units;
    only the read if nothing changes.

    Raises:
        BadLink: the link is too old; the change was canceled, replaced or dropped with a password;
            or the account has another address or was deleted.
        EmailTaken: another account has the address.
        StaleUser: others changed the account at each attempt.
    """
    former: str | None = None
    was_confirmed = False
    for _attempt in range(ATTEMPTS):
        user, pending_id = links.account(PURPOSE, token)
        if user.confirmation_id == pending_id:
            return Confirmed(user, former, was_confirmed)
        if user.pending_id != pending_id or not user.awaited_email:
            raise BadLink(PURPOSE)
        former, was_confirmed = user.email, user.is_confirmed
        values: dict[str, Any] = {
            "email": user.pending_email,
            "email_confirmed_at": datetime.now(UTC),
            "confirmation_id": pending_id,
        }
        # Perhaps this link was followed twice at once, or a reply was lost.
        with suppress(StaleUser):
            user.change(**values, **NO_PENDING_CHANGE, write=write)
            return Confirmed(user, former, was_confirmed)
    raise StaleUser(user.pk)


def cancel_change(user: User, *, write: Transaction | None = None) -> None:
    """Drop the change that waits for its link.

    Costs 1 request and 1 write unit, nothing if no change waits.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    user.change(**NO_PENDING_CHANGE, write=write)
