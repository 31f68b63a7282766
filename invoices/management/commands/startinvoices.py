"""`startinvoices`: continue the numbers of another system."""

from django.core.management.base import CommandError

from accounts.services import find_user
from invoices.exceptions import UnknownInvoice
from invoices.management.base import InvoiceCommand
from invoices.store.issuing import start_numbers


class Command(InvoiceCommand):
    help = (
        "Let the first invoice of a year have NUMBER, for an account whose earlier invoices of the "
        "year are in another system. Only before the first invoice of the year."
    )
    takes = ("number",)
    who = "a username, an email address or a primary key"

    def handle(self, *args: object, user: str, number: str, **options: object) -> None:
        try:
            start_numbers(find_user(user).pk, number)
        except UnknownInvoice as error:
            raise CommandError(f"{number} is not a number such as 2026-001001.") from error
        self.tell(f"The first invoice of the year will have the number {number}.")
