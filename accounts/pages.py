"""What the account's pages share: one operation each, whose errors they show at their fields."""

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
                    "This form has already created an account with other values. If that account "
                    "is yours, sign in. To create another one, enter the password again and send "
                    "this form again."
                ),
            )
        elif isinstance(each, StaleUser):
            form.add_error(None, _stale_message(each))
        else:
            raise each


def show_not_sent(view: FormView, form: forms.BaseForm) -> HttpResponse:
    """The form once more, which says that the mail it asked for could not be sent."""
    form.add_error(None, _("The mail could not be sent. Please try again later."))
    return view.form_invalid(form)


def _taken_message(error: ValueTaken) -> str:
    if isinstance(error, UsernameTaken):
        return _("This username is taken.")
    if isinstance(error, EmailTaken):
        return _("This email address belongs to another account.")
    return _("Another account already has this value.")


def _stale_message(error: StaleUser) -> str:
    if error.deleted:
        return _("This account was deleted meanwhile.")
    return _("This account was changed meanwhile, and nothing was stored. Please try again.")


def signed_in(request: HttpRequest) -> User:
    """Who is signed in, on a page that demands it: an account, whatever the stubs think."""
    return cast(User, request.user)


class FormPageMixin(FocusFirstErrorMixin):
    """A page whose form is sent by POST alone, and of which no crash report shows the values."""

    # Django takes a PUT for a POST of no values, which would empty a profile.
    http_method_names: Any = ("get", "head", "options", "post")

    @method_decorator([sensitive_post_parameters(), sensitive_variables()])
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer `request`."""
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # a View stands behind
        return answer


class KeepFormMixin:
    """A form that is shown again where DynamoDB did not answer, so that it can be sent again.

    A fresh form would not do: what was asked for may have been carried out. The same form sent
    again, with its request id if it has one, finds that out.
    """

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the form and act on it, or let the 503 page show the form."""
        request.unavailable_page = self._form_again  # type: ignore[attr-defined]  # read by dynamo.middleware
        response: HttpResponse = super().post(request, *args, **kwargs)  # type: ignore[misc]  # a FormView's
        return response

    def _form_again(self, error: Exception) -> HttpResponse:
        """The page with what was typed, unchecked and without passwords.

        It extends a skeleton that does not ask who is signed in.
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


class PasswordConfirmedView(
    LoginRequiredMixin, KeepFormMixin, KeepSessionMixin, FormPageMixin, FormView, ABC
):
    """A change that asks for the password first. Subclasses say which, in `change`."""

    success_url = reverse_lazy("profile")
    success_message: Any = ""

    def get_form_kwargs(self) -> dict[str, Any]:
        """The account whose password is asked for."""
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @abstractmethod
    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Call the operation."""

    def form_valid(self, form: PasswordConfirmedForm) -> HttpResponse:
        """Make the change, or say at its field why not."""
        try:
            self.change(signed_in(self.request), form)
        except (AccountError, Refused) as error:
            show_errors(form, error)
            return self.form_invalid(form)
        messages.success(self.request, self.success_message)
        return super().form_valid(form)
