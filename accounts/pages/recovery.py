"""The pages for users who forgot their password or username."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import views as auth_views
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


class AddressForm(forms.Form):
    email = VALUES["email"].form_field(EMAIL)


class ForgottenView(FormPageMixin, FormView):
    """Sends a mail to an address, and answers the same whether or not an account has it."""

    form_class = AddressForm
    #: What is limited, and what sends the mail.
    kind: str
    send: staticmethod[[str], bool]

    def form_valid(self, form: AddressForm) -> HttpResponse:
        email = form.cleaned_data["email"]
        attempts.begin_mail(self.kind, email, counted_client(self.request))
        return super().form_valid(form) if self.send(email) else show_not_sent(self, form)


class PasswordResetView(ForgottenView):
    template_name = "registration/password_reset_form.html"
    success_url = reverse_lazy("password_reset_done")
    kind, send = "reset", staticmethod(mails.send_reset)


class UsernameReminderView(ForgottenView):
    template_name = "accounts/username_reminder.html"
    success_url = reverse_lazy("username_reminder_done")
    kind, send = "reminder", staticmethod(mails.send_reminder)


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
