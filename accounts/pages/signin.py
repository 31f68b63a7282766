"""The pages for signing in, checking the password again, sessions, and forgotten passwords."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth import logout, views as auth_views
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.views import View
from django.views.decorators.cache import never_cache
from django.views.generic import FormView, TemplateView

from accounts.emails import mails
from accounts.forms import NewPasswordForm, PasswordConfirmedForm, SignInForm
from accounts.limits import attempts
from accounts.limits.clients import browser_name, counted_client
from accounts.models import AbstractAccount, account_model
from accounts.pages import keptforms, notices
from accounts.pages.base import (
    ButtonView,
    FormPageMixin,
    NextPageMixin,
    page_after_sign_out,
    signed_in,
)
from accounts.sessions import services as sessions, visitor
from dynamo import Transaction
from dynamo.auth.addresses import clean_email


class SignInView(FormPageMixin, NextPageMixin, auth_views.LoginView):
    # The templates of these pages do not have Django's names, because an admin that is installed
    # before this app has templates with those names.
    template_name = "accounts/login.html"
    authentication_form = SignInForm

    @cached_property
    def _kept_form(self) -> str:
        """The form that the visitor sent while signed out (`keptforms`), or empty."""
        packed = self.request.POST.get(keptforms.FIELD, "")
        return packed if keptforms.unpack(packed) else ""

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        """The form is also kept after a wrong password."""
        if kept := self._kept_form:
            kwargs |= {"kept_form": kept, "skeleton": "accounts/base_plain.html"}
        return super().get_context_data(**kwargs)

    def form_valid(self, form: Any) -> HttpResponse:
        user = form.get_user()
        visitor.end_other_session(self.request, user)
        notice = Transaction()
        if not notices.is_known(self.request, user):
            notices.send(self.request, "signed_in", user, write=notice)
        user.session_id = visitor.begin_session(self.request, user, also=notice)
        response = super().form_valid(form)
        keptforms.keep(self.request, self._kept_form, user.pk)
        remembered = form.cleaned_data["remember_me"]
        self.request.session.set_expiry(settings.SESSION_COOKIE_AGE if remembered else 0)
        notices.remember(self.request, response, user)
        return response


class SignOutView(auth_views.LogoutView):
    def get_redirect_url(self) -> str:
        """The page in `next`, but not this one, which would need a template of Django's admin."""
        url = super().get_redirect_url()
        return "" if url == self.request.get_full_path() else url

    def get_default_redirect_url(self) -> str:
        return page_after_sign_out()


class FreshSignInMixin(View):
    """A page for signed-in visitors who entered their password within the last five minutes."""

    #: The name of the URL to go to afterwards. The default is this page, which must then accept
    #: GET.
    return_to = ""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Show the page, or ask for the password or the sign-in first."""
        is_signed_in = request.user.is_authenticated
        if is_signed_in and visitor.is_fresh(request):
            return super().dispatch(request, *args, **kwargs)
        page = reverse(self.return_to) if self.return_to else request.get_full_path()
        return redirect_to_login(page, reverse("reauthenticate") if is_signed_in else None)


@method_decorator(never_cache, name="dispatch")
class ReauthenticateView(LoginRequiredMixin, FormPageMixin, NextPageMixin, FormView):
    """Asks for the password and redirects to `next`, on this site only."""

    template_name = "accounts/reauthenticate.html"
    form_class = PasswordConfirmedForm
    next_page = "profile"

    def get_form_kwargs(self) -> dict[str, object]:
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    def form_valid(self, form: PasswordConfirmedForm) -> HttpResponse:
        visitor.note_password_checked(self.request)
        return super().form_valid(form)


@method_decorator(never_cache, name="dispatch")
class SessionsView(FreshSignInMixin, TemplateView):
    template_name = "accounts/account_sessions.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        user = signed_in(self.request)
        shown = [
            {
                "session": item,
                "browser": browser_name(item.browser),
                "here": item.id == user.session_id,
            }
            for item in sessions.active_sessions(user)
        ]
        return super().get_context_data(shown=shown, **kwargs)


class SessionEndView(FreshSignInMixin, ButtonView):
    """Ends a session of the visitor's account. If it is the visitor's own session, signs out."""

    return_to = "account_sessions"

    def post(self, request: HttpRequest) -> HttpResponse:
        if request.POST.get("session") != signed_in(request).session_id:
            return super().post(request)
        logout(request)
        return redirect(page_after_sign_out())

    def act(self, user: AbstractAccount) -> str:
        sessions.end(user, self.request.POST.get("session", ""))
        return _("The session is ended.")


class SessionsEndOthersView(FreshSignInMixin, ButtonView):
    """Ends all other sessions of the visitor's account.

    If the visitor's own session has ended, the others are not ended.
    """

    return_to = "account_sessions"

    def act(self, user: AbstractAccount) -> str:
        sessions.end_others(user)
        visitor.keep_signed_in(self.request, user)
        return _("All your other sessions have ended.")


# Forgotten passwords and usernames ----------------------------------------------------------------


class AddressForm(forms.Form):
    email = account_model().form_field("email", rule=clean_email)


class ForgottenView(FormPageMixin, FormView):
    """Sends a mail to an address, and answers the same whether or not an account has it."""

    form_class = AddressForm
    #: The name of the limit, and the function that sends the mail.
    kind: str
    send: Callable[[str], None]

    def form_valid(self, form: AddressForm) -> HttpResponse:
        email = form.cleaned_data["email"]
        attempts.begin_mail(self.kind, email, counted_client(self.request))
        self.send(email)
        return super().form_valid(form)


class PasswordResetView(ForgottenView):
    template_name = "accounts/password_reset_form.html"
    success_url = reverse_lazy("password_reset_done")
    kind, send = "reset", staticmethod(mails.send_reset)


class UsernameReminderView(ForgottenView):
    template_name = "accounts/username_reminder.html"
    success_url = reverse_lazy("username_reminder_done")
    kind, send = "reminder", staticmethod(mails.send_reminder)


class PasswordResetConfirmView(FormPageMixin, auth_views.PasswordResetConfirmView):
    """Django's view. A new password, a new address or a sign-in makes the link void."""

    template_name = "accounts/password_reset_confirm.html"
    form_class = NewPasswordForm

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        # The visitor is read first, because this deletes a session that has ended. Otherwise, it
        # would delete the token that the link stores in the session.
        bool(request.user.is_authenticated)
        return super().dispatch(request, *args, **kwargs)

    def get_user(self, uidb64: str) -> Any:
        """The account of the link; None if it was deactivated."""
        user = super().get_user(uidb64)
        return user if user and user.is_active else None

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, and clear the count of failed sign-ins."""
        form.notify = partial(notices.send, self.request, "password_changed", form.user)
        response = super().form_valid(form)
        attempts.clear_failures(self.user)
        return response
