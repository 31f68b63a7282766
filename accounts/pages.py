"""What the account's pages share: each calls one operation and shows its errors at the fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.generic import FormView

from accounts.exceptions import (
    AccountError,
    EmailTaken,
    RequestIdUsed,
    StaleUser,
    UsernameTaken,
    ValueTaken,
)
from accounts.forms import PasswordConfirmedForm
from accounts.models import User
from dynamo.exceptions import Busy, Refused
from web.focus import FocusFirstErrorMixin

CHANGED_MEANWHILE = gettext_lazy(
    "This account was changed meanwhile, and nothing was stored. Please try again."
)


def show_errors(form: forms.BaseForm, error: Exception) -> None:
    """Add the errors of an operation to the fields that they concern. Raises any other error."""
    errors = error.exceptions if isinstance(error, Refused) else [error]
    for each in errors:
        if isinstance(each, UsernameTaken):
            form.add_error(each.attribute, _("This username is taken."))
        elif isinstance(each, EmailTaken):
            form.add_error(each.attribute, _("This email address belongs to another account."))
        elif isinstance(each, ValueTaken):
            form.add_error(each.attribute, _("Another account already has this value."))
        elif isinstance(each, RequestIdUsed):
            form.add_error(
                None,
                _(
                    "This form has already created an account with other values. If that account "
                    "is yours, sign in. To create another one, enter the password again and send "
                    "this form again."
                ),
            )
        elif isinstance(each, StaleUser):
            deleted = _("This account was deleted meanwhile.")
            form.add_error(None, deleted if each.deleted else str(CHANGED_MEANWHILE))
        else:
            raise each


def show_not_sent(view: FormView, form: forms.BaseForm) -> HttpResponse:
    """Show the form again because its mail could not be sent."""
    form.add_error(None, _("The mail could not be sent. Please try again later."))
    return view.form_invalid(form)


def signed_in(request: HttpRequest) -> User:
    """The visitor's account, on a page that requires a sign-in."""
    return cast(User, request.user)


class FormPageMixin(FocusFirstErrorMixin):
    """A page with a form. Crash reports do not show the values of the form."""

    # Without PUT, which Django handles as a POST without values: it would empty a profile.
    http_method_names: Any = ("get", "head", "options", "post")

    @method_decorator([sensitive_post_parameters(), sensitive_variables()])
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a View's
        return answer


class KeepFormMixin:
    """If DynamoDB does not answer, shows the same form again so that it can be sent again.

    The operation may have been carried out. The same form, with its request id if it has one,
    detects that; a new form would not.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        request.unavailable_page = self._form_again  # type: ignore[attr-defined]  # read by dynamo.middleware
        response: HttpResponse = super().post(request, *args, **kwargs)  # type: ignore[misc]  # a FormView's
        return response

    def _form_again(self, error: Exception) -> HttpResponse:
        """The page with the typed values, unchecked and without passwords.

        Its base template does not read who is signed in.
        """
        view: Any = self
        options = view.get_form_kwargs() | {"data": None, "files": None}
        typed = view.request.POST.dict()
        form = view.get_form_class()(**options | {"initial": options["initial"] | typed})
        context = view.get_context_data(
            form=form,
            unanswered=True,
            is_busy=isinstance(error, Busy),
            skeleton="base_plain.html",
        )
        return HttpResponse(render_to_string(view.get_template_names(), context, view.request))


class KeepSessionMixin:
    """Keeps the visitor signed in if checking the password upgraded an outdated hash."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        view: Any = self
        user = signed_in(request)
        read = user.password
        form = view.get_form()
        valid = form.is_valid()
        if user.password != read:
            update_session_auth_hash(request, cast(Any, user))
        response: HttpResponse = view.form_valid(form) if valid else view.form_invalid(form)
        return response


class PasswordConfirmedView(
    LoginRequiredMixin, KeepFormMixin, KeepSessionMixin, FormPageMixin, FormView, ABC
):
    """A page that asks for the password and then makes a change."""

    success_url = reverse_lazy("profile")
    success_message: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @abstractmethod
    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Call the operation."""

    def form_valid(self, form: PasswordConfirmedForm) -> HttpResponse:
        try:
            self.change(signed_in(self.request), form)
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        messages.success(self.request, self.success_message)
        return super().form_valid(form)
