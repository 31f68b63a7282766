"""The pages of invoices. They show the invoices of the signed-in account; others are 404."""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Any

from babel.numbers import get_currency_precision
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
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

from accounts.models import User
from accounts.pages import SignedInFormMixin, signed_in
from dynamo.exceptions import Unavailable
from dynamo.middleware import as_unavailable
from invoices import einvoices
from invoices.amounts import MAX_LINES
from invoices.documents import (
    DEFAULT_LANGUAGE,
    Invoice,
    series_of,
    typed_values_of,
)
from invoices.exceptions import AlreadyVoided, DateTooEarly, RequestIdReused, UnknownInvoice
from invoices.forms import (
    FIRST_YEAR,
    InvoiceForm,
    ListForm,
    VoidForm,
    blank_line_after,
    line_values_of,
    typed_lines,
    typed_values,
)
from invoices.issuing import check_may_issue, issue, must_confirm, seller_of, today
from invoices.printing.pdf import render
from invoices.records import find_invoice, list_invoices, void
from invoices.sending.services import sendings_of
from invoices.states import Record, find_record
from sequences.exceptions import DamagedSeries, ItemTooLarge, SequenceError
from web.choices import currency_choices
from web.focus import FocusFirstErrorMixin

#: How many decimals most currencies have.
USUAL_DECIMALS = 2

logger = logging.getLogger(__name__)


class OwnInvoicesMixin(LoginRequiredMixin):
    """A page about the invoices of the signed-in account."""

    request: HttpRequest

    @property
    def user(self) -> User:
        return signed_in(self.request)

    @property
    def account(self) -> str:
        return self.user.pk

    def find_record(self, label: str) -> Record:
        """The account's invoice with this number, and what happened to it. Raises Http404."""
        try:
            return find_record(self.account, label)
        except UnknownInvoice as error:
            raise Http404(str(error)) from error

    def find(self, label: str) -> Invoice:
        """The account's invoice with this number. Raises Http404."""
        try:
            return find_invoice(self.account, label)
        except UnknownInvoice as error:
            raise Http404(str(error)) from error


class InvoiceListView(OwnInvoicesMixin, TemplateView):
    """The invoices of a year, newest first; optionally only those of a customer."""

    template_name = "invoices/invoice_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        form = ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404("The query of the list is not valid.")
        query = form.cleaned_data
        this_year = today(self.user.time_zone).year
        year = query["year"] or this_year
        page = list_invoices(self.account, year, before=query["before"], customer=query["customer"])
        if page.damaged:
            series = series_of(self.account, year)
            logger.error("Damaged invoices of %s: %s", series, ", ".join(page.damaged))
        return super().get_context_data(
            form=form,
            page=page,
            year=year,
            customer=query["customer"],
            is_first_page=query["before"] is None,
            earlier_year=year - 1 if year > FIRST_YEAR else None,
            # Invoices may have dates of next year.
            later_year=year + 1 if year <= this_year else None,
            **kwargs,
        )


class InvoiceView(OwnInvoicesMixin, TemplateView):
    template_name = "invoices/invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        record = self.find_record(kwargs["label"])
        return super().get_context_data(
            invoice=record.invoice,
            sendings=sendings_of(record.state),
            zone=self.user.time_zone or settings.TIME_ZONE,
            einvoice_lacks=einvoices.missing(record.invoice),
            **kwargs,
        )


class InvoicePdfView(OwnInvoicesMixin, View):
    """One invoice as a PDF, which the browser shows."""

    def get(self, request: HttpRequest, label: str) -> HttpResponseBase | None:
        """The file, or 304 if the browser has it."""
        invoice = self.find(label)
        content = render(invoice)
        etag = quote_etag(hashlib.sha256(content).hexdigest())
        headers = {
            "Content-Disposition": content_disposition_header(False, f"{invoice.label}.pdf"),
            "ETag": etag,
        }
        response = HttpResponse(content, content_type="application/pdf", headers=headers)
        return get_conditional_response(request, etag=etag, response=response)


class InvoiceXmlView(OwnInvoicesMixin, View):
    """One invoice as an electronic invoice. 404 if it lacks what the standard asks."""

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        invoice = self.find(label)
        if missing := einvoices.missing(invoice):
            raise Http404(f"Not an electronic invoice: {', '.join(missing)}")
        headers = {"Content-Disposition": content_disposition_header(True, f"{invoice.label}.xml")}
        xml = einvoices.as_xml(invoice)
        return HttpResponse(xml, content_type="application/xml", headers=headers)


class InvoiceNewView(SignedInFormMixin, OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Issues an invoice. Lines are added and removed by a script, or by buttons of the form."""

    template_name = "invoices/invoice_new.html"
    form_class = InvoiceForm
    http_method_names = ("get", "head", "options", "post")

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """A form with one line, or, with `?from=`, the form that issues an invoice again."""
        if kept := self.kept_form_page():
            return kept
        values, lines = {}, []
        if label := request.GET.get("from"):
            model = self.find(label)
            values, lines = typed_values_of(model), line_values_of(model)
        return self.show({**values, "request_id": InvoiceForm.new_request_id()}, lines)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Issue it, or show the form with a line added or removed."""
        if request.POST.keys() & {"add_line", "enter"} or request.POST.get("remove_line"):
            return self.show_sent(request.POST)
        return super().post(request, *args, **kwargs)

    def show_sent(self, sent: QueryDict) -> HttpResponse:
        """The form with the values in `sent`, and a line added or removed if its button says so."""
        lines, focus = typed_lines(sent), None
        if sent.keys() & {"add_line", "enter"}:
            if len(lines) < MAX_LINES:
                lines.append(blank_line_after(lines))
            focus = len(lines) - 1
        elif number := sent.get("remove_line"):
            at = next((at for at in range(len(lines)) if str(at) == number), len(lines))
            del lines[at : at + 1]
            focus = max(0, at - 1)
        return self.show(typed_values(sent), lines, focus=focus)

    def show(
        self, values: dict[str, str], lines: list[dict[str, str]], focus: int | None = None
    ) -> HttpResponse:
        """The form with these values, unchecked, and the focus in the line `focus`."""
        form = InvoiceForm(initial=values, lines=lines, **self.form_arguments())
        if focus is not None:
            line = form.lines.forms[min(focus, len(form.lines.forms) - 1)]
            line.fields["description"].widget.attrs["autofocus"] = True
        return self.render_to_response(self.get_context_data(form=form))

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | self.form_arguments()

    def form_arguments(self) -> dict[str, Any]:
        return {"seller": seller_of(self.user), "issued_on": today(self.user.time_zone)}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Also the decimals of unusual currencies for the script, as JSON."""
        decimals = {code: get_currency_precision(code) for code, _name in currency_choices()}
        unusual = {code: count for code, count in decimals.items() if count != USUAL_DECIMALS}
        return super().get_context_data(
            decimals=json.dumps(unusual),
            must_confirm=must_confirm(self.user),
            **kwargs,
        )

    def form_valid(self, form: InvoiceForm) -> HttpResponse:
        """Issue it. The same form sent again leads to the same invoice."""
        if must_confirm(self.user):
            return self.form_invalid(form)
        try:
            invoice = issue(
                form.draft(),
                account=self.account,
                seller=form.seller,
                request_id=form.cleaned_data["request_id"],
                language=get_language() or DEFAULT_LANGUAGE,
                time_zone=self.user.time_zone,
            )
        except SequenceError as error:
            form.add_error(None, _refusal(error))
            if isinstance(error, RequestIdReused):
                form.renew_request_id()
            return self.form_invalid(form)
        except Unavailable as error:
            # The form keeps its request id: with a new one it could issue a second invoice.
            form.add_error(
                None,
                _(
                    "The database did not answer in time. The invoice may have been issued. Send "
                    "the form again: the invoice is issued only once."
                ),
            )
            return as_unavailable(self.request, self.form_invalid(form), error)
        messages.success(
            self.request, _("Invoice %(number)s was issued.") % {"number": invoice.label}
        )
        return redirect("invoice", invoice.label)

    def form_invalid(self, form: InvoiceForm) -> HttpResponse:
        """Show the form again, with a request id that is still valid."""
        if "request_id" in form.errors:
            form.renew_request_id()
        try:
            check_may_issue(self.user)
        except ValidationError as error:
            form.add_error(None, error)
        return super().form_invalid(form)


def _refusal(error: SequenceError) -> str:
    """Why the invoice was not issued."""
    if isinstance(error, RequestIdReused):
        return _(
            "You have already issued invoice %(number)s with this form, with other contents. To "
            "issue another invoice, send the form again."
        ) % {"number": error.number}
    if isinstance(error, DateTooEarly):
        return _(
            "Your last invoice is dated %(last)s. You cannot issue an invoice before that day."
        ) % {"last": date_format(error.last)}
    if isinstance(error, ItemTooLarge):
        return _(
            "The invoice is too long: %(size)s KB, and %(limit)s KB are allowed. Shorten its "
            "lines, or split it into two invoices."
        ) % {"size": -(-error.size_bytes // 1024), "limit": error.limit_bytes // 1024}
    if isinstance(error, DamagedSeries):
        logger.error("%s", error)
        return _(
            "Your invoices of this year do not match their counter, so nothing was issued. Please "
            "tell the operator of this site."
        )
    raise error


class InvoiceVoidView(SignedInFormMixin, OwnInvoicesMixin, FocusFirstErrorMixin, FormView):
    """Asks for the reason, and voids an invoice."""

    template_name = "invoices/invoice_void.html"
    form_class = VoidForm
    http_method_names = ("get", "head", "options", "post")

    @cached_property
    def invoice(self) -> Invoice:
        return self.find(self.kwargs["label"])

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The form. If the invoice is voided, its page, which shows the reason."""
        if self.invoice.is_voided:
            return redirect("invoice", self.invoice.label)
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(invoice=self.invoice, **kwargs)

    def form_valid(self, form: VoidForm) -> HttpResponse:
        label = self.kwargs["label"]
        try:
            void(self.account, label, form.cleaned_data["reason"])
        except UnknownInvoice as error:
            raise Http404(str(error)) from error
        except AlreadyVoided as error:
            form.add_error(
                "reason",
                _("The invoice was already voided: %(reason)s") % {"reason": error.reason},
            )
            return self.form_invalid(form)
        messages.success(self.request, _("Invoice %(number)s was voided.") % {"number": label})
        return redirect("invoice", label)
