"""The mails about accounts: subject and text by template, each to one bare address.

They are sent after the write that they tell of, in the request that asked for it. So a mail server
that is out of reach keeps nobody from what is stored; whoever waits for a link asks for another.
Names that somebody typed stand in no mail to an address that is not known to be theirs: such mails
would carry anybody's words to anybody.
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
from dynamo.client.deadline import uncounted

#: So that no programs answer, such as those of people who are away (RFC 3834).
_HEADERS = {"Auto-Submitted": "auto-generated"}

logger = logging.getLogger(__name__)


def send(kind: str, to: str, *, language: str | None = None, **context: Any) -> bool:
    """Send the mail `templates/accounts/mail/<kind>.txt`; return whether a mail server took it.

    The templates get `context` and `site`, the host of `ACCOUNTS_SITE_ORIGIN`. The mail is in
    `language`, by default that of the page. If it cannot be sent, the log says so, without the
    address and the text.
    """
    if not settings.ACCOUNTS_SITE_ORIGIN:
        logger.error("A mail (%s) was not sent: set ACCOUNTS_SITE_ORIGIN.", kind)
        return False
    context |= {"site": urlsplit(settings.ACCOUNTS_SITE_ORIGIN).netloc}
    with translation.override(language or translation.get_language()):
        subject = render_to_string(f"accounts/mail/{kind}_subject.txt", context)
        text = render_to_string(f"accounts/mail/{kind}.txt", context)
    # A subject is one line, whatever its template and its values hold.
    one_line = " ".join(subject.split())
    try:
        message = EmailMessage(one_line, text, to=[deliverable_email(to)], headers=_HEADERS)
        with uncounted():
            return message.send() == 1
    except (OSError, ValueError) as error:
        # An OSError is all that mail servers and the way to them do, a ValueError an address that
        # no mail can carry.
        logger.warning("A mail (%s) was not sent: %s.", kind, type(error).__name__)
        return False


def url(url_name: str, *parts: str) -> str:
    """The absolute URL of a page of this site for a mail.

    It starts with `ACCOUNTS_SITE_ORIGIN`. The host of a request can be chosen by its sender, who
    could otherwise have the links in other people's mails lead to a server of their own.
    """
    return f"{settings.ACCOUNTS_SITE_ORIGIN}{reverse(url_name, args=parts)}"


def send_confirmation(user: User) -> bool:
    """To the address of `user`, the link that confirms it. Costs and raises as `link_token`."""
    link = url("email_confirm", confirmation.link_token(user))
    return send_to(user, "confirm", link=link, days=links.VALID_DAYS)


def send_email_change(user: User) -> bool:
    """To the address that `user` asked for, the link that makes the change."""
    link = url("email_change_confirm", change.link_token(user))
    new = str(user.pending_email)
    return send_to(user, "email_change_confirm", to=new, link=link, days=links.VALID_DAYS)


def send_held_sign_up(address: str, token: str | None) -> bool:
    """The link that makes the account; without a `token`, that the address has one already."""
    if token is None:
        reset = url("password_reset")
        return send("signup_known", address, link=reset, days=links.VALID_DAYS)
    link = url("signup_confirm", token)
    return send("signup_link", address, link=link, days=links.VALID_DAYS)


def send_to(user: User, kind: str, *, to: str = "", **context: Any) -> bool:
    """To `user`, in the language of the profile; to another address than the account's, if told."""
    return send(kind, to or user.email, language=language_of(user), **context)
