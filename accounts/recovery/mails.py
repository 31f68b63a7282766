"""Mails for users who forgot their password or username.

The page answers the same for every address, and each address gets one mail. Only the owner of the
address learns whether an account has it.
"""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.emails.links import VALID_DAYS
from accounts.emails.mails import send, send_to, url
from accounts.models import User
from accounts.values import is_deliverable
from dynamo.auth.usernames import comparable_username


def send_reset(address: str) -> bool:
    """Send the link that sets a new password, or that no account has the address.

    Costs 2 requests and 2 read units in either case.
    """
    user = _recipient(address)
    # Also made without an account, because it takes time.
    token = default_token_generator.make_token(user or User(pk="", email="", password=""))
    if user is None:
        return send("reset_unknown", address, sign_up=url("signup"))
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return send_to(user, "reset", link=url("password_reset_confirm", uid, token), days=VALID_DAYS)


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


def _recipient(address: str) -> User | None:
    """The account with this address, if a password can sign in to it.

    None also if no mail can go to the address as typed or as stored (the Kelvin sign is another
    spelling of k): if only one of the two failed, the answer would tell that there is an account.
    """
    user = User.find_in_even_time(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None
