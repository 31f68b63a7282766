"""Ways back to an account: a link that sets a new password, and a reminder of the user name.

Each asks for an address and sends it one mail, whether or not an account has it: who asks learns
nothing from the page, and the owner of the address learns which one to try.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpRequest
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from accounts import links, mails
from accounts.finding import find_evenly
from accounts.forms import email_field
from accounts.models import User
from accounts.values import comparable_username, is_deliverable


class ResetForm(PasswordResetForm):
    """Django's, which finds the account by its guard."""

    email = email_field()

    #: Whether a mail server took the mail; known once it is saved.
    is_sent = False

    def save(self, *, request: HttpRequest, **_options: Any) -> None:  # type: ignore[override]  # of Django's options the view passes, this site has one each
        """Mail a link, or that no account has the address. 2 requests and 2 read units."""
        address = self.cleaned_data["email"]
        user = _whom_to_mail(address)
        # Made for nobody as well, as it takes its time.
        token = default_token_generator.make_token(user or _nobody())
        if user is None:
            sign_up = mails.link(request, "signup")
            self.is_sent = mails.send("reset_unknown", address, request, sign_up=sign_up)
            return
        uid = urlsafe_base64_encode(force_bytes(user.pk))
        link = mails.link(request, "password_reset_confirm", uid, token)
        self.is_sent = mails.send("reset", user.email, request, link=link, days=links.VALID_DAYS)


def _whom_to_mail(address: str) -> User | None:
    """The account that has the address; None where there is none, or nobody can sign in to it.

    Nor where no mail can go to the address as it was typed, or as it is stored (the sign for kelvin
    is another spelling of a k): that it fails for one of them alone would tell that there is one.
    Costs 2 requests and 2 read units.
    """
    user = find_evenly(address)
    if user is None or not (user.is_active and user.has_usable_password()):
        return None
    return user if is_deliverable(address) and is_deliverable(user.email) else None


def _nobody() -> User:
    return User(pk="", email="", password="")


def remind_of_username(address: str, request: HttpRequest) -> bool:
    """Mail the user name of the account that has the address, or that none has it.

    Returns whether a mail server took the mail. Costs 2 requests and 2 read units.
    """
    user = _whom_to_mail(address)
    if user is None:
        sign_up = mails.link(request, "signup")
        return mails.send("reminder_unknown", address, request, sign_up=sign_up)
    sign_in = mails.link(request, "login")
    name = user.username if _may_be_mailed(user) else ""
    return mails.send("reminder", user.email, request, username=name, sign_in=sign_in)


def _may_be_mailed(user: User) -> bool:
    """Whether the user name may stand in a mail to the account's address.

    Mail programs make a link of `win.prize.example`. Whoever signs up with a stranger's address
    must not have it sent there.
    """
    return user.is_confirmed or "." not in comparable_username(user.username)
