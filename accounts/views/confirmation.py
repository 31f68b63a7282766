"""What the links in mails lead to, and the button that sends another one."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.decorators import method_decorator
from django.utils.log import log_response
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache

from accounts import attempts, confirming, heldsignups, links
from accounts.clientaddress import counted_client
from accounts.exceptions import (
    AccountError,
    BadLink,
    RequestIdUsed,
    StaleUser,
    ValueTaken,
)
from accounts.forms import AccountForm
from accounts.models import User
from accounts.views import letters
from accounts.views.pages import signed_in
from dynamo.exceptions import Refused

logger = logging.getLogger(__name__)


@method_decorator(never_cache, name="dispatch")
class LinkView(View, ABC):
    """A link from a mail: GET shows a page with a button, and POST calls `follow`.

    Mail scanners open links before people do, and mail can be sent to an address that somebody
    else typed. So opening a link must not create or confirm anything.
    """

    http_method_names = ("get", "head", "post")

    #: What the link was made for (`accounts.links`).
    purpose: str
    #: What the page asks, and what its button says.
    question: Any
    button: Any
    #: Where to go on from a link that is refused: the name of an URL, and what the button says.
    way_out: tuple[str, Any] = ("home", gettext_lazy("Go to the start page"))

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        """Show the button; a link that is too old or damaged is refused at once."""
        try:
            links.check(self.purpose, token)
        except BadLink as error:
            return self._refused(request, error)
        context = {"question": self.question, "button": self.button}
        return TemplateResponse(request, "accounts/link.html", context)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        """Follow the link, or say why that came to nothing."""
        try:
            return self.follow(request, token)
        except (AccountError, Refused, ValidationError) as error:
            return self._refused(request, error)

    def _refused(
        self, request: HttpRequest, error: AccountError | Refused | ValidationError
    ) -> HttpResponse:
        url_name, label = self.way_out
        context = {"reason": _reason(error), "url_name": url_name, "label": label}
        status = 410 if isinstance(error, BadLink) else 409
        response = TemplateResponse(request, "accounts/link_refused.html", context, status=status)
        # Marked as logged, or Django logs a line of its own, with the path and its token.
        log_response(
            "A link came to nothing (%s).",
            type(error).__name__,
            response=response,
            request=request,
            logger=logger,
            level="info",
        )
        return response

    @abstractmethod
    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Do what the link is for, once."""


def _reason(error: AccountError | Refused | ValidationError) -> str:
    if isinstance(error, ValidationError):
        # The rules of the site changed after the form was sent.
        return " ".join(error.messages)
    errors = error.exceptions if isinstance(error, Refused) else [error]
    if taken := [each.attribute for each in errors if isinstance(each, ValueTaken)]:
        fields = AccountForm.base_fields
        names = ", ".join(str(fields[name].label) for name in fields if name in taken)
        return _("Another account has taken this in the meantime: %(names)s.") % {"names": names}
    if any(isinstance(each, StaleUser) for each in errors):
        return _("The account was changed at the same moment. Please try again.")
    if any(isinstance(each, RequestIdUsed) for each in errors):
        return _("Another link of the same form has made an account already.")
    return _("This link was used already, is too old, or is not whole.")


class EmailConfirmView(LinkView):
    """Confirms the address that the link was sent to."""

    purpose = confirming.PURPOSE
    question = gettext_lazy("Is the address to which we sent this link yours?")
    button = gettext_lazy("Confirm my email address")
    way_out = ("profile", gettext_lazy("Open your profile"))

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Note it; who follows the link again is told the same."""
        user = confirming.confirm(token)
        messages.success(request, _("Your e-mail address is confirmed."))
        return redirect("profile" if request.user == user else "login")


class SignUpConfirmView(LinkView):
    """Makes the account of a sign-up that was held until now."""

    purpose = heldsignups.PURPOSE
    question = gettext_lazy("Did you sign up with the address to which we sent this link?")
    button = gettext_lazy("Create my account")
    way_out = ("signup", gettext_lazy("Sign up again"))

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Make it. Nobody is signed in: the link knows the address, not the password."""
        user = heldsignups.release(token)
        if request.user == user:
            return redirect("profile")
        messages.success(request, _("Your account is ready: sign in with your password."))
        return redirect("login")


class ConfirmationSendView(LoginRequiredMixin, View):
    """Sends the link that confirms one's address once more."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Send it, unless the address is confirmed."""
        user = signed_in(request)
        if user.is_confirmed:
            messages.info(request, _("Your e-mail address is confirmed already."))
        elif _is_sent(user, request):
            messages.success(request, _("The link is on its way. Look into your mailbox."))
        else:
            messages.error(request, _("The mail could not be sent. Please try again later."))
        return redirect("profile")


def _is_sent(user: User, request: HttpRequest) -> bool:
    attempts.begin_mail("confirm", user.email, counted_client(request))
    try:
        return letters.send_confirmation(user)
    except StaleUser:
        return False
