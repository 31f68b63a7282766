"""A year's invoices, and one of them as a page and as a PDF."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import content_disposition_header, quote_etag
from django.views import View
from django.views.generic import TemplateView

from invoices import days
from invoices.documents import series_of
from invoices.forms import FIRST_YEAR, ListForm
from invoices.pdf import render
from invoices.records import list_invoices
from invoices.views.pages import OwnInvoicesMixin

logger = logging.getLogger(__name__)


class InvoiceListView(OwnInvoicesMixin, TemplateView):
    """A year's invoices, newest first; some of them, by their customer."""

    template_name = "invoices/invoice_list.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """A page of invoices, and what leads to others."""
        form = ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404("No invoices can be asked for like this.")
        asked = form.cleaned_data
        this_year = days.today().year
        year = asked["year"] or this_year
        page = list_invoices(self.account, year, before=asked["before"], customer=asked["customer"])
        if page.damaged:
            series = series_of(self.account, year)
            logger.error("Damaged invoices of %s: %s", series, ", ".join(page.damaged))
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

    template_name = "invoices/invoice.html"

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
            },
        )
        response["ETag"] = etag = quote_etag(hashlib.sha256(content).hexdigest())
        return get_conditional_response(request, etag=etag, response=response)
