"""The base of the account's pages.

A page calls one operation and shows its errors at the fields.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import RedirectURLMixin, redirect_to_login
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import Resolver404, resolve, reverse, reverse_lazy
from django.utils.datastructures import MultiValueDict
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.generic import FormView

from accounts.exceptions import (
    AccountError,
    AccountRequestReused,
    EmailTaken,
    StaleUser,
    UsernameTaken,
    ValueTaken,
)
from accounts.forms import PasswordConfirmedForm, SignInForm
from accounts.models import AbstractAccount
from accounts.pages import keptforms
from dynamo import Busy, Refused, Transaction
from dynamo.wire.attributes import StrOrPromise

CHANGED_MEANWHILE = gettext_lazy(
    "This account was changed meanwhile, and nothing was stored. Please try again."
)

NOT_SENT = gettext_lazy(
    "You had been signed out, so this form was not sent. Here is what you typed, except passwords. "
    "Check it, then send it."
)


NOT_SENT_YET = gettext_lazy("Here is what you typed. It was not sent yet.")

TOO_LONG_TO_KEEP = gettext_lazy(
    "This form is too long to be kept. Send it before you leave the page."
)


#: With this query, a download shows a page that starts it.
DOWNLOAD = "page"

#: The message of the form for each error of an operation.
_REFUSALS = {
    UsernameTaken: gettext_lazy("This username is taken."),
    EmailTaken: gettext_lazy("This email address belongs to another account."),
    ValueTaken: gettext_lazy("Another account already has this value."),
    AccountRequestReused: gettext_lazy(
        "This form has already created an account with other values. If that account "
        "is yours, sign in. To create another one, enter the password again and send "
        "this form again."
    ),
}


def show_errors(form: forms.BaseForm, error: Exception) -> None:
    """Add the errors of an operation to the fields that they concern. Raises any other error."""
    for exception in error.exceptions if isinstance(error, Refused) else [error]:
        texts: Iterator[StrOrPromise] = (
            text for kind, text in _REFUSALS.items() if isinstance(exception, kind)
        )
        if isinstance(exception, StaleUser):
            form.add_error(None, stale_text(exception))
        elif text := next(texts, None):
            names = getattr(exception, "attributes", ())
            text = _("Another account already has this combination.") if len(names) > 1 else text
            for name in [name for name in names if name in form.fields] or [None]:
                form.add_error(name, text)
        else:
            raise exception


def stale_text(error: StaleUser) -> StrOrPromise:
    """The message about an account that changed since it was read."""
    return _("This account was deleted meanwhile.") if error.deleted else CHANGED_MEANWHILE


def change_and_mail(change: Callable[..., object], *enqueue: Callable[..., object]) -> None:
    """Make a change of an account and enqueue its mails, in one transaction.

    A form that is sent twice succeeds both times, and its mails are sent once.
    """
    try:
        with Transaction() as write:
            for operation in (change, *enqueue):
                operation(write=write)
    except StaleUser:
        change()  # a success if the account is already as wanted


def start_page() -> str:
    """The URL of the page that follows a sign-in. Other pages also redirect to it."""
    return resolve_url(settings.LOGIN_REDIRECT_URL)


def page_after_sign_out() -> str:
    """The URL of the page that follows a sign-out: by default the sign-in page."""
    return resolve_url(settings.LOGOUT_REDIRECT_URL or "login")


def signed_in(request: HttpRequest) -> AbstractAccount:
    """The visitor's account, on a page that requires a sign-in."""
    return cast(AbstractAccount, request.user)


class NextPageMixin(RedirectURLMixin, FormView):
    """A page with a form, which redirects to the page `next` of this site afterwards.

    The form's URL is that of its page, with `next`.
    """

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        return super().get_context_data(next=self.get_redirect_url(), **kwargs)

    def get_success_url(self) -> str:
        """A download would leave the visitor on the page of the form.

        Therefore, its own page starts it.
        """
        url = super().get_success_url()
        parts = urlsplit(url)
        with suppress(Resolver404):
            view = getattr(resolve(parts.path).func, "view_class", None)
            if getattr(view, "is_download", False):
                return parts._replace(query=DOWNLOAD).geturl()
        return url


class FormPageMixin(FormView):
    """A page with a form, which shows the errors of its operation at the fields.

    The cursor is in the first field with an error, or else in the first field. Crash reports do not
    show the values of the form.
    """

    # PUT is left out, because Django handles it as a POST without values, which would empty a
    # profile.
    http_method_names: Sequence[str] = ("get", "head", "options", "post")

    @method_decorator([sensitive_post_parameters(), sensitive_variables()])
    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return super().dispatch(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        form = self.get_form()
        user = getattr(form, "user", None)
        read = user and user.password
        try:
            is_valid = form.is_valid()
            if user and user.password != read:
                # The check of the password upgraded an outdated hash.
                update_session_auth_hash(request, user)
            response: HttpResponse = (self.form_valid if is_valid else self.form_invalid)(form)
        except (AccountError, Refused) as error:
            show_errors(form, error)
            response = self.form_invalid(form)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        """Show the form again."""
        visible = form.visible_fields()
        wrong = [bound for bound in visible if bound.errors]
        for bound in visible:
            bound.field.widget.attrs.pop("autofocus", None)
        for bound in (wrong or visible)[:1]:
            bound.field.widget.attrs["autofocus"] = True
        return super().form_invalid(form)


def filled_form(view: Any, sent: QueryDict) -> Any:
    """The form of `view` with the values in `sent` as initial values, without passwords."""
    form = view.get_form_class()(**view.get_form_kwargs() | {"data": None, "files": None})
    widgets = {name: field.widget for name, field in form.fields.items()}
    form.initial |= {
        name: widget.value_from_datadict(sent, MultiValueDict(), form.add_prefix(name))
        for name, widget in widgets.items()
        # An unchecked box is not sent either, but never counts as omitted.
        if not widget.value_omitted_from_data(sent, MultiValueDict(), form.add_prefix(name))
    }
    return form


class KeepFormMixin(FormView):
    """If DynamoDB does not answer, shows the same form again so that it can be sent again.

    The operation may have been carried out. The same form, with its request id if it has one,
    detects that; a new form would not.
    """

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        request.unavailable_page = self._form_again  # type: ignore[attr-defined]  # read by dynamo.middleware
        return super().post(request, *args, **kwargs)

    def _form_again(self, error: Exception) -> HttpResponse:
        """The page with the typed values, unchecked and without passwords.

        Its base template does not read who is signed in.
        """
        context = self.get_context_data(
            form=filled_form(self, self.request.POST),
            unanswered=True,
            is_busy=isinstance(error, Busy),
            skeleton="accounts/base_plain.html",
        )
        return HttpResponse(render_to_string(self.get_template_names(), context, self.request))


class SignedInFormMixin(LoginRequiredMixin, FormView):
    """A page with a form for signed-in visitors.

    A form that is sent after the session ended is shown again after the sign-in (`keptforms`).
    The form in the template contains `{{ form_owner }}`.
    """

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        owner = keptforms.owner_field(signed_in(self.request).pk)
        return super().get_context_data(form_owner=owner, **kwargs)

    def handle_no_permission(self) -> Any:
        """The sign-in page, with the form if one was sent."""
        shown = sign_in_page(self.request) if self.request.method == "POST" else None
        return shown or super().handle_no_permission()

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        """The form; if one was kept for this page, with its values."""
        return self.kept_form_page() or super().get(request, *args, **kwargs)

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if to := request.POST.get(keptforms.LEAVE):
            return self.leave(request, to)
        if keptforms.START_EMPTY in request.POST:
            keptforms.forget(request)
            return redirect(request.get_full_path())
        answer = super().post(request, *args, **kwargs)
        if isinstance(answer, HttpResponseRedirect):
            # The form was accepted. A refused form is kept until it is sent again.
            keptforms.forget(request)
        return answer

    def leave(self, request: HttpRequest, to: str) -> HttpResponse:
        """Keep the form and redirect to another page, whose `next` leads back."""
        if not to.startswith("/") or not url_has_allowed_host_and_scheme(to, None):
            raise SuspiciousOperation("A form leads to pages of this site only.")
        here = request.get_full_path()
        there = urlsplit(to)
        if not keptforms.keep_left(request, here, signed_in(request).pk):
            messages.error(request, TOO_LONG_TO_KEEP)
            return self.show_sent(request.POST)
        return redirect(there._replace(query=urlencode({"next": here})).geturl())

    def kept_form_page(self) -> HttpResponse | None:
        """The page with the form that was kept for it, and a message."""
        request = self.request
        sent = keptforms.kept_for(request)
        if sent is None:
            return None
        self.renew_defaults(sent)
        if keptforms.LEFT in sent:
            messages.info(request, NOT_SENT_YET, "kept")
        else:
            messages.warning(request, NOT_SENT, "kept")
        return self.show_sent(sent)

    def renew_defaults(self, sent: QueryDict) -> None:
        """Replace values of a kept form that were not typed and differ in a new form."""

    def show_sent(self, sent: QueryDict) -> HttpResponse:
        """The form with the values in `sent`, which were not checked."""
        return self.render_to_response(self.get_context_data(form=filled_form(self, sent)))


def sign_in_page(request: HttpRequest) -> HttpResponse | None:
    """The sign-in page with the form that was sent; None if there is nothing to keep.

    Its base template has no links, which would lose the form.
    """
    packed = keptforms.pack(request)
    if packed == "":
        return None
    context = {
        "form": SignInForm(request),
        "next": request.get_full_path(),
        "kept_form": packed,
        "is_too_large": packed is None,
        "skeleton": "accounts/base_plain.html",
    }
    return TemplateResponse(request, "accounts/login.html", context)


class ButtonView(LoginRequiredMixin, View, ABC):
    """Performs the operation of a button, and redirects to a page with a message."""

    #: The URL name of the page that shows the message.
    return_to = "profile"

    @abstractmethod
    def act(self, user: AbstractAccount) -> str:
        """Call the operation, and return the message about its success.

        Raises:
            StaleUser: the account changed since it was read; the page shows a message about this.
        """

    def handle_no_permission(self) -> HttpResponseRedirect:
        """The sign-in page.

        It leads to the page of the button, because this view accepts no GET.
        """
        return redirect_to_login(reverse(self.return_to))

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            messages.success(request, self.act(signed_in(request)))
        except StaleUser as error:
            messages.error(request, stale_text(error))
        return redirect(self.return_to)


class PasswordConfirmedView(SignedInFormMixin, KeepFormMixin, FormPageMixin, FormView, ABC):
    """A page that asks for the password and then makes a change."""

    success_url = reverse_lazy("profile")
    success_message: StrOrPromise = ""

    def get_form_kwargs(self) -> dict[str, object]:
        return {**super().get_form_kwargs(), "user": signed_in(self.request)}

    @abstractmethod
    def change(self, user: AbstractAccount, form: PasswordConfirmedForm) -> None:
        """Call the operation."""

    def form_valid(self, form: PasswordConfirmedForm) -> HttpResponse:
        self.change(signed_in(self.request), form)
        messages.success(self.request, self.success_message)
        return super().form_valid(form)
