"""Links in mails: their tokens, and the links that confirm or change an email address.

A token is signed, for one purpose, and valid for three days. The signature only proves that this
site made the link, and when. The values that are stored when a link is followed decide what it may
do. Therefore, a link works once, and only for its account and address.

A link to the account's address confirms it. It contains the account's `confirmation_id`, which
changes with the address.

A link to another address changes the account's address to that one. Until the link is followed, the
account keeps its address and stores the new one with a random id. The new address is not reserved:
anybody else can still take it, and the page does not reveal whether an account has it. The first
account whose link is followed gets the address. The link contains the account's key and that id.
Therefore, the link works for this change only. Another change, a newer request or another password
makes it void, and it does not work for a later account with the same key. The id becomes the
`confirmation_id` of the changed account, so a link that is followed twice is recognized.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeVar

from django.core import signing

from accounts import services
from accounts.exceptions import BadLink, StaleUser, UsedLink
from accounts.models import NO_PENDING_CHANGE, AbstractAccount, account_model, new_confirmation_id
from dynamo import Transaction, ensure

VALID_DAYS = 3
VALID_SECONDS = VALID_DAYS * 24 * 60 * 60

#: The purpose of a link.
CONFIRM, CHANGE, SIGN_UP = "confirm", "email_change", "signup"

#: The write of a link is attempted this many times while other requests change the account.
ATTEMPTS = 5

T = TypeVar("T")


def make(purpose: str, *parts: str) -> str:
    """The token of a link for `purpose`. Everybody can read its `parts`."""
    return signing.dumps(parts, salt=_salt(purpose))


def read(purpose: str, token: str, count: int) -> list[str]:
    """The `count` parts of a token. Sends no request, so the link may have been used.

    Raises:
        BadLink: it is older than three days, or this site did not make it for this purpose.
    """
    try:
        parts = signing.loads(token, salt=_salt(purpose), max_age=VALID_SECONDS)
    except signing.BadSignature as error:
        raise BadLink(purpose) from error
    if not isinstance(parts, list) or len(parts) != count:
        # The link has the parts of another version of this site.
        raise BadLink(purpose)
    return parts


def account(purpose: str, token: str) -> tuple[AbstractAccount, str]:
    """The account of a link, and the id in the link. Costs 1 request and 1 read unit.

    Raises:
        BadLink: as in `read`; or the account was deleted.
    """
    pk, link_id = read(purpose, token, 2)
    return account_of(purpose, pk), link_id


def account_of(purpose: str, pk: str) -> AbstractAccount:
    """The account of a link. Costs 1 request and 1 read unit.

    Raises:
        BadLink: the account was deleted.
    """
    try:
        return account_model().get(pk)
    except account_model().DoesNotExist:
        raise BadLink(purpose) from None


def address_of(purpose: str, token: str) -> str:
    """The address that the link confirms or gives the account; empty if it is not pending any more.

    Costs 1 request and 1 read unit.

    Raises:
        UsedLink: the link was followed: the account has the address, and it is confirmed.
        BadLink: the link is too old, or the account was deleted.
    """
    user, link_id = account(purpose, token)
    if user.is_confirmed and user.confirmation_id == link_id:
        raise UsedLink(purpose)
    waiting = {user.confirmation_id: user.email, user.pending_id: user.awaited_email}
    return waiting.get(link_id) or ""


def repeat_if_stale(follow: Callable[[], T]) -> T:
    """Call `follow`, which reads the account of a link and changes it, and return its result.

    If another request changes the account in between, `follow` is called again: `ATTEMPTS` times in
    total.

    Raises:
        StaleUser: other requests changed the account at each attempt.
    """
    for _attempt in range(ATTEMPTS - 1):
        with suppress(StaleUser):
            return follow()
    return follow()


def _salt(purpose: str) -> str:
    return f"accounts.links.{purpose}"


# Confirming the account's address ---------------------------------------------------------------


def confirmation_token(user: AbstractAccount) -> str:
    """The token of a link that confirms the address of `user`."""
    return make(CONFIRM, user.pk, user.confirmation_id)


def confirm(token: str, *, write: Transaction | None = None) -> AbstractAccount:
    """Confirm the address of the link's account. Also succeeds if it is confirmed already.

    Costs 2 requests, 1 read and 1 write unit.

    Raises:
        BadLink: the link is too old, the account has another address, or it was deleted.
        StaleUser: the account changed meanwhile; see `repeat_if_stale`.
    """
    user, confirmation_id = account(CONFIRM, token)
    if user.confirmation_id != confirmation_id:
        raise BadLink(CONFIRM)
    mark_confirmed(user, write=write)
    return user


def mark_confirmed(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Record that the address of `user` is confirmed. Also succeeds if it is recorded already.

    Costs 1 request and 1 write unit.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    ensure(
        user,
        is_so=lambda stored: stored.is_confirmed and stored.email == user.email,
        email_confirmed_at=user.email_confirmed_at if user.is_confirmed else datetime.now(UTC),
        write=write,
    )


# Changing the account's address ------------------------------------------------------------------


def request_change(user: AbstractAccount, email: str, *, write: Transaction | None = None) -> None:
    """Store the change of `user` to `email`. Its link is valid for three days.

    It replaces an earlier change that waits for its link, even one to the same address. If `email`
    is another spelling of the account's address, it is changed at once. Whether another account has
    the address is checked when the link is followed.

    Costs 1 request and 1 write unit.

    Raises:
        ValidationError: not a valid email address.
        StaleUser: the account changed or was deleted since `user` was read.
    """
    email = account_model().cleaned(email=email)["email"]
    if user.has_unique_values(email=email):
        services.change_email(user, email, write=write)
        return
    ensure(
        user,
        # If another call stored the same address, this one succeeds.
        is_so=lambda stored: stored.awaited_email == email,
        pending_email=email,
        pending_id=new_confirmation_id(),
        pending_until=int(time.time()) + VALID_SECONDS,
        write=write,
    )


def change_token(user: AbstractAccount) -> str:
    """The token of the link that carries out the pending change."""
    return make(CHANGE, user.pk, str(user.pending_id))


def confirm_change(
    token: str, *, write: Transaction | None = None
) -> tuple[AbstractAccount, AbstractAccount | None]:
    """Give the link's account its new address, which is then confirmed, and free the old one.

    Returns the changed account, and the account as it was before the change. If the link was
    followed earlier, nothing changes, and the second value is None. Costs 2 requests, 1 read and 8
    write units; only the read if nothing changes.

    Raises:
        BadLink: the link is too old; the change was canceled, replaced or dropped with a password;
            or the account has another address or was deleted.
        EmailTaken: another account has the address.
        StaleUser: the account changed meanwhile; see `repeat_if_stale`.
    """
    user, pending_id = account(CHANGE, token)
    if user.confirmation_id == pending_id:
        return user, None
    if user.pending_id != pending_id or not user.awaited_email:
        raise BadLink(CHANGE)
    before = account_model().from_raw_data(user.stored)
    user.change(
        email=user.pending_email,
        email_confirmed_at=datetime.now(UTC),
        confirmation_id=pending_id,
        **NO_PENDING_CHANGE,
        write=write,
    )
    return user, before


def cancel_change(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Drop the change that waits for its link.

    Costs 1 request and 1 write unit.

    Raises:
        StaleUser: the account changed or was deleted since `user` was read.
    """
    ensure(user, **NO_PENDING_CHANGE, write=write)
