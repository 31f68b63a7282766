"""`invoicepdf`: an invoice as a PDF file."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from invoices.management.invoicing import InvoiceCommand, find_account
from invoices.pdf import render
from invoices.records import find_invoice


class Command(InvoiceCommand):
    """Writes the same bytes each time while the invoice's status is the same."""

    help = "Write an invoice as a PDF; WHO may also be the primary key of a deleted account."
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        """Take WHO, NUMBER and where to write."""
        super().add_arguments(parser)
        parser.add_argument(
            "-o", "--output", metavar="FILE", required=True, help="a file, or - for stdout"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it."""
        invoice = find_invoice(find_account(options["user"]), options["number"])
        pdf = render(invoice)
        if options["output"] == "-":
            self.stdout.buffer.write(pdf)  # type: ignore[attr-defined]  # of what it wraps
            return
        try:
            _write_whole(Path(options["output"]), pdf)
        except OSError as error:
            raise CommandError(f"Cannot write {options['output']}: {error.strerror}.") from error


def _write_whole(path: Path, content: bytes) -> None:
    """Let the file be as it was, or whole: it is written beside its place and moved there.

    What is there and no plain file (a pipe, a device) is written to.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()  # a link stays one
    beside = path.with_name(f".{uuid.uuid4().hex}.pdf")
    try:
        with beside.open("xb") as file:
            file.write(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
