"""What is limited: passwords that are tried, sign-ups, and mails that anybody can ask for.

A slot is taken before the password is checked or anything is written, so of attempts made at once
no more than the limit get through. The client's slot comes first: who has used up his own must not
use up those of others.
"""

from __future__ import annotations

from dataclasses import dataclass

from accounts.limits.windows import Slot, limit
from accounts.models import User
from accounts.values import comparable_email, comparable_username
from dynamo.exceptions import Busy


@dataclass(frozen=True)
class SignIn:
    """An attempt to sign in that may be made now."""

    account: str
    client: str | None
    of_account: Slot | None
    of_client: Slot | None

    def succeeded(self) -> None:
        """The password was right. Costs 3 requests, 1 more if others succeeded from the client.

        The account's failures are forgotten. The client gets only this slot back: the owner of one
        account could else go on guessing at others for ever. A client with too many successes keeps
        losing slots, so in the end its passwords are refused before they are hashed.

        Raises:
            TooManyAttempts: too many sign-ins succeeded from the client's address.
        """
        limit("sign_in").clear(self.account)
        if self.client:
            limit("sign_in_success_client").take(self.client)
        limit("sign_in_client").give_back(self.of_client)

    def was_not_made(self) -> None:
        """The password was not checked. Costs 2 requests."""
        limit("sign_in").give_back(self.of_account)
        limit("sign_in_client").give_back(self.of_client)


def begin_sign_in(who: str, user: User | None, client: str | None) -> SignIn:
    """Let somebody try a password for `who`, who is `user`, or nobody (counted all the same).

    An account has one count, whatever it is called by. `client` is whom limits count beside it
    (`accounts.limits.client_address.counted_client`); None counts nobody.
    Costs 2 requests, and 1 more for each of the two windows that has begun already.

    Raises:
        TooManyAttempts: too many failed for the account, or from the client's address.
    """
    of_client = limit("sign_in_client").take(client) if client else None
    account = _account(user) if user else f"name.{_comparable(who)}"
    return SignIn(account, client, limit("sign_in").take(account), of_client)


def is_password(user: User, password: str) -> bool:
    """Whether this is the password of `user`, who is signed in.

    Failures count for the session that `user` was read for. They are independent of failed
    sign-ins, so a stranger cannot stop the owner; and a stolen session cannot stop another one.
    Costs 2 requests, 1 more where others failed before, and those of `User.check_password`.

    Raises:
        TooManyAttempts: too many failed in the session; even the right one is refused then.
        Busy: the password was not checked.
    """
    again, who = limit("reauthentication"), f"{_account(user)}.{user.session_id or ''}"
    slot = again.take(who)
    try:
        is_right = user.check_password(password)
    except Busy:
        again.give_back(slot)
        raise
    if is_right:
        again.clear(who)
    return is_right


def forget(user: User) -> None:
    """Forget the failed sign-ins of `user`, who has shown to own the account. Costs 1 request."""
    limit("sign_in").clear(_account(user))


@dataclass(frozen=True)
class SignUp:
    """A sign-up that may be made now."""

    mail: Slot | None

    def was_refused(self) -> None:
        """No mail was sent, as where the username is taken. Costs 1 request."""
        limit("mail").give_back(self.mail)


def begin_sign_up(email: str, client: str) -> SignUp:
    """Let somebody sign up with `email`, which gets a mail.

    Costs 2 requests, at most 4; 1 more for each limit whose reply was lost.

    Raises:
        TooManyAttempts: too many did from the client's address, or with that one.
    """
    limit("sign_up_client").take(client)
    return SignUp(_take_mail("sign_up", email))


def begin_mail(kind: str, email: str, client: str) -> None:
    """Let somebody have a mail sent to `email`.

    Costs 2 requests, at most 4; 1 more for each limit whose reply was lost.

    Each `kind` has a count of its own, so that nobody's reminders keep a reset from its owner.

    Raises:
        TooManyAttempts: too many were asked for from the client's address, or for that one.
    """
    limit("mail_client").take(client)
    _take_mail(kind, email)


def _take_mail(kind: str, email: str) -> Slot | None:
    return limit("mail").take(f"{kind}.{_comparable(email)}")


def _account(user: User) -> str:
    return f"account.{user.pk}"


def _comparable(who: str) -> str:
    """The one form of all spellings of a username or an address."""
    name = who.strip()
    if "@" not in name:
        return comparable_username(name)
    try:
        return comparable_email(name)
    except ValueError:
        # The domain is none, so that nobody has the address.
        return name.casefold()
