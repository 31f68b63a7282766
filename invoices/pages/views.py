"""The start page, the list, and the pages of one invoice."""

import logging
from functools import partial
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.http import content_disposition_header
from django.views import View
from django.views.decorators.http import conditional_page
from django.views.generic import TemplateView

from accounts.pages.base import DOWNLOAD, signed_in
from dynamo.runtime.threads import together
from invoices.document.fields import YEARS
from invoices.document.invoice import series_of
from invoices.output import einvoices
from invoices.output.helper import run_in_helper
from invoices.output.pdf import pdf_of
from invoices.output.sending import current_sendings
from invoices.pages import forms
from invoices.pages.base import LongPageMixin, OwnInvoicesMixin, download_page, shown_pdf
from invoices.store.issuing import today
from invoices.store.lists import Listed, latest_invoices, list_invoices, search_invoices, sums_of
from invoices.store.records import STANDINGS, Record, find_invoice, find_record
from invoices.store.sellers import profile_of

#: The most invoices that the start page lists, and the most that are overdue.
RECENT = 5

logger = logging.getLogger(__name__)


class HomeView(TemplateView):
    """The start page. Signed-in users see the open, overdue and newest invoices."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        if not self.request.user.is_authenticated:
            return super().get_context_data(**kwargs)
        user = signed_in(self.request)
        read = partial(latest_invoices, user.pk, today(user.time_zone))
        if user.is_confirmed:
            latest, since = read()
            profile = None if latest else profile_of(user.pk)
        else:
            (latest, since), profile = together(read, partial(profile_of, user.pk))
        summed = [item for item in latest if since is None or item.issued_at >= since]
        figures = [figure(state, summed) for state in ("open", "overdue")]
        return super().get_context_data(
            recent=latest[:RECENT],
            overdue=figures[1]["invoices"][:RECENT],
            figures=figures,
            since=since,
            summed=summed,
            # The first steps by the URL names of their pages, and whether each one was done.
            steps=profile
            and {
                "profile": user.is_confirmed,
                "seller": bool(profile.name and profile.address),
                "invoice_new": bool(latest),
            },
            **kwargs,
        )


def figure(state: str, latest: list[Listed]) -> dict[str, Any]:
    """The invoices of `latest` that are in a state of the list's filter, and their sums."""
    found = [item for item in latest if item.standing in forms.FILTERS[state]]
    title = STANDINGS[state]
    sums = sums_of(found)
    return {"state": state, "title": title, "invoices": found, "sums": sums}


class InvoiceListView(OwnInvoicesMixin, TemplateView):
    """The invoices of a year, newest first; optionally of a customer, or in a state."""

    template_name = "invoices/invoice_list.html"

    def get_context_data(self, **kwargs: object) -> dict[str, Any]:
        form = forms.ListForm(self.request.GET)
        if not form.is_valid():
            raise Http404("The query of the list is not valid.")
        query = form.cleaned_data
        this_year = self.today.year
        year = query["year"] or this_year
        state = query["state"]
        is_search = bool(state or query["customer"])
        page = (search_invoices if is_search else list_invoices)(
            self.account,
            year,
            before=query["before"],
            customer=query["customer"],
            standings=forms.FILTERS.get(state, STANDINGS),
            today=self.today,
        )
        if page.damaged:
            series = series_of(self.account, year)
            logger.error("Damaged invoices of %s: %s", series, ", ".join(page.damaged))
        return super().get_context_data(
            form=form,
            page=page,
            year=year,
            customer=query["customer"],
            state=state,
            is_search=is_search,
            is_first_page=query["before"] is None,
            earlier_year=year - 1 if year > YEARS[0] else None,
            # Invoices may have dates of next year.
            later_year=year + 1 if year <= this_year else None,
            **kwargs,
        )


def may_void(record: Record) -> bool:
    """Whether pages offer to void an invoice."""
    return settings.INVOICES_ALLOW_VOID and record.can_be_voided


class InvoiceView(OwnInvoicesMixin, LongPageMixin, TemplateView):
    template_name = "invoices/invoice.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        record = find_record(self.account, kwargs["label"], self.today)
        return super().get_context_data(
            invoice=record.invoice,
            record=record,
            may_void=may_void(record),
            sendings=current_sendings(record),
            einvoice_lacks=einvoices.missing(record.invoice),
            **kwargs,
        )


@method_decorator(conditional_page, name="dispatch")
class InvoicePdfView(OwnInvoicesMixin, LongPageMixin, View):
    """One invoice as a PDF, which the browser shows; 304 if the client has it."""

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        return shown_pdf(pdf_of(find_invoice(self.account, label)), label)


class InvoiceXmlView(OwnInvoicesMixin, LongPageMixin, View):
    """One invoice as an electronic invoice. 404 if it lacks values that the standard requires."""

    is_download = True

    def get(self, request: HttpRequest, label: str) -> HttpResponse:
        invoice = find_invoice(self.account, label)
        if missing := einvoices.missing(invoice):
            raise Http404(f"Not an electronic invoice: {', '.join(missing)}")
        if DOWNLOAD in request.GET:
            return download_page(request, f"{invoice.label}.xml")
        headers = {"Content-Disposition": content_disposition_header(True, f"{invoice.label}.xml")}
        xml = run_in_helper(einvoices.as_xml, invoice, account=self.account)
        return HttpResponse(xml, content_type="application/xml", headers=headers)
