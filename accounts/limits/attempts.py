"""The limits of attempts at passwords, of sign-ups, and of mails that anybody can request or send.

A slot is taken before a password is checked or anything is written. Therefore, no more simultaneous
attempts succeed than the limit allows. A client without slots must not use up those of an account
or of an address. Therefore, the client's slot is taken first, or the other one is given back.

Limits of wrong passwords do not refuse right ones that are sent at the same time, because an
attempt waits for earlier ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.views.decorators.debug import sensitive_variables

from accounts.attributes import mailbox_of
from accounts.exceptions import TooManyAttempts
from accounts.limits.windows import Slot, limit
from accounts.models import AbstractAccount
from dynamo import Busy, Unavailable
from dynamo.auth.addresses import comparable_email
from dynamo.auth.passwords import queued
from dynamo.auth.usernames import comparable_username
from dynamo.runtime.threads import together


@dataclass(frozen=True)
class Attempt:
    """An attempt that is allowed, and the slots that it took."""

    slots: list[Slot]

    def give_back(self) -> None:
        """Give the slots back: no password was checked, no mail enqueued, or no account made.

        Costs 1 request for each slot, sent together.
        """
        together(*(slot.give_back for slot in self.slots))

    @sensitive_variables()
    def is_right(self, check: Callable[[str], object], password: str) -> bool:
        """Whether `check` accepts the password. If not, note the failure; see `Slot`.

        Raises:
            Busy: it was not checked, and does not count.
        """
        try:
            is_right = bool(check(password))
        except Busy:
            self.give_back()
            raise
        if not is_right:
            together(*(slot.note_failure for slot in self.slots))
        return is_right


@dataclass(frozen=True)
class SignIn(Attempt):
    """An attempt to sign in that is allowed. It took slots of the account and of the client."""

    account: str
    client: str | None

    def succeeded(self) -> None:
        """Clear the failures of the account, and free the client's slot.

        The client's failures are not cleared; otherwise the owner of one account could try
        passwords of others forever. After too many successes a client loses its slots too, so that
        its passwords are refused before they are hashed.

        Costs 3 requests, sent together, and 1 more after other successes from the client.

        Raises:
            TooManyAttempts: too many sign-ins succeeded from the client's address.
        """
        clear = partial(limit("sign_in").clear, self.account)
        if self.client is None:
            clear()
            return
        _of_account, of_client = self.slots
        success = partial(limit("sign_in_success_client").take, self.client)
        try:
            together(clear, of_client.give_back, success)
        except TooManyAttempts:
            limit("sign_in_client").take(self.client).note_failure()
            raise


def begin_client(client: str | None) -> Slot:
    """Count an attempt to sign in from `client`, for `begin_sign_in`.

    `client` comes from `accounts.limits.clients.counted_client`; None is not counted. Costs
    1 request, 2 if the window has begun already.

    Raises:
        TooManyAttempts: too many failed from the client's address.
    """
    return limit("sign_in_client").take(client, waits=True) if client else Slot()


def begin_sign_in(who: str, pk: str | None, client: str | None, of_client: Slot) -> SignIn:
    """Count an attempt to sign in as `who`, which names the account `pk`, or no account.

    An account has one count for its username and its email address. The client's slot must be taken
    before (`begin_client`). Costs 1 request, 2 if the window has begun already.

    Raises:
        TooManyAttempts: too many failed for the account.
    """
    account = _account(pk) if pk else f"name.{_comparable(who)}"
    try:
        of_account = limit("sign_in").take(account, waits=True)
    except TooManyAttempts:
        of_client.note_failure()
        raise
    return SignIn([of_account, of_client], account, client)


@sensitive_variables()
def is_password(user: AbstractAccount, password: str) -> bool:
    """Whether this is the password of the visitor `user`, who is signed in.

    Failures count for the visitor's session, apart from failed sign-ins. Neither a stranger nor a
    person with a stolen session can therefore lock the owner out. Costs 2 requests, 1 more after
    other failures (see `Limit.take` and `Slot.note_failure`), and those of `User.check_password`.

    Raises:
        TooManyAttempts: too many failed in the session; now even the correct password is refused.
        Busy: the password was not checked.
    """
    wrong = limit("reauthentication")
    session = f"{_account(user.pk)}.{user.session_id or ''}"
    with queued():
        attempt = Attempt([wrong.take(session, waits=True)])
        is_right = attempt.is_right(user.check_password, password)
    if is_right:
        wrong.clear(session)
    return is_right


def clear_failures(user: AbstractAccount) -> None:
    """Clear the failed sign-ins of `user`, who has proved to be the owner. Costs 1 request."""
    limit("sign_in").clear(_account(user.pk))


def begin_sign_up(email: str, client: str) -> Attempt:
    """Count a sign-up and its mail to `email`.

    Both slots are taken at the same time, which saves a round trip. If the client has no slots,
    that of the mail is given back at once.

    Costs 2 to 4 requests, of which 2 are sent together, and 1 more for each limit whose reply was
    lost.

    Raises:
        TooManyAttempts: too many from the client's address, or with this email address.
        Unavailable: see `accounts.limits.windows.Limit.take`.
    """

    def of_client() -> Exception | None:
        try:
            limit("sign_up_client").take(client)
        except (TooManyAttempts, Unavailable) as error:
            return error
        return None

    mail, refusal = together(partial(_take_mail, "sign_up", email), of_client)
    attempt = Attempt([mail])
    if refusal is not None:
        attempt.give_back()
        raise refusal
    return attempt


def begin_mail(kind: str, email: str, client: str) -> None:
    """Count a mail that was requested for `email`.

    Each `kind` has a separate count, so that reminders cannot block a password reset. Costs 2
    requests, at most 4; 1 more for each limit whose reply was lost.

    Raises:
        TooManyAttempts: too many from the client's address, or for this email address.
    """
    limit("mail_client").take(client)
    _take_mail(kind, email)


def begin_mail_to_others(user: AbstractAccount, to: str, client: str | None) -> Attempt:
    """Count a mail that `user` sends to the address `to`, which may belong to anybody.

    `client` comes from `accounts.limits.clients.counted_client`; None is not counted. Costs
    5 requests, at most 10; 1 more for each limit whose reply was lost.

    Raises:
        TooManyAttempts: too many from the client's address, of this account, or to this address. A
            refused mail counts for the limits before the one that refused it.
    """
    account = _account(user.pk)
    recipient = _mailbox(to)
    subjects = {
        "mail_client": client,
        "mail_account": account,
        "mail_account_day": account,
        "mail_account_recipient": f"{account}.{recipient}",
        "mail_recipient": recipient,
    }
    return Attempt([limit(name).take(subject) for name, subject in subjects.items() if subject])


def _take_mail(kind: str, email: str) -> Slot:
    return limit("mail").take(f"{kind}.{_mailbox(email)}")


def _account(pk: str) -> str:
    return f"account.{pk}"


def _comparable(who: str) -> str:
    """The same text for all spellings of a username or an email address."""
    name = who.strip()
    return _in_one_spelling(comparable_email, name) if "@" in name else comparable_username(name)


def _mailbox(email: str) -> str:
    """The same text for all addresses whose mails one mailbox gets."""
    return _in_one_spelling(mailbox_of, email.strip())


def _in_one_spelling(normalize: Callable[[str], str], address: str) -> str:
    try:
        return normalize(address)
    except ValueError:
        # The domain is not valid, so no account has the address.
        return address.casefold()
