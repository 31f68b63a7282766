"""`invoicexml`: write an invoice as an electronic invoice."""

from django.core.management.base import CommandError

from invoices.document.invoice import Invoice
from invoices.management.base import InvoiceFileCommand
from invoices.output import einvoices


class Command(InvoiceFileCommand):
    help = "Write an invoice as XML by EN 16931 (Factur-X, ZUGFeRD)."

    def content(self, invoice: Invoice) -> bytes:
        if missing := einvoices.missing(invoice):
            raise CommandError(f"The electronic invoice also needs: {'; '.join(missing)}.")
        return einvoices.as_xml(invoice)
