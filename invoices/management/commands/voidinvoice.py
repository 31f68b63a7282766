"""`voidinvoice`: the one step that changes an invoice."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from invoices import rules
from invoices.jsonform import as_json
from invoices.management.invoicing import InvoiceCommand, find_account, said_plainly
from invoices.management.output import as_row
from invoices.records import void


class Command(InvoiceCommand):
    """Voids an invoice, with a reason; it keeps its number."""

    help = (
        "Void an invoice: it keeps its number and says why. WHO may also be the primary key of a "
        "deleted account."
    )
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, NUMBER and the reason."""
        super().add_arguments(parser)
        parser.add_argument("--reason", required=True)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Void it and print it."""
        with said_plainly("Reason"):
            reason = rules.clean_reason(options["reason"])
        invoice = void(find_account(options["user"]), options["number"], reason)
        self.stdout.write(as_json(invoice) if options["json"] else as_row(invoice))
