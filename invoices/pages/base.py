"""The base of the pages of invoices: the account, forms, error messages, long pages."""

import logging
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.response import SimpleTemplateResponse
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.http import content_disposition_header
from django.utils.translation import gettext_lazy
from django.views import View
from django.views.generic import FormView

from accounts.models import AbstractAccount
from accounts.pages.base import FormPageMixin, SignedInFormMixin, signed_in
from accounts.sessions.middleware import read_with_visitor
from dynamo.runtime.gates import Gate
from dynamo.runtime.processes import PerProcess
from invoices import exceptions
from invoices.models import CustomerItem, SellerProfile
from invoices.store.issuing import today
from invoices.store.sellers import profile_of
from sequences import DamagedSeries, ItemTooLarge, SequenceError

logger = logging.getLogger(__name__)


class OwnInvoicesMixin(LoginRequiredMixin):
    """A page about the invoices of the signed-in account."""

    request: HttpRequest

    @property
    def user(self) -> AbstractAccount:
        return signed_in(self.request)

    @property
    def account(self) -> str:
        return self.user.pk

    @property
    def today(self) -> date:
        return today(self.user.time_zone)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer 404 if the account does not have the invoice or the customer."""
        try:
            return super().dispatch(request, *args, **kwargs)
        except (exceptions.UnknownInvoice, CustomerItem.DoesNotExist) as error:
            raise Http404(str(error)) from error

    def redirect(
        self, text: str, *to: Any, level: int = messages.SUCCESS, **values: object
    ) -> HttpResponse:
        """Redirect to the page `to`, which shows a message."""
        messages.add_message(self.request, level, text % values)
        return redirect(*to)


class SellerMixin(OwnInvoicesMixin):
    """A page that shows or changes the seller. The profile is read together with the visitor."""

    #: This is None only if no user is signed in.
    profile: SellerProfile

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.profile = cast(SellerProfile, read_with_visitor(request, profile_of))
        return super().dispatch(request, *args, **kwargs)


class OwnFormView(SignedInFormMixin, OwnInvoicesMixin, FormPageMixin, FormView):
    """A form about the invoices of the signed-in account."""

    #: The field at which a refusal is shown; by default above the form.
    refused_at: str | None = None

    def act(self, form: Any) -> HttpResponse:
        """Call the operation, and redirect to another page."""
        raise NotImplementedError

    def form_valid(self, form: Any) -> HttpResponse:
        """Act, or show the error. If the same form is sent again, it has no further effect.

        For example, the 503 page sends it again with its request id.
        """
        try:
            return self.act(form)
        except ValidationError as error:
            form.add_error(None, error)
        except SequenceError as error:
            form.add_error(self.refused_at, refusal_text(error))
            if isinstance(error, (exceptions.InvoiceRequestReused, exceptions.SendingReused)):
                form.renew_request_id()
        return self.form_invalid(form)


def shown_pdf(content: bytes, name: str) -> HttpResponse:
    """A PDF, which the browser shows."""
    headers = {"Content-Disposition": content_disposition_header(False, f"{name}.pdf")}
    return HttpResponse(content, content_type="application/pdf", headers=headers)


def download_page(request: HttpRequest, name: str) -> HttpResponse:
    """The page that follows a sign-in and starts the download."""
    response = render(request, "invoices/download.html", {"name": name, "url": request.path})
    # The download starts after the page is shown.
    response["Refresh"] = f"1;url={request.path}"
    return response


#: Texts of pages that differ from those of commands, which name request ids instead of forms.
_REFUSALS: dict[type[SequenceError], Promise] = {
    exceptions.InvoiceRequestReused: gettext_lazy(
        "You have already issued invoice {number} with this form, with other contents. To issue "
        "another invoice, send the form again."
    ),
    ItemTooLarge: gettext_lazy(
        "The invoice is too long: {size} KB, and {limit} KB are allowed. Shorten its lines, or "
        "split it into two invoices."
    ),
    DamagedSeries: gettext_lazy(
        "Your invoices of this year do not match their counter, so nothing was issued. Please tell "
        "the operator of this site."
    ),
    exceptions.AlreadyCredited: gettext_lazy(
        "The invoice was already credited. Its page shows the credit note."
    ),
    exceptions.SendingReused: gettext_lazy(
        "This form has already sent the invoice to {to}. To send it to another address, too, send "
        "the form again."
    ),
}


def refusal_text(error: SequenceError) -> str:
    """Why the invoice was not issued, changed or sent."""
    text: Any = _REFUSALS.get(type(error), error.text)
    if not isinstance(text, Promise):
        raise error  # the text is not translated, because no form can cause this error
    if isinstance(error, DamagedSeries):
        logger.error("%s", error)
    values = {
        name: date_format(value) if isinstance(value, date) else value
        for name, value in vars(error).items()
    }
    if isinstance(error, ItemTooLarge):
        values |= {"size": -(-error.size_bytes // 1024), "limit": error.limit_bytes // 1024}
    return str(text).format(**values)


# Pages that take a long time
# ----------------------------------------------------------------------------
#
# A process makes one at a time for each account. Further pages of the account wait for it. While
# they wait, they pass their turns on to pages of other accounts. Nothing is sent to DynamoDB.

#: The most accounts for which pages are made at once. Most of these pages wait for the helper
#: process.
AT_ONCE = 16
#: The most pages of an account that wait for its first one. A person may open some tabs at once.
MOST_WAITING = 5
#: The most waiting pages of all accounts: a third of the places in `project.middleware`.
MOST_WAITING_IN_ALL = 32

_gate = PerProcess(
    lambda: Gate("a page that takes long", AT_ONCE, MOST_WAITING_IN_ALL, per=MOST_WAITING)
)


def one_at_a_time(account: str) -> AbstractContextManager[None]:
    """A context whose body runs when no other body of `account` runs.

    Raises:
        GateFull: `MOST_WAITING` of the account wait already, or `MOST_WAITING_IN_ALL` of all
            accounts; or it waited until the page's deadline. See `Gate`.
    """
    return _gate().inside(account)


class LongPageMixin(View):
    """A page that takes a long time. Visitors who are not signed in do not wait for each other."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Make the page, including its template, when the account's earlier pages are made."""
        account: Any = request.user
        with one_at_a_time(account.pk) if account.is_authenticated else nullcontext():
            response = super().dispatch(request, *args, **kwargs)
            if isinstance(response, SimpleTemplateResponse):
                # Otherwise, Django would render it after this block, at the same time as the next
                # page.
                response.render()
            return response
