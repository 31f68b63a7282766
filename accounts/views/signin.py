"""The page that signs in."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth import views as auth_views
from django.http import HttpResponse

from accounts import visits
from accounts.exceptions import StaleUser
from accounts.forms import SignInForm
from accounts.views.pages import FormPageMixin, show_errors


class SignInView(FormPageMixin, auth_views.LoginView):
    """Django's sign-in, by user name or e-mail address."""

    authentication_form = SignInForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in, unless the account went away since its password was checked."""
        visits.leave_as_another(self.request, form.get_user())
        try:
            response = super().form_valid(form)
        except StaleUser as error:
            logout(self.request)
            show_errors(form, error)
            return self.form_invalid(form)
        remembered = form.cleaned_data["remember_me"]
        self.request.session.set_expiry(settings.SESSION_COOKIE_AGE if remembered else None)
        return response
