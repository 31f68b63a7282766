"""`showinvoice`: everything an invoice says."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from invoices.management.base import InvoiceCommand, as_text, find_account
from invoices.output.files import as_full_json
from invoices.store.records import find_record


class Command(InvoiceCommand):
    help = (
        "Show an invoice, and whether it is paid or credited. WHO may also be the primary key of a "
        "deleted account."
    )
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        record = find_record(find_account(options["user"]), options["number"])
        self.stdout.write(as_full_json(record) if options["json"] else as_text(record))
