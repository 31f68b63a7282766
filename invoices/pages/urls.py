"""The URLs of the pages of invoices. A number has its printed form: `2026-000042`."""

from django.urls import path, register_converter
from django.urls.converters import IntConverter, StringConverter

from invoices.pages import changes, customers, downloads, new, seller, views


class LabelConverter(StringConverter):
    """The number of an invoice: the year, and at least six digits without further zeros."""

    regex = "[0-9]{4}-(?:[0-9]{6}|[1-9][0-9]{6,14})"


class YearConverter(IntConverter):
    """A year of four digits."""

    regex = "[1-9][0-9]{3}"


register_converter(LabelConverter, "label")
register_converter(YearConverter, "invoice_year")


urlpatterns = [
    path("", views.InvoiceListView.as_view(), name="invoice_list"),
    path("new/", new.InvoiceNewView.as_view(), name="invoice_new"),
    *(
        path(
            f"<invoice_year:year>.{ending}",
            downloads.YearDownloadView.as_view(ending=ending),
            name=name,
        )
        for ending, name in downloads.YEAR_URLS.items()
    ),
    path("new/preview/", new.InvoiceNewPreviewView.as_view(), name="invoice_new_preview"),
    path("new/preview.pdf", new.InvoicePreviewPdfView.as_view(), name="invoice_preview_pdf"),
    path("preview/", new.PreviewView.as_view(), name="invoice_preview"),
    path("seller/", seller.SellerView.as_view(), name="seller"),
    path("seller/payment/", seller.PaymentView.as_view(), name="seller_payment"),
    path("customers/", customers.CustomerListView.as_view(), name="customer_list"),
    path("customers/names/", customers.CustomerNamesView.as_view(), name="customer_names"),
    path("customers/new/", customers.CustomerNewView.as_view(), name="customer_new"),
    path("customers/<uuid:id>/", customers.CustomerView.as_view(), name="customer"),
    path(
        "customers/<uuid:id>/delete/",
        customers.CustomerDeleteView.as_view(),
        name="customer_delete",
    ),
    path("exports/<uuid:id>/", downloads.ExportView.as_view(), name="export"),
    path("exports/<uuid:id>/file/", downloads.ExportFileView.as_view(), name="export_file"),
    path("<label:label>/", views.InvoiceView.as_view(), name="invoice"),
    path("<label:label>.pdf", views.InvoicePdfView.as_view(), name="invoice_pdf"),
    path("<label:label>.xml", views.InvoiceXmlView.as_view(), name="invoice_xml"),
    path("<label:label>/send/", changes.InvoiceSendView.as_view(), name="invoice_send"),
    path("<label:label>/void/", changes.InvoiceVoidView.as_view(), name="invoice_void"),
    path("<label:label>/credit/", changes.InvoiceCreditView.as_view(), name="invoice_credit"),
    path("<label:label>/paid/", changes.InvoicePaidView.as_view(), name="invoice_paid"),
    path("<label:label>/unpaid/", changes.InvoiceUnpaidView.as_view(), name="invoice_unpaid"),
]
