"""The invoices' pages. Each shows or calls one operation, for the account that is signed in.

Invoices are found under their account's key alone, so another's is as unknown as one that is not
there: 404.
"""

from __future__ import annotations

import hashlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from babel.numbers import get_currency_precision
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.cache import get_conditional_response
from django.utils.formats import date_format
from django.utils.functional import cached_property
from django.utils.http import content_disposition_header, quote_etag
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views import View
from django.views.generic import FormView, TemplateView

from dynamo.exceptions import Unavailable
from dynamo.focus import FocusFirstErrorMixin
from dynamo.middleware import as_unavailable
from sequences import days
from sequences.exceptions import (
    AlreadyVoided,
    DamagedSeries,
    DateTooEarly,
    InvoiceError,
    InvoiceTooLarge,
    RequestIdReused,
    UnknownInvoice,
)
from sequences.exports import as_csv, as_zip
from sequences.forms import (
    FIRST_YEAR,
    InvoiceForm,
    ListForm,
    VoidForm,
    blank_line_after,
    line_values_of,
    typed_lines,
    typed_values,
    values_of,
)
from sequences.invoices import DEFAULT_LANGUAGE, Invoice
from sequences.issuing import issue
from sequences.money import currency_choices
from sequences.pdf import render
from sequences.records import all_invoices, find_invoice, list_invoices, void
from sequences.rules import MAX_LINES, check_may_issue, must_confirm, seller_of

#: Of most currencies.
USUAL_DECIMALS = 2

logger = logging.getLogger(__name__)


class OwnInvoicesMixin(LoginRequiredMixin):
    """A page about the invoices of who is signed in."""

    request: HttpRequest

    @property
    def account(self) -> str:
        """The primary key of who is signed in."""
        return str(self.request.user.pk)

    def find(self, label: str) -> Invoice:
        """The account's invoice of this number, else 404."""
        try:
            return find_invoice(self.account, label)
        except UnknownInvoice as error:
            raise Http404(str(error)) from error


class InvoiceListView(OwnInvoicesMixin, TemplateView):
    """A year's invoices, newest first; some of them, by their customer."""

    template_name = "sequences/invoice_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of invoices, and what leads to others."""
        form = ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404("No invoices can be asked for like this.")
        asked = form.cleaned_data
        this_year = days.today().year
        year = asked["year"] or this_year
        page = list_invoices(self.account, year, before=asked["before"], customer=asked["customer"])
        return super().get_context_data(
            form=form,
            page=page,
            year=year,
            customer=asked["customer"],
            is_first_page=asked["before"] is None,
            earlier_year=year - 1 if year > FIRST_YEAR else None,
            # Invoices may be dated ahead, and next year's are not looked for before they are shown.
            later_year=year + 1 if year <= this_year else None,
            **kwargs,
        )


class InvoiceView(OwnInvoicesMixin, TemplateView):
    """One invoice."""

    template_name = "sequences/invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The invoice."""
        return super().get_context_data(invoice=self.find(kwargs["label"]), **kwargs)


class InvoicePdfView(OwnInvoicesMixin, View):
    """One invoice as a PDF, shown by the browser."""

    def get(self, request: HttpRequest, label: str) -> HttpResponseBase | None:
        """The file; or nothing new, where the browser has it."""
        invoice = self.find(label)
        content = render(invoice)
        response = HttpResponse(
            content,
            content_type="application/pdf",
            headers={
                "Content-Disposition": content_disposition_header(False, f"{invoice.label}.pdf"),
                "Cache-Control": "private, no-cache",
            },
        )
        response["ETag"] = etag = quote_etag(hashlib.sha256(content).hexdigest())
        return get_conditional_response(request, etag=etag, response=response)


class YearDownloadView(OwnInvoicesMixin, View, ABC):
    """All invoices of a year as one file, oldest first, made while it is sent."""

    content_type = ""
    ending = ""

    @abstractmethod
    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """The file's pieces."""

    def get(self, request: HttpRequest, year: int) -> StreamingHttpResponse:
        """The file; 404 where the year has no invoice."""
        invoices = all_invoices(self.account, year, oldest_first=True)
        # The first is read before anything is sent, as long as there can be another answer.
        first = next(invoices, None)
        if first is None:
            raise Http404("There is no invoice of this year.")
        return StreamingHttpResponse(
            self.file(chain([first], invoices)),
            content_type=self.content_type,
            headers={
                "Content-Disposition": f'attachment; filename="invoices-{year}.{self.ending}"',
                "Cache-Control": "private, no-store",
            },
        )


class InvoicesCsvView(YearDownloadView):
    """A year as a table."""

    content_type = "text/csv; charset=utf-8"
    ending = "csv"

    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """A row for each invoice."""
        return as_csv(invoices)


class InvoicesZipView(YearDownloadView):
    """A year as PDFs."""

    content_type = "application/zip"
    ending = "zip"

    def file(self, invoices: Iterable[Invoice]) -> Iterator[bytes]:
        """A PDF for each invoice."""
        return as_zip(invoices)


class InvoiceNewView(OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Issues an invoice. Lines come and go by the page's script, or by buttons of the form."""

    template_name = "sequences/invoice_new.html"
    form_class = InvoiceForm
    http_method_names = ("get", "head", "options", "post")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """A form with one line; or that of an invoice which is issued once more."""
        values, lines = {}, []
        if label := request.GET.get("from"):
            model = self.find(label)
            values, lines = values_of(model), line_values_of(model)
        return self.show({**values, "request_id": InvoiceForm.new_request_id()}, lines)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Issue it, or show the form with a line more or less."""
        lines = typed_lines(request.POST)
        if request.POST.keys() & {"add_line", "enter"}:
            if len(lines) < MAX_LINES:
                lines.append(blank_line_after(lines))
            return self.show(typed_values(request.POST), lines, focus=len(lines) - 1)
        if number := request.POST.get("remove_line"):
            at = next((at for at in range(len(lines)) if str(at) == number), len(lines))
            del lines[at : at + 1]
            return self.show(typed_values(request.POST), lines, focus=max(0, at - 1))
        return super().post(request, *args, **kwargs)

    def show(
        self, values: dict[str, Any], lines: list[dict[str, Any]], focus: int | None = None
    ) -> HttpResponse:
        """The form with these values, unchecked, and the cursor in the line number `focus`."""
        form = InvoiceForm(initial=values, lines=lines, seller=seller_of(self.request.user))
        if focus is not None:
            line = form.lines.forms[min(focus, len(form.lines.forms) - 1)]
            line.fields["description"].widget.attrs["autofocus"] = True
        return self.render_to_response(self.get_context_data(form=form))

    def get_form_kwargs(self) -> dict[str, Any]:
        """The seller as the profile has it now."""
        return {**super().get_form_kwargs(), "seller": seller_of(self.request.user)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the script counts in: the decimals of those currencies that have not two.

        And whether the address must be confirmed first.
        """
        decimals = {code: get_currency_precision(code) for code, _name in currency_choices()}
        unusual = {code: count for code, count in decimals.items() if count != USUAL_DECIMALS}
        return super().get_context_data(
            decimals=json.dumps(unusual), must_confirm=must_confirm(self.request.user), **kwargs
        )

    def form_valid(self, form: InvoiceForm) -> HttpResponse:
        """Issue it; the same form sent again leads to the same invoice."""
        if must_confirm(self.request.user):
            return self.form_invalid(form)
        try:
            invoice = issue(
                form.draft(),
                account=self.account,
                seller=form.seller,
                request_id=form.cleaned_data["request_id"],
                language=get_language() or DEFAULT_LANGUAGE,
            )
        except InvoiceError as error:
            form.add_error(None, _refusal(error))
            if isinstance(error, RequestIdReused):
                form.renew_request_id()
            return self.form_invalid(form)
        except Unavailable as error:
            # A page with a new request id would lead to a second invoice; this one keeps its own.
            form.add_error(
                None,
                _(
                    "The database did not answer in time, so the invoice may be issued all the "
                    "same. Send this form once more: it is issued only once."
                ),
            )
            return as_unavailable(self.request, self.form_invalid(form), error)
        messages.success(
            self.request, _("Invoice %(number)s is issued.") % {"number": invoice.label}
        )
        return redirect("invoice", invoice.label)

    def form_invalid(self, form: InvoiceForm) -> HttpResponse:
        """Show the form again; with a request id that is still good."""
        if "request_id" in form.errors:
            form.renew_request_id()
        try:
            check_may_issue(self.request.user)
        except ValidationError as error:
            form.add_error(None, error)
        return super().form_invalid(form)


def _refusal(error: InvoiceError) -> str:
    """Why an invoice was not issued, to whoever wrote it."""
    if isinstance(error, RequestIdReused):
        return _(
            "This form has issued invoice %(number)s already, with other contents. To issue "
            "another invoice, send it once more."
        ) % {"number": error.number}
    if isinstance(error, DateTooEarly):
        return _("Your last invoice is dated %(last)s, and none can be issued before that day.") % {
            "last": date_format(error.last)
        }
    if isinstance(error, InvoiceTooLarge):
        return _(
            "The invoice is too long: %(size)s KB of at most %(limit)s KB. Shorten its lines, or "
            "make two invoices of it."
        ) % {"size": -(-error.size_bytes // 1024), "limit": error.limit_bytes // 1024}
    if isinstance(error, DamagedSeries):
        logger.error("%s", error)
        return _(
            "Your invoices of this year contradict their own count, so nothing was issued. "
            "Please tell whoever runs this site."
        )
    raise error


class InvoiceVoidView(OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Asks why, and voids an invoice."""

    template_name = "sequences/invoice_void.html"
    form_class = VoidForm
    http_method_names = ("get", "head", "options", "post")

    @cached_property
    def invoice(self) -> Invoice:
        """The invoice as it is stored."""
        return self.find(self.kwargs["label"])

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form; where nothing is left to do, the invoice, which says why."""
        if self.invoice.is_voided:
            return redirect("invoice", self.invoice.label)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The invoice."""
        return super().get_context_data(invoice=self.invoice, **kwargs)

    def form_valid(self, form: VoidForm) -> HttpResponse:
        """Void it."""
        label = self.kwargs["label"]
        try:
            void(self.account, label, form.cleaned_data["reason"])
        except UnknownInvoice as error:
            raise Http404(str(error)) from error
        except AlreadyVoided as error:
            form.add_error(
                "reason",
                _("The invoice is voided already: %(reason)s") % {"reason": error.reason},
            )
            return self.form_invalid(form)
        messages.success(self.request, _("Invoice %(number)s is voided.") % {"number": label})
        return redirect("invoice", label)
