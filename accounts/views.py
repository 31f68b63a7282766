"""The pages of the account itself, the home page and the language switch."""

from __future__ import annotations

from copy import copy
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth import views as auth_views
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.generic import FormView, TemplateView
from django.views.i18n import set_language

from accounts import services
from accounts.exceptions import AccountError, StaleUser
from accounts.forms import (
    AccountDeleteForm,
    OwnPasswordChangeForm,
    PasswordConfirmedForm,
    ProfileForm,
    UsernameChangeForm,
)
from accounts.languages import language_of, remember, spoken
from accounts.models import User
from accounts.pages import (
    FormPageMixin,
    KeepFormMixin,
    KeepSessionMixin,
    PasswordConfirmedView,
    show_errors,
    signed_in,
)
from accounts.values import readable_phone_number
from dynamo.exceptions import Refused, TableMissing, Unavailable
from dynamo.middleware import unavailable


class HomeView(TemplateView):
    """What this is; or, signed in, one's account at a glance."""

    template_name = "home.html"


class ProfileView(LoginRequiredMixin, KeepFormMixin, FormPageMixin, FormView):
    """Shows the account and edits what it says of its person."""

    template_name = "accounts/profile.html"
    form_class = ProfileForm
    success_url = reverse_lazy("profile")

    def get_initial(self) -> dict[str, Any]:
        """What is stored."""
        user = signed_in(self.request)
        return {
            "full_name": user.full_name,
            "phone_number": readable_phone_number(user.phone_number),
            "business_name": user.business_name,
            "business_address": user.business_address,
            "vat_id": user.vat_id,
            "language": language_of(user) or "",
        }

    def form_valid(self, form: ProfileForm) -> HttpResponse:
        """Store the changes."""
        user = signed_in(self.request)
        before = user.language
        try:
            services.edit_profile(user, **form.profile_values())
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        if user.language == before:
            return self._saved(form)
        with translation.override(language_of(user) or _asked_for(self.request)):
            response = self._saved(form)
        # Else a language of the switch would go on after the browser's own was chosen.
        remember(response, language_of(user))
        return response

    def _saved(self, form: ProfileForm) -> HttpResponse:
        messages.success(self.request, _("Your details were saved."))
        return super().form_valid(form)


def _asked_for(request: HttpRequest) -> str:
    """The language that the browser asks for, whatever the switch said."""
    without_cookie = copy(request)
    without_cookie.COOKIES = {}
    return translation.get_language_from_request(without_cookie)


class UsernameChangeView(PasswordConfirmedView):
    """Another username."""

    template_name = "accounts/username_change.html"
    form_class = UsernameChangeForm
    success_message = gettext_lazy("Your username was changed.")

    def get_initial(self) -> dict[str, Any]:
        """Today's."""
        return {"username": signed_in(self.request).username}

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Move the name and its guard."""
        services.change_username(user, form.cleaned_data["username"])


class AccountDeleteView(PasswordConfirmedView):
    """The end of an account."""

    template_name = "accounts/account_delete.html"
    form_class = AccountDeleteForm
    success_url = reverse_lazy("home")
    success_message = gettext_lazy("Your account was deleted.")

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Delete the account with its guards, and sign out."""
        services.delete(user)
        logout(self.request)


class PasswordChangeView(KeepSessionMixin, FormPageMixin, auth_views.PasswordChangeView):
    """Django's, which ends the account's other sessions."""

    form_class = OwnPasswordChangeForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, unless the account changed meanwhile."""
        try:
            return super().form_valid(form)
        except StaleUser as error:
            show_errors(form, error)
            return self.form_invalid(form)


def switch_language(request: HttpRequest) -> HttpResponse:
    """Django's `set_language`, which for who is signed in also changes the profile.

    Else the profile, which comes first, would undo it; and no other device would know of it.
    """
    response: HttpResponse = set_language(request)
    chosen = response.cookies.get(settings.LANGUAGE_COOKIE_NAME)
    if chosen is None:
        return response
    if not spoken(chosen.value):
        # Django takes every language that it has itself.
        del response.cookies[settings.LANGUAGE_COOKIE_NAME]
    elif request.user.is_authenticated:
        try:
            services.edit_profile(signed_in(request), language=chosen.value)
        except StaleUser:
            messages.error(
                request,
                _("This account was changed meanwhile, and nothing was stored. Please try again."),
            )
    return response


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token is not today's: said plainly, and nothing was done.

    Signing in draws a new token, so a sign-up or sign-in form that is sent a second time comes
    here. Whom it has signed in already is shown what the first answer showed; but not who signed
    in by another form meanwhile, or they would take what they typed here for done.
    """
    match = request.resolver_match
    try:
        if match and _has_signed_in(request, match.url_name):
            return redirect("profile")
    except (Unavailable, TableMissing) as error:
        # The middleware that says so elsewhere stands around views, and this one is none of them.
        return unavailable(request, error)
    from django.views.csrf import csrf_failure as explain

    return explain(request, reason)


def _has_signed_in(request: HttpRequest, url_name: str | None) -> bool:
    """Whether who is signed in has all the names in the sign-up or sign-in form that was sent."""
    if url_name not in {"signup", "login"} or not request.user.is_authenticated:
        return False
    username = request.POST.get("username", "").strip()
    if url_name == "signup":
        typed = {"username": username, "email": request.POST.get("email", "").strip()}
    else:
        typed = {User.attribute_of(username): username}
    held = User.unique.keys_of(signed_in(request))
    try:
        return all(User.unique.key(name, text) == held.get(name) for name, text in typed.items())
    except ValueError:
        return False  # what was typed is no such name
