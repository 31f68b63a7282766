"""`creditinvoice`: issue the credit note that cancels an invoice."""

from typing import Any

from invoices.management.base import InvoiceCommand, errors_about, find_owner, repeatable
from invoices.store.issuing import check_may_issue
from invoices.store.settlement import credit


class Command(InvoiceCommand):
    help = (
        "Issue the credit note that cancels an invoice, dated today. If the invoice is already "
        "credited, print its credit note."
    )
    takes = ("number", "--reason", "--json")

    def handle(self, *args: object, **options: Any) -> None:
        account, user = find_owner(options["user"])
        if user:
            check_may_issue(user)
        zone = user.time_zone if user else None
        with errors_about("Reason"), repeatable(": the credit note is issued"):
            note = credit(account, options["number"], options["reason"], time_zone=zone)
        self.show(note, options)
