"""`markpaid`: that an invoice is paid, and since when."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from invoices.management.base import InvoiceCommand, find_owner, one_line_errors
from invoices.store.issuing import today
from invoices.store.settlement import PAID_ON, check_paid_on, mark_paid, mark_unpaid


class Command(InvoiceCommand):
    help = (
        "Mark an invoice as paid. Repeated with the same day, it changes nothing. WHO may also be "
        "the primary key of a deleted account."
    )
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--date", help="such as 2026-11-21; default today")
        parser.add_argument(
            "--undo", action="store_true", help="remove the mark that has this --date"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account, user = find_owner(options["user"])
        day = now = today(user.time_zone if user else None)
        with one_line_errors("Date"):
            if options["date"] is not None:
                day = check_paid_on(PAID_ON.clean(options["date"]), now)
        label = options["number"]
        if options["undo"]:
            mark_unpaid(account, label, day)
            self.stdout.write(f"{label} is not marked as paid.")
        else:
            mark_paid(account, label, day)
            self.stdout.write(f"{label} is marked as paid on {day}.")
