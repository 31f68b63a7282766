"""A change of address that waits until a link to the new address is followed.

Until then the account keeps the address that it has. It notes the new one, and the id of its
reservation, which keeps others from the new address for three days. The link
names the account and that id. So it makes this change or none: not after another change, a newer
request or another password, nor for an account that was made anew. The id becomes the
`confirmation_id` of the changed account; by it the link is known again where it is followed twice.
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
    """The account that has its new address now, and the one before.

    `former` is None where the link had been followed before, and nothing was written.
    """

    user: User
    former: str | None


def request_change(user: User, email: str, *, write: Transaction | None = None) -> None:
    """Reserve `email` for `user` for three days, and note the change, in one transaction.

    A change that waits already is replaced, and its link void; also one to the same address. The
    address that `user` has, in whatever spelling, waits for nothing: see `services.change_email`.

    Costs 1 request and 4 write units; 6 where it replaces a change to another address; 1 request
    more where another took that address since it lapsed.

    Raises:
        ValidationError: no email address.
        EmailTaken: another account has it, or has reserved it.
        StaleUser: the account changed, or was deleted, since `user` was read.
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
        # Not one that has lapsed since: with a password that was changed at this moment.
        is_so=lambda stored: stored.awaited_email == values["email"],
        write=write,
    )


def link_token(user: User) -> str:
    """The token of the link that makes the change which `user` waits for. Costs no request."""
    return links.make(PURPOSE, user.pk, str(user.pending_reservation))


def confirm_change(token: str, *, write: Transaction | None = None) -> Confirmed:
    """Give the account of the link the address that is reserved for it, in one transaction.

    The reservation becomes the guard, the old address is free, and the new one is confirmed. A
    link that did so before changes nothing. Costs 2 requests, 1 read and 6 write units; only the
    read where there is nothing to do.

    Raises:
        BadLink: the link or its reservation is too old; or the change was cancelled or replaced,
            or lapsed with a password; or the account has another address by now, or is deleted.
        EmailTaken: another account took the address when it had lapsed.
        StaleUser: others changed the account each time.
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
        try:
            _take_awaited(user, write)
        except StaleUser:
            # Perhaps by this link, followed twice at once; or its reply was lost.
            continue
        return Confirmed(user, former)
    raise StaleUser(pk)


def _take_awaited(user: User, write: Transaction | None) -> None:
    values = {
        "email": user.pending_email,
        "email_confirmed_at": datetime.now(UTC),
        "confirmation_id": user.pending_reservation,
    }
    services.change(user, values | NO_PENDING_CHANGE, write=write)


def cancel_change(user: User, *, write: Transaction | None = None) -> None:
    """Drop the change that waits for its link, and free the reserved address.

    Costs 1 request and 4 write units, nothing where no change waits.

    Raises:
        StaleUser: the account changed, or was deleted, since `user` was read.
    """
    services.change(user, dict(NO_PENDING_CHANGE), write=write)
