"""The pages that confirm and change an email address, and the pages of links in mails."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy
from django.views import View
from django.views.decorators.cache import never_cache

from accounts import services
from accounts.emails import links, mails
from accounts.exceptions import (
    AccountError,
    AccountRequestReused,
    BadLink,
    StaleUser,
    UsedLink,
    ValueTaken,
)
from accounts.forms import EmailChangeForm, PasswordConfirmedForm
from accounts.limits import attempts
from accounts.limits.clients import counted_client
from accounts.models import AbstractAccount, account_model
from accounts.pages import notices
from accounts.pages.base import (
    CHANGED_MEANWHILE,
    ButtonView,
    PasswordConfirmedView,
    change_and_mail,
    signed_in,
    start_page,
)
from dynamo import Refused, Transaction
from dynamo.middleware import logged
from dynamo.wire.attributes import StrOrPromise

logger = logging.getLogger(__name__)


@method_decorator(never_cache, name="dispatch")
class LinkView(View, ABC):
    """A link from a mail: GET shows a page with a button, and POST calls `follow`.

    Mail scanners open links before people do, and a mail can go to an address that another person
    typed. Therefore, opening a link must not create or confirm anything.
    """

    #: The email address that the link concerns; empty if it is not known. Raises BadLink, UsedLink.
    address_of: Callable[[str], str]
    question: object
    button: object
    #: The message of the page if the link was followed before.
    done: StrOrPromise
    #: A refused link leads to this URL name, with this text on the button.
    way_out: tuple[str, object] = ("", gettext_lazy("Go to the start page"))
    way_out_of_used: tuple[str, object] | None = None

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        """Show the button, say what a used link did, or refuse an invalid link."""
        try:
            address = self.address_of(token)
        except UsedLink:
            way_out = self.way_out_of_used or self.way_out
            return self._ended(request, self.done, way_out, is_used=True)
        except BadLink as error:
            return self._refused(request, error)
        context = {"question": self.question, "button": self.button, "address": address}
        return TemplateResponse(request, "accounts/link.html", context)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            return self.follow(request, token)
        except (AccountError, Refused, ValidationError) as error:
            return self._refused(request, error)

    def _refused(
        self, request: HttpRequest, error: AccountError | Refused | ValidationError
    ) -> HttpResponse:
        response = self._ended(request, _reason(error), self.way_out)
        response.status_code = 410 if isinstance(error, BadLink) else 409
        kind = type(error).__name__
        return logged(response, request, logger, "A link was refused (%s).", kind, level="info")

    def _ended(
        self, request: HttpRequest, reason: object, way_out: tuple[str, object], **more: object
    ) -> HttpResponse:
        """The page of a link that is refused or was used, with a link to another page."""
        url_name, label = way_out
        url = reverse(url_name) if url_name else start_page()
        context = {"reason": reason, "url": url, "label": label, **more}
        return TemplateResponse(request, "accounts/link_refused.html", context)

    @abstractmethod
    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Perform the operation of the link."""


def _reason(error: AccountError | Refused | ValidationError) -> str:
    if isinstance(error, ValidationError):
        # The rules of the site changed after the form was sent.
        return " ".join(error.messages)
    errors = error.exceptions if isinstance(error, Refused) else [error]
    taken = [name for error in errors if isinstance(error, ValueTaken) for name in error.attributes]
    if taken:
        fields = account_model()._meta.by_name
        names = ", ".join(str(capfirst(fields[name].verbose_name)) for name in taken)
        return _("Another account now has the same: %(names)s.") % {"names": names}
    if any(isinstance(error, StaleUser) for error in errors):
        return str(CHANGED_MEANWHILE)
    if any(isinstance(error, AccountRequestReused) for error in errors):
        return _("Another link from the same form has already created an account.")
    return _("This link was already used, is too old, or is incomplete.")


class EmailConfirmView(LinkView):
    address_of = staticmethod(partial(links.address_of, links.CONFIRM))
    question = gettext_lazy("Is the email address that received this link yours?")
    button = gettext_lazy("Confirm my email address")
    done = gettext_lazy("Your email address is already confirmed.")
    way_out = ("profile", gettext_lazy("Open your profile"))

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        user = links.repeat_if_stale(partial(links.confirm, token))
        messages.success(request, _("Your email address is confirmed."))
        return redirect(start_page() if request.user == user else "login")


class ConfirmationSendView(ButtonView):
    """Sends the link that confirms the visitor's address again."""

    def act(self, user: AbstractAccount) -> str:
        if user.is_confirmed:
            return _("Your email address is already confirmed.")
        attempts.begin_mail("confirm", user.email, counted_client(self.request))
        mails.send_confirmation(user)
        return _("We are sending the link. Check your email.")


class EmailChangeView(PasswordConfirmedView):
    template_name = "accounts/email_change.html"
    form_class = EmailChangeForm
    success_message: StrOrPromise = gettext_lazy("Your email address was changed.")

    def get_initial(self) -> dict[str, object]:
        return {"email": signed_in(self.request).email}

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        needs_link = settings.ACCOUNTS_EMAIL_CHANGE == "confirm"
        return super().get_context_data(needs_link=needs_link, **kwargs)

    def change(self, user: AbstractAccount, form: PasswordConfirmedForm) -> None:
        """Change the address, or send the link that changes it."""
        email = form.cleaned_data["email"]
        if user.has_unique_values(email=email):
            services.change_email(user, email)
            return
        attempts.begin_mail("change", email, counted_client(self.request))
        if settings.ACCOUNTS_EMAIL_CHANGE == "confirm":
            request = partial(links.request_change, user, email)
            change_and_mail(request, partial(mails.send_email_change, user))
            self.success_message = gettext_lazy(
                "We are sending a link to your new email address. Follow it to make the change."
            )
            return
        old, was_confirmed = user.email, user.is_confirmed
        notify = partial(notices.send, self.request, "email_changed", user, to=old)
        change_and_mail(
            partial(services.change_email, user, email),
            *([notify] if was_confirmed else []),
            partial(mails.send_confirmation, user),
        )


class EmailChangeConfirmView(LinkView):
    address_of = staticmethod(partial(links.address_of, links.CHANGE))
    question = gettext_lazy("Should your account use the email address that received this link?")
    button = gettext_lazy("Change my email address")
    done = gettext_lazy("Your email address was changed and confirmed.")

    def follow(self, request: HttpRequest, token: str) -> HttpResponse:
        """Change the address, and notify the new one, and the old one if it was confirmed."""
        user = links.repeat_if_stale(partial(self._change, token))
        messages.success(request, _("Your email address was changed and confirmed."))
        return redirect("profile" if request.user == user else "login")

    def _change(self, token: str) -> AbstractAccount:
        with Transaction() as write:
            user, before = links.confirm_change(token, write=write)
            notify = partial(notices.send, self.request, write=write)
            if before and before.is_confirmed:
                notify("email_changed", before, to=before.email)
            if before:
                notify("email_added", before, to=str(before.pending_email))
        return user


class EmailChangeCancelView(ButtonView):
    def act(self, user: AbstractAccount) -> str:
        links.cancel_change(user)
        return _("The change was canceled. Your email address stays the same.")
