"""The sign-up page, and the page of its link."""

from typing import Any, cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from accounts.emails import mails, pending
from accounts.exceptions import AccountError, AccountRequestReused, StaleUser
from accounts.forms import SignUpForm
from accounts.limits import attempts
from accounts.limits.clients import counted_client
from accounts.pages import notices
from accounts.pages.base import FormPageMixin, KeepFormMixin, NextPageMixin, start_page
from accounts.pages.emails import LinkView
from accounts.sessions import visitor
from dynamo import AlreadyDone, Busy, Refused, Transaction


@method_decorator(never_cache, name="dispatch")
class SignUpView(KeepFormMixin, FormPageMixin, NextPageMixin, FormView):
    template_name = "accounts/signup.html"
    form_class = SignUpForm

    def get_default_redirect_url(self) -> str:
        return start_page()

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        return super().get(request, *args, **kwargs)

    def form_valid(self, form: SignUpForm) -> HttpResponse:
        """Make the account; or, with `ACCOUNTS_PREVENT_ENUMERATION`, send a link that makes it."""
        act = self._hold if settings.ACCOUNTS_PREVENT_ENUMERATION else self._register
        attempt = attempts.begin_sign_up(form.cleaned_data["email"], counted_client(self.request))
        try:
            return act(form)
        except (AccountError, Refused, Busy) as error:
            attempt.give_back()
            if isinstance(error, AccountRequestReused):
                form.renew_request_id()
            if isinstance(error, StaleUser):
                logout(self.request)
            raise

    def _register(self, form: SignUpForm) -> HttpResponse:
        """Make the account and its mail together, and sign in.

        A form that is sent again signs in to the same account, without another mail.
        """
        values = form.account_values()
        try:
            with Transaction() as write:
                user = visitor.register_signed_in(self.request, **values, write=write)
                mails.send_confirmation(user, write=write)
        except AlreadyDone:
            # The account was stored before, and in the same transaction the task of its mail.
            user = visitor.register_signed_in(self.request, **values)
        if not user.is_active:
            raise AccountRequestReused(form.cleaned_data["request_id"])
        visitor.end_other_session(self.request, user)
        login(self.request, cast(Any, user))
        message = _("Welcome! Your account is ready.")
        if not user.is_confirmed:
            message = _(
                "Welcome! Your account is ready. We are sending a link to %(email)s. Follow it to "
                "confirm the address."
            ) % {"email": user.email}
        messages.success(self.request, message)
        response = redirect(self.get_success_url())
        notices.remember(self.request, response, user)
        return response

    def _hold(self, form: SignUpForm) -> HttpResponse:
        """Store the sign-up and send its link.

        The answer does not reveal whether the address is known."""
        key = pending.hold_sign_up(**form.account_values(), next_page=self.get_redirect_url())
        email = form.cleaned_data["email"]
        mails.send_sign_up_link(email, key)
        messages.success(self.request, _("We are sending a link to %(email)s.") % {"email": email})
        return redirect("signup_sent")


class SignUpConfirmView(LinkView):
    address_of = staticmethod(pending.address_of)
    question = gettext_lazy("Did you sign up with the email address that received this link?")
    button = gettext_lazy("Create my account")
    way_out = ("signup", gettext_lazy("Sign up again"))
    done = gettext_lazy("Your account is ready. Sign in with your password.")
    way_out_of_used = ("login", gettext_lazy("Sign in"))

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Make the account without a sign-in, because the link does not prove the password.

        The sign-in page then leads to the page in `next`, if it belongs to this site.
        """
        user, next_page = pending.complete_sign_up(token)
        if request.user == user:
            return redirect("profile")
        messages.success(request, _("Your account is ready. Sign in with your password."))
        return redirect_to_login(next_page) if next_page else redirect("login")
