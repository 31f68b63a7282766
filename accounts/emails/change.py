"""An email change that is made when a link to the new address is followed.

Until then the account keeps its address. It stores the new one and the id of a reservation, which
keeps other accounts from the new address for three days (`dynamo.unique.guards`). The link contains
the account's key and that id. So it works for this change only: not after another change, a newer
request or another password, and not for another account with the same key. The id becomes the
`confirmation_id` of the changed account, so a link that is followed twice is recognized.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from accounts import services
from accounts.emails import links
from accounts.emails.confirmation import ATTEMPTS
from accounts.exceptions import BadLink, StaleUser
from accounts.models import NO_PENDING_CHANGE, User, new_confirmation_id
from dynamo.transactions import Transaction
from dynamo.unique import guards

PURPOSE = "email_change"


@dataclass(frozen=True)
class Confirmed:
    """The account with its new address, and the `former` one. None if nothing was written."""

    user: User
    former: str | None


def request_change(user: User, email: str, *, write: Transaction | None = None) -> None:
    """Reserve `email` for `user` for three days, and store the change that waits.

    It replaces a change that waits already, even one to the same address, and makes its link void.
    If `email` is another spelling of the account's address, it is changed at once.

    Costs 1 request and 4 write units; 6 if it replaces a change to another address; 1 request more
    if another account took that address after it lapsed.

    Raises:
        ValidationError: not a valid email address.
        EmailTaken: another account has it or has reserved it.
        StaleUser: the account changed or was deleted since `user` was read.
    """
    values = services.cleaned(email=email)
    if not User.unique.moves(user, values):
        services.change_email(user, email, write=write)
        return
    services.change(
        user,
        {
            "pending_email": values["email"],
            "pending_reservation": new_confirmation_id(),
            "pending_until": guards.now() + links.VALID_SECONDS,
        },
        # A change that lapsed meanwhile, with another password, does not count.
        is_so=lambda stored: stored.awaited_email == values["email"],
        write=write,
    )


def link_token(user: User) -> str:
    """The token of a link that makes the change that waits."""
    return links.make(PURPOSE, user.pk, str(user.pending_reservation))


def confirm_change(token: str, *, write: Transaction | None = None) -> Confirmed:
    """Give the link's account its reserved address, which is then confirmed, and free the old one.

    If the link was followed before, nothing changes. Costs 2 requests, 1 read and 6 write units;
    only the read if nothing changes.

    Raises:
        BadLink: the link or its reservation is too old; the change was canceled, replaced or lapsed
            with a password; or the account has another address or was deleted.
        EmailTaken: another account took the address after the reservation lapsed.
        StaleUser: others changed the account at each attempt.
    """
    pk, reservation = links.read(PURPOSE, token, 2)
    former = None
    for _attempt in range(ATTEMPTS):
        user = links.account_of(PURPOSE, pk)
        if user.confirmation_id == reservation:
            return Confirmed(user, former)
        if user.pending_reservation != reservation or not user.awaited_email:
            raise BadLink(PURPOSE)
        former = user.email
        values = {
            "email": user.pending_email,
            "email_confirmed_at": datetime.now(UTC),
            "confirmation_id": reservation,
        }
        try:
            services.change(user, values | NO_PENDING_CHANGE, write=write)
        except StaleUser:
            # Perhaps this link was followed twice at once, or a reply was lost.
            continue
        return Confirmed(user, former)
    raise StaleUser(pk)


def cancel_change(user: User, *, write: Transaction | None = None) -> None:
    """Drop the change that waits for its link, and free the reserved address.

    Costs 1 request and 4 write units, nothing if no change waits.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    services.change(user, dict(NO_PENDING_CHANGE), write=write)
