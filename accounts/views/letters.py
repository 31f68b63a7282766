"""The mails that pages send, each with its link or what to do next.

Each function returns whether a mail server took the mail (`accounts.mails`).
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.tokens import default_token_generator
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import confirming, emailchange, links, mails, recovery
from accounts.languages import language_of
from accounts.models import User


def send_confirmation(user: User) -> bool:
    """To the address of `user`, the link that confirms it. Costs and raises as `link_token`."""
    link = mails.link("email_confirm", confirming.link_token(user))
    return _send(user, "confirm", link=link, days=links.VALID_DAYS)


def send_email_change(user: User) -> bool:
    """To the address that `user` asked for, the link that makes the change."""
    link = mails.link("email_change_confirm", emailchange.link_token(user))
    new = str(user.pending_email)
    return _send(user, "email_change_confirm", to=new, link=link, days=links.VALID_DAYS)


def send_held_sign_up(address: str, token: str | None) -> bool:
    """The link that makes the account; without a `token`, that the address has one already."""
    if token is None:
        reset = mails.link("password_reset")
        return mails.send("signup_known", address, link=reset, days=links.VALID_DAYS)
    link = mails.link("signup_confirm", token)
    return mails.send("signup_link", address, link=link, days=links.VALID_DAYS)


def send_reset(address: str) -> bool:
    """The link that sets a new password, or that no account has the address.

    Costs 2 requests and 2 read units, whether or not one has.
    """
    user = recovery.whom_to_mail(address)
    # Made for nobody as well, as it takes its time.
    token = default_token_generator.make_token(user or User(pk="", email="", password=""))
    if user is None:
        sign_up = mails.link("signup")
        return mails.send("reset_unknown", address, sign_up=sign_up)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    link = mails.link("password_reset_confirm", uid, token)
    return _send(user, "reset", link=link, days=links.VALID_DAYS)


def send_reminder(address: str) -> bool:
    """The user name of the account that has the address, or that none has it.

    Costs 2 requests and 2 read units, whether or not one has.
    """
    user = recovery.whom_to_mail(address)
    if user is None:
        sign_up = mails.link("signup")
        return mails.send("reminder_unknown", address, sign_up=sign_up)
    sign_in = mails.link("login")
    name = recovery.name_to_mail(user)
    return _send(user, "reminder", username=name, sign_in=sign_in)


def _send(user: User, kind: str, *, to: str = "", **context: Any) -> bool:
    """To `user`, in the language of the profile; to another address than the account's, if told."""
    return mails.send(kind, to or user.email, language=language_of(user), **context)
