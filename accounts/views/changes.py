"""The pages that change or end an account: each asks for the password first."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth import views as auth_views
from django.http import HttpResponse
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import attempts, emailchange, mails, services
from accounts.clientaddress import counted_client
from accounts.exceptions import StaleUser
from accounts.forms import (
    AccountDeleteForm,
    EmailChangeForm,
    OwnPasswordChangeForm,
    PasswordConfirmedForm,
    UsernameChangeForm,
)
from accounts.languages import language_of
from accounts.models import User
from accounts.views import letters
from accounts.views.pages import (
    FormPageMixin,
    KeepSessionMixin,
    PasswordConfirmedView,
    show_errors,
    signed_in,
)


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

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Whether the change waits for a link."""
        return super().get_context_data(needs_link=_needs_link(), **kwargs)

    def change(self, user: User, form: PasswordConfirmedForm) -> None:
        """Change the address, or reserve it until its link is followed."""
        email = form.cleaned_data["email"]
        is_another = bool(User.unique.moves(user, {"email": email}))
        if is_another:
            attempts.begin_mail("change", email, counted_client(self.request))
        if is_another and _needs_link():
            self._reserve(user, email)
        else:
            self._change_now(user, email)

    def _change_now(self, user: User, email: str) -> None:
        """Move the address and its guard; tell the old one, and send a link to the new one."""
        old, confirmation_id = user.email, user.confirmation_id
        services.change_email(user, email)
        if user.confirmation_id != confirmation_id:
            mails.send("email_changed", old, language=language_of(user))
            letters.send_confirmation(user)

    def _reserve(self, user: User, email: str) -> None:
        """Reserve the new address, and send it the link; the old one stays until then."""
        emailchange.request_change(user, email)
        self.success_message = gettext_lazy(
            "Your new address is reserved. Follow the link that we send there to make the change."
        )
        if not letters.send_email_change(user):
            messages.error(
                self.request,
                _("The mail could not be sent. Please ask for the change again later."),
            )


def _needs_link() -> bool:
    return bool(settings.ACCOUNTS_EMAIL_CHANGE == "confirm")


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

    form_class = OwnPasswordChangeForm

    def form_valid(self, form: Any) -> HttpResponse:
        """Store the new password, unless the account changed meanwhile."""
        try:
            return super().form_valid(form)
        except StaleUser as error:
            show_errors(form, error)
            return self.form_invalid(form)
