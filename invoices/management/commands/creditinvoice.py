"""`creditinvoice`: the credit note that cancels an invoice."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from dynamo import Unavailable
from invoices.management.base import InvoiceCommand, as_row, find_owner, one_line_errors
from invoices.output.files import as_json
from invoices.store.issuing import check_may_issue
from invoices.store.settlement import CREDIT_REASON, credit


class Command(InvoiceCommand):
    help = (
        "Issue the credit note that cancels an invoice, dated today. If the invoice is already "
        "credited, print its credit note. WHO may also be the primary key of a deleted account."
    )
    takes_number = takes_reason = True

    def handle(self, *args: Any, **options: Any) -> None:
        with one_line_errors("Reason"):
            reason = CREDIT_REASON.clean(options["reason"])
        account, user = find_owner(options["user"])
        if user is not None:
            with one_line_errors():
                check_may_issue(user)
        zone = user.time_zone if user else None
        try:
            note = credit(account, options["number"], reason, time_zone=zone)
        except Unavailable as error:
            raise CommandError(
                f"{error} Repeat the command: the credit note is issued only once."
            ) from error
        self.stdout.write(as_json(note) if options["json"] else as_row(note))
