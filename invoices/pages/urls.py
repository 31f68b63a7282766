"""The pages of invoices. In a URL, a number has the one form that is printed: `2026-000042`."""

from typing import Any

from django.urls import path, register_converter
from django.urls.converters import IntConverter, StringConverter

from invoices.pages.customers import (
    CustomerDeleteView,
    CustomerListView,
    CustomerNamesView,
    CustomerNewView,
    CustomerView,
)
from invoices.pages.downloads import ExportFileView, ExportView, YearDownloadView
from invoices.pages.sending import InvoiceSendView
from invoices.pages.settlement import (
    InvoiceCreditView,
    InvoicePaidView,
    InvoiceUnpaidView,
    InvoiceVoidView,
)
from invoices.pages.views import (
    InvoiceListView,
    InvoiceNewView,
    InvoicePdfView,
    InvoicePreviewPdfView,
    InvoiceView,
    InvoiceXmlView,
    PreviewView,
)


class LabelConverter(StringConverter):
    """A number: six digits after the year, more only if it does not fit into six."""

    regex = "[0-9]{4}-(?:[0-9]{6}|[1-9][0-9]{6,14})"


class YearConverter(IntConverter):
    """A year of four digits."""

    regex = "[1-9][0-9]{3}"


register_converter(LabelConverter, "label")
register_converter(YearConverter, "invoice_year")


def _year_file(ending: str) -> Any:
    return YearDownloadView.as_view(ending=ending)


urlpatterns = [
    path("", InvoiceListView.as_view(), name="invoice_list"),
    path("new/", InvoiceNewView.as_view(), name="invoice_new"),
    path("<invoice_year:year>.csv", _year_file("csv"), name="invoices_csv"),
    path("<invoice_year:year>.lines.csv", _year_file("lines.csv"), name="invoices_lines"),
    path("<invoice_year:year>.bookings.csv", _year_file("bookings.csv"), name="invoices_bookings"),
    path("<invoice_year:year>.zip", _year_file("zip"), name="invoices_zip"),
    path("new/preview.pdf", InvoicePreviewPdfView.as_view(), name="invoice_preview_pdf"),
    path("preview/", PreviewView.as_view(), name="invoice_preview"),
    path("customers/", CustomerListView.as_view(), name="customer_list"),
    path("customers/names/", CustomerNamesView.as_view(), name="customer_names"),
    path("customers/new/", CustomerNewView.as_view(), name="customer_new"),
    path("customers/<uuid:id>/", CustomerView.as_view(), name="customer"),
    path("customers/<uuid:id>/delete/", CustomerDeleteView.as_view(), name="customer_delete"),
    path("exports/<str:token>/", ExportView.as_view(), name="export"),
    path("exports/<str:token>/file/", ExportFileView.as_view(), name="export_file"),
    path("<label:label>/", InvoiceView.as_view(), name="invoice"),
    path("<label:label>.pdf", InvoicePdfView.as_view(), name="invoice_pdf"),
    path("<label:label>.xml", InvoiceXmlView.as_view(), name="invoice_xml"),
    path("<label:label>/send/", InvoiceSendView.as_view(), name="invoice_send"),
    path("<label:label>/void/", InvoiceVoidView.as_view(), name="invoice_void"),
    path("<label:label>/credit/", InvoiceCreditView.as_view(), name="invoice_credit"),
    path("<label:label>/paid/", InvoicePaidView.as_view(), name="invoice_paid"),
    path("<label:label>/unpaid/", InvoiceUnpaidView.as_view(), name="invoice_unpaid"),
]
