"""`listinvoices`: list an account's invoices, newest first, as they are read."""

from itertools import islice

from django.core.management.base import CommandParser

from dynamo import DamagedItem
from dynamo.management.base import positive, unreadable
from invoices.management.base import InvoiceCommand, find_owner
from invoices.store.lists import all_invoices, years_of


class Command(InvoiceCommand):
    help = "List an account's invoices, newest first."
    takes = ("--json",)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--year", type=positive, help="default: all years")
        parser.add_argument("--limit", type=positive, metavar="N", help="list at most N invoices")

    def handle(
        self, *args: object, user: str, year: int | None, limit: int | None, **options: object
    ) -> None:
        """Print each invoice as it is read, and at the end the damaged ones."""
        account, _user = find_owner(user)
        damaged: list[DamagedItem] = []
        years = [year] if year else years_of(account)
        found = (
            invoice for year in years for invoice in all_invoices(account, year, damaged=damaged)
        )
        for invoice in islice(found, limit):
            self.show(invoice, options)
        if damaged:
            raise unreadable("invoice", [error.key for error in damaged])
