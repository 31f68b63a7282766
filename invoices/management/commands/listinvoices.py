"""`listinvoices`: an account's invoices, newest first, as they are read."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.core.management.base import CommandParser

from dynamo.exceptions import DamagedItem
from dynamo.terminal import positive, unreadable
from invoices.jsonform import as_json
from invoices.management.invoicing import InvoiceCommand, find_account
from invoices.management.output import as_row
from invoices.records import all_invoices
from invoices.years import years_of


class Command(InvoiceCommand):
    """Streams the invoices of a year, or of every year that has some."""

    help = "List an account's invoices; WHO may also be the primary key of a deleted account."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, which and how many, and the form of the answer."""
        super().add_arguments(parser)
        parser.add_argument("--year", type=positive, help="default: all years")
        parser.add_argument("--limit", type=positive, help="stop after so many")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each as it comes; at the end, complain of those that cannot be read."""
        account = find_account(options["user"])
        years = [options["year"]] if options["year"] else years_of(account)
        shape = as_json if options["json"] else as_row
        damaged: list[DamagedItem] = []
        invoices = (
            invoice for year in years for invoice in all_invoices(account, year, damaged=damaged)
        )
        for invoice in islice(invoices, options["limit"]):
            self.stdout.write(shape(invoice))
        if damaged:
            raise unreadable("invoice", [error.key for error in damaged])
