"""The pages that lead back to an account: Django's password reset, and a reminder."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import PasswordResetForm
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy
from django.views.generic import FormView

from accounts.exceptions import StaleUser
from accounts.forms import NewPasswordForm, email_field
from accounts.limits import attempts
from accounts.limits.client_address import counted_client
from accounts.pages import FormPageMixin, show_errors, show_not_sent
from accounts.recovery import mails


class ResetForm(PasswordResetForm):
    """Django's, which mails by `accounts.emails.mails`."""

    email = email_field()

    #: Whether a mail server took the mail; known once it is saved.
    is_sent = False

    def save(self, *, request: HttpRequest, **_options: Any) -> None:  # type: ignore[override]  # of Django's options the view passes, this site has one each
        """Send the mail. Costs as `mails.send_reset`."""
        self.is_sent = mails.send_reset(self.cleaned_data["email"])


class PasswordResetView(FormPageMixin, auth_views.PasswordResetView):
    """Django's, which answers alike whether or not an account has the address."""

    form_class = ResetForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Send the mail, or say that it could not be sent."""
        attempts.begin_mail("reset", form.cleaned_data["email"], counted_client(self.request))
        response = super().form_valid(form)
        return response if form.is_sent else show_not_sent(self, form)


class PasswordResetConfirmView(FormPageMixin, auth_views.PasswordResetConfirmView):
    """Django's: a link is good until the password, the address or a sign-in makes it void."""

    form_class = NewPasswordForm

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer `request`.

        Who was signed in is asked first: a session that was ended is deleted then, and would take
        along the token that the link leaves in it.
        """
        bool(request.user.is_authenticated)
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> Any:
        """The account that the link names; None where nobody can sign in to it any more."""
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, unless the account changed meanwhile; end a lock-out."""
        try:
            response = super().form_valid(form)
        except StaleUser as error:
            show_errors(form, error)
            return self.form_invalid(form)
        attempts.forget(self.user)
        return response


class ReminderForm(forms.Form):
    """Whose username is asked for."""

    email = email_field()


class UsernameReminderView(FormPageMixin, FormView):
    """Mails the username to its owner; answers alike whether or not there is one."""

    template_name = "accounts/username_reminder.html"
    form_class = ReminderForm
    success_url = reverse_lazy("username_reminder_done")

    def form_valid(self, form: ReminderForm) -> HttpResponse:
        """Send the mail, or say that it could not be sent."""
        email = form.cleaned_data["email"]
        attempts.begin_mail("reminder", email, counted_client(self.request))
        if not mails.send_reminder(email):
            return show_not_sent(self, form)
        return super().form_valid(form)
