"""`showinvoice`: one invoice."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from invoices.jsonform import as_full_json
from invoices.management.invoicing import InvoiceCommand, find_account
from invoices.management.output import as_lines
from invoices.records import find_invoice


class Command(InvoiceCommand):
    """Prints all that an invoice says."""

    help = "Show an invoice; WHO may also be the primary key of a deleted account."
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, NUMBER and the form of the answer."""
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        invoice = find_invoice(find_account(options["user"]), options["number"])
        self.stdout.write(as_full_json(invoice) if options["json"] else as_lines(invoice))
