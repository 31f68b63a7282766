"""`showinvoice`: everything an invoice says."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from invoices.exports import as_full_json
from invoices.management.base import InvoiceCommand, as_text, find_account
from invoices.records import find_invoice


class Command(InvoiceCommand):
    help = "Show an invoice. WHO may also be the primary key of a deleted account."
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        invoice = find_invoice(find_account(options["user"]), options["number"])
        self.stdout.write(as_full_json(invoice) if options["json"] else as_text(invoice))
