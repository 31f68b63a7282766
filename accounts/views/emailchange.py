"""The end of a change of address that waits for its link: the link itself, and the way back."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import View

from accounts import emailchange, mails
from accounts.exceptions import StaleUser
from accounts.languages import language_of
from accounts.views.confirmation import LinkView
from accounts.views.pages import signed_in


class EmailChangeConfirmView(LinkView):
    """Makes the change that the link was sent for."""

    purpose = emailchange.PURPOSE
    question = gettext_lazy("Should your account use the address to which we sent this link?")
    button = gettext_lazy("Change my email address")

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Make it, and tell the old address; who follows the link again is told the same."""
        confirmed = emailchange.confirm_change(token)
        if confirmed.former is not None:
            language = language_of(confirmed.user)
            mails.send("email_changed", confirmed.former, language=language)
        messages.success(request, _("Your e-mail address is changed and confirmed."))
        return redirect("profile" if request.user == confirmed.user else "login")


class EmailChangeCancelView(LoginRequiredMixin, View):
    """Drops the change that waits for its link."""

    http_method_names = ("post",)

    def post(self, request: HttpRequest) -> HttpResponse:
        """Drop it, if there is one; the address stays as it is."""
        try:
            emailchange.cancel_change(signed_in(request))
        except StaleUser:
            messages.error(
                request, _("The account was changed at the same moment. Please try again.")
            )
        else:
            messages.success(request, _("Your e-mail address stays as it is."))
        return redirect("profile")
