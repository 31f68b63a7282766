"""`listinvoices`: an account's invoices, newest first, as they are read."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.core.management.base import CommandParser

from dynamo import DamagedItem
from dynamo.management.base import positive, unreadable
from invoices.management.base import InvoiceCommand, as_row, find_account
from invoices.output.files import as_json
from invoices.store.lists import all_invoices, years_of


class Command(InvoiceCommand):
    help = "List an account's invoices. WHO may also be the primary key of a deleted account."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--year", type=positive, help="default: all years")
        parser.add_argument("--limit", type=positive, metavar="N", help="list at most N invoices")
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each invoice as it is read, and at the end the damaged ones."""
        account = find_account(options["user"])
        years = [options["year"]] if options["year"] else years_of(account)
        line_of = as_json if options["json"] else as_row
        damaged: list[DamagedItem] = []
        invoices = (
            invoice for year in years for invoice in all_invoices(account, year, damaged=damaged)
        )
        for invoice in islice(invoices, options["limit"]):
            self.stdout.write(line_of(invoice))
        if damaged:
            raise unreadable("invoice", [error.key for error in damaged])
