"""Ways back to an account: whose a typed address is, and what may be mailed there.

Whoever asks gets one answer for every address, and each address gets one mail; only its owner
learns from it whether there is an account.
"""

from __future__ import annotations

from django.contrib.auth.tokens import default_token_generator
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts.emails.links import VALID_DAYS
from accounts.emails.mails import send, send_to, url
from accounts.models import User
from accounts.services import find_evenly
from accounts.values import comparable_username, is_deliverable


def whom_to_mail(address: str) -> User | None:
    """The account that has the address; None where there is none, or nobody can sign in to it.

    Nor where no mail can go to the address as it was typed, or as it is stored (the sign for kelvin
    is another spelling of a k): that it fails for one of them alone would tell that there is one.
    Costs 2 requests and 2 read units.
    """
    user = find_evenly(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None


def name_to_mail(user: User) -> str:
    """The username as it may stand in a mail to the account's address; empty where it must not.

    Mail programs make a link of `win.prize.example`. Whoever signs up with a stranger's address
    must not have it sent there.
    """
    is_harmless = user.is_confirmed or "." not in comparable_username(user.username)
    return user.username if is_harmless else ""


def send_reset(address: str) -> bool:
    """The link that sets a new password, or that no account has the address.

    Costs 2 requests and 2 read units, whether or not one has.
    """
    user = whom_to_mail(address)
    # Made for nobody as well, as it takes its time.
    token = default_token_generator.make_token(user or User(pk="", email="", password=""))
    if user is None:
        sign_up = url("signup")
        return send("reset_unknown", address, sign_up=sign_up)
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    link = url("password_reset_confirm", uid, token)
    return send_to(user, "reset", link=link, days=VALID_DAYS)


def send_reminder(address: str) -> bool:
    """The username of the account that has the address, or that none has it.

    Costs 2 requests and 2 read units, whether or not one has.
    """
    user = whom_to_mail(address)
    if user is None:
        sign_up = url("signup")
        return send("reminder_unknown", address, sign_up=sign_up)
    sign_in = url("login")
    name = name_to_mail(user)
    return send_to(user, "reminder", username=name, sign_in=sign_in)
