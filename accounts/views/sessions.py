"""Where an account is signed in, and the buttons that end it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from accounts import sessions, visits
from accounts.browsers import readable
from accounts.exceptions import StaleUser
from accounts.views.pages import signed_in
from accounts.views.reauthentication import FreshSignInMixin


@method_decorator(never_cache, name="dispatch")
class SessionsView(FreshSignInMixin, TemplateView):
    """The account's sessions, the one that was seen last first."""

    template_name = "accounts/account_sessions.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Each with its browser in a few words."""
        user = signed_in(self.request)
        shown = [
            {"session": each, "browser": readable(each.browser), "here": each.id == user.session_id}
            for each in sessions.alive(user)
        ]
        return super().get_context_data(shown=shown, **kwargs)


class _EndingView(FreshSignInMixin, View):
    http_method_names = ("post",)
    return_to = "account_sessions"


class SessionEndView(_EndingView):
    """Ends one session of the account; for one's own that is signing out."""

    def post(self, request: HttpRequest) -> HttpResponse:
        """End it; one that has ended is a success, and another account's is not found here."""
        user = signed_in(request)
        ending = request.POST.get("session", "")
        if ending == user.session_id:
            logout(request)
            return redirect("home")
        try:
            sessions.end(user, ending)
        except StaleUser:
            # This session was ended itself: the page asks who is there.
            return redirect(self.return_to)
        messages.success(request, _("The session is ended."))
        return redirect(self.return_to)


class SessionsEndOthersView(_EndingView):
    """Ends every session of the account but this one."""

    def post(self, request: HttpRequest) -> HttpResponse:
        """End them."""
        user = signed_in(request)
        try:
            sessions.end_others(user)
        except StaleUser:
            # As above; the others are as they were.
            return redirect(self.return_to)
        visits.keep(request, user)
        messages.success(request, _("You are signed in nowhere else."))
        return redirect(self.return_to)
