"""`invoicepdf`: write an invoice as a PDF file."""

from invoices.document.invoice import Invoice
from invoices.management.base import InvoiceFileCommand
from invoices.output.pdf import render


class Command(InvoiceFileCommand):
    help = "Write an invoice as a PDF."

    def content(self, invoice: Invoice) -> bytes:
        return render(invoice)
