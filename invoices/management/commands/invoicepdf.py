"""`invoicepdf`: an invoice as a PDF file."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from invoices.management.base import InvoiceCommand, find_account
from invoices.printing.pdf import render
from invoices.records import find_invoice


class Command(InvoiceCommand):
    help = "Write an invoice as a PDF. WHO may also be the primary key of a deleted account."
    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "-o", "--output", metavar="FILE", required=True, help="a file, or - for stdout"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        invoice = find_invoice(find_account(options["user"]), options["number"])
        pdf = render(invoice)
        if options["output"] == "-":
            self.stdout.buffer.write(pdf)  # type: ignore[attr-defined]  # of the wrapped stream
            return
        try:
            _write_whole(Path(options["output"]), pdf)
        except OSError as error:
            raise CommandError(f"Cannot write {options['output']}: {error.strerror}.") from error


def _write_whole(path: Path, content: bytes) -> None:
    """Write a temporary file and move it, so that the file is never partly written.

    Something that exists and is not a plain file (a pipe, a device) is written to.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()  # keeps a link, and replaces its target
    temporary = path.with_name(f".{uuid.uuid4().hex}.pdf")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
