"""The mails about accounts, each to one address. Subject and text come from templates.

A mail is a task (`outbox`): a page enqueues it, in the transaction of the write that it reports,
and waits for no mail server. A task does not store the link, which is made when the mail is sent. A
mail to an address that is not confirmed contains no text that a user typed; otherwise anybody could
send their words to anybody.
"""

import logging
from email.message import EmailMessage
from typing import Any, cast
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.mail.backends.base import BaseEmailBackend
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext

from accounts.attributes import deliverable_email, is_deliverable
from accounts.emails import links
from accounts.languages import language_of
from accounts.models import AbstractAccount, account_model
from dynamo import Transaction
from dynamo.auth.usernames import comparable_username
from dynamo.runtime.deadline import uncounted, uncounted_seconds
from outbox import task

#: Prevents automatic replies, such as out-of-office messages (RFC 3834).
_HEADERS = {"Auto-Submitted": "auto-generated"}

#: The time-out of each step with the mail server if EMAIL_TIMEOUT, or the option `timeout` of
#: MAILERS, is not set. Django's default is to wait forever.
TIMEOUT_SECONDS = 10

#: The longest line of a mail, in bytes (RFC 5322).
_LINE_BYTES = 998

logger = logging.getLogger(__name__)


class _Mail(mail.EmailMessage):
    """A mail whose lines are sent as they are, so that a console shows a whole link.

    Without this, Django 6.0 and later break and encode lines of more than 78 characters.
    """

    def message(self, **options: Any) -> Any:
        message = super().message(**options)
        text = str(self.body)
        longest = max(map(len, text.encode().splitlines()), default=0)
        if isinstance(message, EmailMessage) and longest <= _LINE_BYTES:
            message.set_content(text, cte="7bit" if text.isascii() else "8bit")
        return message


def deliver(kind: str, to: str, language: str | None, **context: object) -> None:
    """Send the mail `templates/accounts/mail/<kind>.txt` now.

    The templates get `context`, `site` (the host of `ACCOUNTS_SITE_ORIGIN`) and `days`, for which a
    link is valid. The mail begins with a greeting, and subject and last line name the site by
    `ACCOUNTS_SITE_NAME`. An address to which no mail can be sent gets none; the log says so without
    the address.

    Raises:
        ImproperlyConfigured: `ACCOUNTS_SITE_ORIGIN` is not set.
        OSError: the mail server did not take the mail.
    """
    if not settings.ACCOUNTS_SITE_ORIGIN:
        raise ImproperlyConfigured("Set ACCOUNTS_SITE_ORIGIN: mails name the site.")
    host = urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc
    name = settings.ACCOUNTS_SITE_NAME or host
    with translation.override(language):
        subject = render_to_string(f"accounts/mail/{kind}_subject.txt", {"site": name})
        context |= {"site": host, "days": links.VALID_DAYS}
        body = render_to_string(f"accounts/mail/{kind}.txt", context)
        hello = gettext("Hello,")
        signature = host if name == host else f"{name}, {host}"
        text = f"{hello}\n\n{body.strip()}\n\n{signature}\n"
    # A subject must be one line.
    one_line = " ".join(subject.split())
    try:
        message = _Mail(one_line, text, to=[deliverable_email(to)], headers=_HEADERS)
        # Without a worker, the page itself sends the mail. Its deadline does not include this time.
        with uncounted():
            mail_connection().send_messages([message])
    except ValueError:
        logger.warning("A mail (%s) was not sent: its address takes no mails.", kind)


def mail_connection() -> BaseEmailBackend:
    """A connection to the default mail server, which is not open yet. See `TIMEOUT_SECONDS`."""
    # Since Django 6.1, the setting MAILERS replaces those that begin with EMAIL_.
    mailers = getattr(mail, "mailers", None)
    connection: Any = mail.get_connection() if mailers is None else mailers.default
    connection.timeout = uncounted_seconds(getattr(connection, "timeout", None) or TIMEOUT_SECONDS)
    return cast("BaseEmailBackend", connection)


@task
def deliver_later(kind: str, to: str, language: str | None, context: dict[str, object]) -> None:
    """The task of `send`."""
    deliver(kind, to, language, **context)


def send(
    user: AbstractAccount,
    kind: str,
    *,
    to: str = "",
    write: Transaction | None = None,
    **context: object,
) -> None:
    """Enqueue a mail whose `context` is JSON, to the account's address or to another one.

    It is in the language of `user`, or else in that of the page. This and every function below cost
    1 request and 1 write unit, 2 in a transaction.
    """
    deliver_later.using(write=write).enqueue(kind, to or user.email, _language(user), context)


def url(url_name: str, *parts: str) -> str:
    """The absolute URL of a page of this site.

    It starts with `ACCOUNTS_SITE_ORIGIN`, not with the host of the request. The sender of a request
    chooses its host, and could insert links to another server into mails.
    """
    return f"{settings.ACCOUNTS_SITE_ORIGIN}{reverse(url_name, args=parts)}"


def send_confirmation(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Send the link that confirms the address of `user`, in their language or that of the page."""
    confirm.using(write=write).enqueue(user.pk, _language(user))


@task
def confirm(pk: str, language: str | None) -> None:
    """The task of `send_confirmation`. Costs 1 read unit."""
    user = account_model().get_or_none(pk)
    if user is not None and not user.is_confirmed:
        link = url("email_confirm", links.confirmation_token(user))
        deliver("confirm", user.email, language, link=link)


def send_email_change(user: AbstractAccount, *, write: Transaction | None = None) -> None:
    """Send the link that carries out the email change of `user`, to the new address."""
    confirm_change.using(write=write).enqueue(user.pk, _language(user))


@task
def confirm_change(pk: str, language: str | None) -> None:
    """The task of `send_email_change`. Costs 1 read unit."""
    user = account_model().get_or_none(pk)
    if user is not None and user.awaited_email:
        link = url("email_change_confirm", links.change_token(user))
        deliver("email_change_confirm", user.awaited_email, language, link=link)


def send_sign_up_link(address: str, key: str | None) -> None:
    """Send the link that completes the sign-up stored under `key`.

    If `key` is None, an account has the address, and the mail says so.
    """
    sign_up.enqueue(address, key, translation.get_language())


@task
def sign_up(address: str, key: str | None, language: str | None) -> None:
    """The task of `send_sign_up_link`."""
    if key is None:
        kind, link = "signup_known", url("password_reset")
    else:
        kind, link = "signup_link", url("signup_confirm", links.make(links.SIGN_UP, key))
    deliver(kind, address, language, link=link)


# Forgotten passwords and usernames. The page enqueues one mail to any address. Only the owner of
# the address learns whether an account has it.


def send_reset(address: str, *, write: Transaction | None = None) -> None:
    """Mail the link that sets a new password, or that no account has the address."""
    reset.using(write=write).enqueue(address, translation.get_language())


@task
def reset(address: str, language: str | None) -> None:
    """The task of `send_reset`. Costs 2 requests and 2 read units in either case."""
    user = _recipient(address)
    # The token is also made if there is no account, so that both cases take the same time.
    token = default_token_generator.make_token(
        user or account_model()(pk="", email="", password="")
    )
    if user is None:
        deliver("reset_unknown", address, language, sign_up=url("signup"))
        return
    link = url("password_reset_confirm", urlsafe_base64_encode(force_bytes(user.pk)), token)
    language = language_of(user) or language
    deliver("reset", user.email, language, link=link)


def send_reminder(address: str) -> None:
    """Mail the username of the account with this address, or that no account has it."""
    remind.enqueue(address, translation.get_language())


@task
def remind(address: str, language: str | None) -> None:
    """The task of `send_reminder`. Costs 2 requests and 2 read units in either case."""
    user = _recipient(address)
    if user is None:
        deliver("reminder_unknown", address, language, sign_up=url("signup"))
        return
    # Mail programs make a link of `win.prize.example`. A person who signs up with the address of
    # another person must not be able to send such text there.
    is_harmless = user.is_confirmed or "." not in comparable_username(user.username)
    username = user.username if is_harmless else ""
    language = language_of(user) or language
    deliver("reminder", user.email, language, username=username, sign_in=url("login"))


def _language(user: AbstractAccount) -> str | None:
    return language_of(user) or translation.get_language()


def _recipient(address: str) -> AbstractAccount | None:
    """The account with this address, if a password can sign in to it.

    Also None if no mail can be sent to the address as typed or as stored. (The Kelvin sign is
    another spelling of k.) If only one of the two failed, the answer would reveal that an account
    exists.
    """
    user = account_model().find_in_even_time(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None
