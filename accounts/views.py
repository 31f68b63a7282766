"""The account's pages. Each calls one operation and shows its errors at their fields."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth import views as auth_views
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView, TemplateView

from accounts import services
from accounts.exceptions import (
    AccountError,
    EmailTaken,
    RequestIdUsed,
    StaleUser,
    UsernameTaken,
    ValueTaken,
)
from accounts.forms import (
    AccountDeleteForm,
    EmailChangeForm,
    PasswordConfirmedForm,
    ProfileForm,
    SignInForm,
    SignUpForm,
    UsernameChangeForm,
)
from accounts.models import User
from accounts.values import readable_phone_number
from dynamo.exceptions import Refused, TableMissing, Unavailable
from dynamo.focus import FocusFirstErrorMixin
from dynamo.middleware import unavailable


def show_errors(form: forms.BaseForm, error: Exception) -> None:
    """Put what an operation refused at the fields that it concerns."""
    errors = error.exceptions if isinstance(error, Refused) else [error]
    for each in errors:
        if isinstance(each, ValueTaken):
            form.add_error(each.attribute, _taken_message(each))
        elif isinstance(each, RequestIdUsed):
            form.add_error(
                None,
                _(
                    "This form has created an account already, with other contents. If that "
                    "account is yours, sign in to it; to create another, enter the password "
                    "again and send this form once more."
                ),
            )
        elif isinstance(each, StaleUser):
            form.add_error(None, _stale_message(each))
        else:
            raise each


def _taken_message(error: ValueTaken) -> str:
    if isinstance(error, UsernameTaken):
        return _("This user name is taken.")
    if isinstance(error, EmailTaken):
        return _("This e-mail address belongs to another account.")
    return _("Another account has this already.")


def _stale_message(error: StaleUser) -> str:
    if error.deleted:
        return _("This account was deleted meanwhile.")
    return _("This account was changed meanwhile, and nothing was stored. Please try again.")


def signed_in(request: HttpRequest) -> User:
    """Who is signed in, on a page that demands it: an account, whatever the stubs think."""
    return cast(User, request.user)


class FormPageMixin(FocusFirstErrorMixin):
    """A page whose form is sent by POST alone."""

    # Django takes a PUT for a POST of no values, which would empty a profile.
    http_method_names: Any = ("get", "head", "options", "post")


class HomeView(TemplateView):
    """What this is; or, signed in, one's account at a glance."""

    template_name = "home.html"


@method_decorator([sensitive_post_parameters(), never_cache], name="dispatch")
class SignUpView(FormPageMixin, FormView):
    """Makes an account and signs in."""

    template_name = "accounts/signup.html"
    form_class = SignUpForm
    success_url = reverse_lazy("profile")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The empty form, for those who have no account yet."""
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        return super().get(request, *args, **kwargs)

    def get_initial(self) -> dict[str, Any]:
        """A request id of this form's own."""
        return {"request_id": SignUpForm.new_request_id()}

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        """Register; the same form sent again finds its account and signs in as before."""
        try:
            user = services.register(
                **form.account_values(),
                password=form.cleaned_data["password1"],
                request_id=form.cleaned_data["request_id"],
            )
            if not user.is_active:
                raise RequestIdUsed(form.cleaned_data["request_id"])
            login(self.request, cast(Any, user))
        except (AccountError, Refused) as error:
            show_errors(form, error)
            if isinstance(error, RequestIdUsed):
                form.renew_request_id()
            if isinstance(error, StaleUser):
                logout(self.request)
            return self.form_invalid(form)
        messages.success(self.request, _("Welcome! Your account is ready."))
        return super().form_valid(form)

    def form_invalid(self, form: SignUpForm) -> HttpResponse:
        """Show the form again; with a request id that is still good."""
        if "request_id" in form.errors:
            form.renew_request_id()
        return super().form_invalid(form)


class SignInView(FormPageMixin, auth_views.LoginView):
    """Django's sign-in, by user name or e-mail address."""

    authentication_form = SignInForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Sign in, unless the account went away since its password was checked."""
        try:
            return super().form_valid(form)
        except StaleUser as error:
            logout(self.request)
            show_errors(form, error)
            return self.form_invalid(form)


class ProfileView(LoginRequiredMixin, FormPageMixin, FormView):
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
        }

    def form_valid(self, form: ProfileForm) -> HttpResponse:
        """Store the changes."""
        try:
            services.edit_profile(signed_in(self.request), **form.cleaned_data)
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        messages.success(self.request, _("Your details are saved."))
        return super().form_valid(form)


class KeepSessionMixin:
    """Keeps its owner signed in where a form's check of the password made an old hash anew."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the form, and act on it."""
        user = signed_in(request)
        read = user.password
        form = self.get_form()  # type: ignore[attr-defined]  # a FormView stands behind
        valid = form.is_valid()
        if user.password != read:
            update_session_auth_hash(request, cast(Any, user))
        act = self.form_valid if valid else self.form_invalid  # type: ignore[attr-defined]  # as above
        response: HttpResponse = act(form)
        return response


@method_decorator(sensitive_post_parameters("password"), name="dispatch")
class PasswordConfirmedView(LoginRequiredMixin, KeepSessionMixin, FormPageMixin, FormView):
    """A change that asks for the password first. Subclasses say which, in `change`."""

    success_url = reverse_lazy("profile")
    success_message: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        """The account whose password is asked for."""
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Call the operation."""
        raise NotImplementedError

    def form_valid(self, form: PasswordConfirmedForm) -> HttpResponse:
        """Make the change, or say at its field why not."""
        try:
            self.change(signed_in(self.request), form)
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        messages.success(self.request, self.success_message)
        return super().form_valid(form)


class UsernameChangeView(PasswordConfirmedView):
    """Another user name."""

    template_name = "accounts/username_change.html"
    form_class = UsernameChangeForm
    success_message = gettext_lazy("Your user name is changed.")

    def get_initial(self) -> dict[str, Any]:
        """Today's."""
        return {"username": signed_in(self.request).username}

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Move the name and its guard."""
        services.change_username(user, form.cleaned_data["username"])


class EmailChangeView(PasswordConfirmedView):
    """Another e-mail address."""

    template_name = "accounts/email_change.html"
    form_class = EmailChangeForm
    success_message = gettext_lazy("Your e-mail address is changed.")

    def get_initial(self) -> dict[str, Any]:
        """Today's."""
        return {"email": signed_in(self.request).email}

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Move the address and its guard."""
        services.change_email(user, form.cleaned_data["email"])


class AccountDeleteView(PasswordConfirmedView):
    """The end of an account."""

    template_name = "accounts/account_delete.html"
    form_class = AccountDeleteForm
    success_url = reverse_lazy("home")
    success_message = gettext_lazy("Your account is deleted.")

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Delete the account with its guards, and sign out."""
        services.delete(user)
        logout(self.request)


class PasswordChangeView(KeepSessionMixin, FormPageMixin, auth_views.PasswordChangeView):
    """Django's, which ends the account's other sessions."""

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, unless the account changed meanwhile."""
        try:
            return super().form_valid(form)
        except StaleUser as error:
            show_errors(form, error)
            return self.form_invalid(form)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token is not today's: said plainly, and nothing was done.

    Signing in draws a new token, so a sign-up or sign-in form that is sent a second time comes
    here. Whoever is signed in already is shown what the first answer showed.
    """
    entrances = {"signup", "login"}
    match = request.resolver_match
    try:
        if match and match.url_name in entrances and request.user.is_authenticated:
            return redirect("profile")
    except (Unavailable, TableMissing) as error:
        # The middleware that says so elsewhere stands around views, and this one is none of them.
        return unavailable(request, error)
    from django.views.csrf import csrf_failure as explain

    return explain(request, reason)
