"""The pages for users who forgot their password (Django's password reset) or username."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import PasswordResetForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy
from django.views.generic import FormView

from accounts.attributes import EMAIL
from accounts.clients import counted_client
from accounts.emails import mails
from accounts.forms import NewPasswordForm
from accounts.limits import attempts
from accounts.models import VALUES
from accounts.pages import notices
from accounts.pages.base import FormPageMixin, show_not_sent


class ResetForm(PasswordResetForm):
    email = VALUES["email"].form_field(EMAIL)

    #: Whether a mail server took the mail, after `save`.
    is_sent = False

    def save(self, *, request: HttpRequest, **_options: Any) -> None:  # type: ignore[override]  # Django's options, which the view passes, are fixed here
        """Send the mail. Costs as `send_reset`."""
        self.is_sent = mails.send_reset(self.cleaned_data["email"])


class PasswordResetView(FormPageMixin, auth_views.PasswordResetView):
    """Django's view. It answers the same whether or not an account has the address."""

    form_class = ResetForm

    def form_valid(self, form: Any) -> HttpResponse:
        attempts.begin_mail("reset", form.cleaned_data["email"], counted_client(self.request))
        response = super().form_valid(form)
        return response if form.is_sent else show_not_sent(self, form)


class PasswordResetConfirmView(FormPageMixin, auth_views.PasswordResetConfirmView):
    """Django's view. Another password or address, or a sign-in, makes the link void."""

    form_class = NewPasswordForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # Reads the visitor first: this deletes a session that has ended, and would otherwise delete
        # the token that the link stores in the session.
        bool(request.user.is_authenticated)
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> Any:
        """The account of the link; None if it was deactivated."""
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, and clear the count of failed sign-ins."""
        response = super().form_valid(form)
        attempts.forget(self.user)
        notices.tell(self.request, "password_changed", self.user)
        return response


class ReminderForm(forms.Form):
    email = VALUES["email"].form_field(EMAIL)


class UsernameReminderView(FormPageMixin, FormView):
    """Answers the same whether or not an account has the address."""

    template_name = "accounts/username_reminder.html"
    form_class = ReminderForm
    success_url = reverse_lazy("username_reminder_done")

    def form_valid(self, form: ReminderForm) -> HttpResponse:
        email = form.cleaned_data["email"]
        attempts.begin_mail("reminder", email, counted_client(self.request))
        if not mails.send_reminder(email):
            return show_not_sent(self, form)
        return super().form_valid(form)
