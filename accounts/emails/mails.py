"""The mails about accounts, each to one address. Subject and text come from templates.

A mail is sent after the write that it reports, in the same request. So a mail server that is down
does not prevent the write, and a user who misses a link requests another one. A mail to an address
that is not confirmed contains no text that a user typed; otherwise anybody could send their words
to anybody.

Each function returns whether a mail server took the mail.
"""

import logging
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext

from accounts.attributes import deliverable_email, is_deliverable
from accounts.emails import links
from accounts.emails.mailserver import mail_connection
from accounts.languages import language_of
from accounts.models import AbstractAccount, account_model
from dynamo.auth.usernames import comparable_username

#: Prevents automatic replies, such as out-of-office messages (RFC 3834).
_HEADERS = {"Auto-Submitted": "auto-generated"}

logger = logging.getLogger(__name__)


def send(kind: str, to: str, *, language: str | None = None, **context: object) -> bool:
    """Send the mail `templates/accounts/mail/<kind>.txt`.

    The templates get `context` and `site`, the host of `ACCOUNTS_SITE_ORIGIN`. The mail begins with
    a greeting, and subject and last line name the site by `ACCOUNTS_SITE_NAME`. The default
    `language` is that of the page. If the mail cannot be sent, the log reports it, without the
    address and the text.
    """
    if not settings.ACCOUNTS_SITE_ORIGIN:
        logger.error("A mail (%s) was not sent: set ACCOUNTS_SITE_ORIGIN.", kind)
        return False
    host = urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc
    name = settings.ACCOUNTS_SITE_NAME or host
    with translation.override(language or translation.get_language()):
        subject = render_to_string(f"accounts/mail/{kind}_subject.txt", {"site": name})
        body = render_to_string(f"accounts/mail/{kind}.txt", context | {"site": host})
        hello = gettext("Hello,")
        signature = host if name == host else f"{name}, {host}"
        text = f"{hello}\n\n{body.strip()}\n\n{signature}\n"
    # A subject must be one line.
    one_line = " ".join(subject.split())
    try:
        message = EmailMessage(one_line, text, to=[deliverable_email(to)], headers=_HEADERS)
        with mail_connection() as message.connection:
            return message.send() == 1
    except (OSError, ValueError) as error:
        # All errors of mail servers and connections are OSErrors. A ValueError is an address that
        # no mail can be sent to.
        logger.warning("A mail (%s) was not sent: %s.", kind, type(error).__name__)
        return False


def send_to(user: AbstractAccount, kind: str, *, to: str = "", **context: object) -> bool:
    """Send a mail in the language of `user`, to the account's address or to another one."""
    return send(kind, to or user.email, language=language_of(user), **context)


def url(url_name: str, *parts: str) -> str:
    """The absolute URL of a page of this site.

    It starts with `ACCOUNTS_SITE_ORIGIN`, because the sender of a request can choose its host, and
    so could make links in mails to others lead to another server.
    """
    return f"{settings.ACCOUNTS_SITE_ORIGIN}{reverse(url_name, args=parts)}"


def send_confirmation(user: AbstractAccount) -> bool:
    """Send the link that confirms the address of `user`. See its token for cost and errors."""
    link = url("email_confirm", links.confirmation_token(user))
    return send_to(user, "confirm", link=link, days=links.VALID_DAYS)


def send_email_change(user: AbstractAccount) -> bool:
    """Send the link that makes an email change to the new address."""
    link = url("email_change_confirm", links.change_token(user))
    new = str(user.pending_email)
    return send_to(user, "email_change_confirm", to=new, link=link, days=links.VALID_DAYS)


def send_sign_up_link(address: str, token: str | None) -> bool:
    """Send the link that makes the account. Without a `token`: that an account has the address."""
    if token is None:
        reset = url("password_reset")
        return send("signup_known", address, link=reset, days=links.VALID_DAYS)
    link = url("signup_confirm", token)
    return send("signup_link", address, link=link, days=links.VALID_DAYS)


# Forgotten passwords and usernames. The page answers the same for every address, and each address
# gets one mail. Only the owner of the address learns whether an account has it.


def send_reset(address: str) -> bool:
    """Send the link that sets a new password, or that no account has the address.

    Costs 2 requests and 2 read units in either case.
    """
    user = _recipient(address)
    # Also made without an account, because it takes time.
    token = default_token_generator.make_token(
        user or account_model()(pk="", email="", password="")
    )
    if user is None:
        return send("reset_unknown", address, sign_up=url("signup"))
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return send_to(
        user, "reset", link=url("password_reset_confirm", uid, token), days=links.VALID_DAYS
    )


def send_reminder(address: str) -> bool:
    """Send the username of the account with this address, or that no account has it.

    Costs 2 requests and 2 read units in either case.
    """
    user = _recipient(address)
    if user is None:
        return send("reminder_unknown", address, sign_up=url("signup"))
    # Mail programs make a link of `win.prize.example`. Somebody who signs up with another person's
    # address must not send it there.
    is_harmless = user.is_confirmed or "." not in comparable_username(user.username)
    username = user.username if is_harmless else ""
    return send_to(user, "reminder", username=username, sign_in=url("login"))


def _recipient(address: str) -> AbstractAccount | None:
    """The account with this address, if a password can sign in to it.

    None also if no mail can go to the address as typed or as stored (the Kelvin sign is another
    spelling of k): if only one of the two failed, the answer would tell that there is an account.
    """
    user = account_model().find_in_even_time(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None
