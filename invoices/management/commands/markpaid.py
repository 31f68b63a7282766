"""`markpaid`: record that an invoice is paid, and the day."""

from typing import Any

from django.core.management.base import CommandParser

from invoices.management.base import InvoiceCommand, errors_about, find_owner
from invoices.store.issuing import today
from invoices.store.settlement import PAID_ON, check_paid_on, mark_paid, mark_unpaid


class Command(InvoiceCommand):
    help = "Mark an invoice as paid. Repeated with the same day, it changes nothing."
    takes = ("number",)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--date", help="such as 2026-11-21; default today")
        undo = "remove the mark that has this --date"
        parser.add_argument("--undo", action="store_true", help=undo)

    def handle(self, *args: object, **options: Any) -> None:
        account, user = find_owner(options["user"])
        day = now = today(user.time_zone if user else None)
        if options["date"] is not None:
            with errors_about("Date"):
                day = check_paid_on(PAID_ON.clean(options["date"]), now)
        label = options["number"]
        if options["undo"]:
            mark_unpaid(account, label, day)
            self.tell(f"{label} is not marked as paid.")
        else:
            mark_paid(account, label, day)
            self.tell(f"{label} is marked as paid on {day}.")
