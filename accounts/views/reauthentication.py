"""Pages that ask for the password again, unless it was checked a moment ago."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import RedirectURLMixin, redirect_to_login
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from accounts import visits
from accounts.forms import PasswordConfirmedForm
from accounts.views.pages import FormPageMixin, KeepSessionMixin, signed_in


class FreshSignInMixin(LoginRequiredMixin):
    """A page for who is signed in and has shown the password within the last five minutes."""

    #: Where to go afterwards, by its URL name; empty: to this page, which must then be for GET.
    return_to = ""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Show the page, or ask for the password first."""
        if request.user.is_authenticated and not visits.is_fresh(request):
            return redirect_to_login(self._next(request), reverse("reauthenticate"))
        return super().dispatch(request, *args, **kwargs)

    def handle_no_permission(self) -> Any:
        """To the sign-in page, and from there to where this one would have led."""
        request: HttpRequest = self.request  # type: ignore[attr-defined]  # a View stands behind
        return redirect_to_login(self._next(request))

    def _next(self, request: HttpRequest) -> str:
        return reverse(self.return_to) if self.return_to else request.get_full_path()


@method_decorator(never_cache, name="dispatch")
class ReauthenticateView(
    LoginRequiredMixin, KeepSessionMixin, FormPageMixin, RedirectURLMixin, FormView
):
    """Asks for the password, and goes on to `next`, which never leaves the site."""

    template_name = "accounts/reauthenticate.html"
    form_class = PasswordConfirmedForm
    next_page = "profile"

    def get_form_kwargs(self) -> dict[str, Any]:
        """The account whose password is asked for."""
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Where to go on, or to go back."""
        return super().get_context_data(next=self.get_redirect_url(), **kwargs)

    def form_valid(self, form: PasswordConfirmedForm) -> Any:
        """Note in the session that the password was checked."""
        visits.note_password_checked(self.request)
        return super().form_valid(form)
