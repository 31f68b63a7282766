"""The mails about accounts, each to one address. Subject and text come from templates.

A mail is sent after the write that it reports, in the same request. So a mail server that is down
does not prevent the write, and a user who misses a link requests another one. A mail to an address
that is not confirmed contains no text that a user typed; otherwise anybody could send their words
to anybody.

Each function returns whether a mail server took the mail.
"""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation

from accounts.emails import change, confirmation, links
from accounts.languages import language_of
from accounts.models import User
from accounts.values import deliverable_email
from web.mailserver import mail_connection

#: Prevents automatic replies, such as out-of-office messages (RFC 3834).
_HEADERS = {"Auto-Submitted": "auto-generated"}

logger = logging.getLogger(__name__)


def send(kind: str, to: str, *, language: str | None = None, **context: Any) -> bool:
    """Send the mail `templates/accounts/mail/<kind>.txt`.

    The templates get `context` and `site`, the host of `ACCOUNTS_SITE_ORIGIN`. The default
    `language` is that of the page. If the mail cannot be sent, the log reports it, without the
    address and the text.
    """
    if not settings.ACCOUNTS_SITE_ORIGIN:
        logger.error("A mail (%s) was not sent: set ACCOUNTS_SITE_ORIGIN.", kind)
        return False
    context |= {"site": urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc}
    with translation.override(language or translation.get_language()):
        subject = render_to_string(f"accounts/mail/{kind}_subject.txt", context)
        text = render_to_string(f"accounts/mail/{kind}.txt", context)
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


def send_to(user: User, kind: str, *, to: str = "", **context: Any) -> bool:
    """Send a mail in the language of `user`, to the account's address or to another one."""
    return send(kind, to or user.email, language=language_of(user), **context)


def url(url_name: str, *parts: str) -> str:
    """The absolute URL of a page of this site.

    It starts with `ACCOUNTS_SITE_ORIGIN`, because the sender of a request can choose its host, and
    so could make links in mails to others lead to another server.
    """
    return f"{settings.ACCOUNTS_SITE_ORIGIN}{reverse(url_name, args=parts)}"


def send_confirmation(user: User) -> bool:
    """Send the link that confirms the address of `user`. Costs and raises as its `link_token`."""
    link = url("email_confirm", confirmation.link_token(user))
    return send_to(user, "confirm", link=link, days=links.VALID_DAYS)


def send_email_change(user: User) -> bool:
    """Send the link that makes an email change to the new address."""
    link = url("email_change_confirm", change.link_token(user))
    new = str(user.pending_email)
    return send_to(user, "email_change_confirm", to=new, link=link, days=links.VALID_DAYS)
