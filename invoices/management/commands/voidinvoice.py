"""`voidinvoice`: the one step that changes an invoice."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from invoices.management.base import InvoiceCommand, as_row, find_account, one_line_errors
from invoices.output.files import as_json
from invoices.store.records import find_invoice
from invoices.store.settlement import VOID_REASON, void


class Command(InvoiceCommand):
    help = (
        "Void an invoice. It keeps its number and shows the reason. WHO may also be the primary "
        "key of a deleted account."
    )
    takes_number = takes_reason = True

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.INVOICES_ALLOW_VOID:
            raise CommandError("INVOICES_ALLOW_VOID is off. Use creditinvoice.")
        with one_line_errors("Reason"):
            reason = VOID_REASON.clean(options["reason"])
        account = find_account(options["user"])
        void(account, options["number"], reason)
        invoice = find_invoice(account, options["number"])
        self.stdout.write(as_json(invoice) if options["json"] else as_row(invoice))
