"""What the invoice commands share: finding the account, one-line errors, invoices as text."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.exceptions import UnknownUser
from accounts.models import User
from accounts.services import find_user
from dynamo.auth.usernames import as_uuid
from dynamo.management.base import DynamoCommand
from invoices.document.fields import fields_of
from invoices.document.invoice import Contents, Invoice, Party
from invoices.document.money import plain_amount
from invoices.store.records import Record, find_invoice


class InvoiceCommand(DynamoCommand):
    """A command on the invoices of one account, `--user WHO`."""

    #: Whether it takes the number of an invoice.
    takes_number = False
    #: Whether it changes an invoice for a reason, and prints the result.
    takes_reason = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--user",
            metavar="WHO",
            required=True,
            help="a username, an email address or a primary key",
        )
        if self.takes_number:
            parser.add_argument("number", metavar="NUMBER", help="such as 2026-000042")
        if self.takes_reason:
            parser.add_argument("--reason", required=True)
            parser.add_argument("--json", action="store_true")


class InvoiceFileCommand(InvoiceCommand):
    """Writes an invoice to a file."""

    takes_number = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "-o", "--output", metavar="FILE", required=True, help="a file, or - for stdout"
        )

    def content(self, invoice: Invoice) -> bytes:
        """What the file contains."""
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        content = self.content(find_invoice(find_account(options["user"]), options["number"]))
        if options["output"] == "-":
            self.stdout.buffer.write(content)  # type: ignore[attr-defined]  # the wrapped stream's
            return
        try:
            _write_whole(Path(options["output"]), content)
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
    temporary = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def one_line_errors(about: str = "") -> Iterator[None]:
    """Turn what is not allowed into one line on stderr, which begins with `about`; exit code 1."""
    prefix = f"{about}: " if about else ""
    try:
        yield
    except ValidationError as error:
        raise CommandError(f"{prefix}{' '.join(error.messages)}") from error
    except UnknownUser as error:
        raise CommandError(str(error)) from error


def find_account(who: str) -> str:
    """The primary key of an account, which may be deleted: its invoices stay.

    Raises:
        CommandError: there is no such account, and `who` is not a primary key.
    """
    return find_owner(who)[0]


def find_owner(who: str) -> tuple[str, User | None]:
    """The primary key of an account, and the account unless it is deleted.

    Raises:
        CommandError: as `find_account`.
    """
    try:
        user = find_user(who)
    except UnknownUser as error:
        if pk := as_uuid(who):
            return pk, None
        raise CommandError(str(error)) from error
    return user.pk, user


def as_row(invoice: Invoice) -> str:
    """One line: number, date, total, customer, and whether it is voided or a credit note."""
    state = "  (voided)" if invoice.is_voided else ""
    if invoice.is_credit_note:
        state = f"  (credit note for {invoice.credits})"
    return (
        f"{invoice.label}  {invoice.issued_at}  {_amount(invoice.totals.gross, invoice)}  "
        f"{invoice.customer.name}{state}"
    )


def as_text(record: Record) -> str:
    """Everything the invoice says and what became of it, in lines of `name: value`."""
    values = [*_named_values(record.invoice), *_named_events(record)]
    return "\n".join(f"{name + ':':<13}{value}" for name, value in values if value)


def _named_events(record: Record) -> Iterator[tuple[str, str]]:
    yield "credited by", record.credit_note
    if record.is_paid:
        yield "paid on", str(record.state.paid_on)


def _named_values(invoice: Invoice) -> Iterator[tuple[str, str]]:
    yield "number", invoice.label
    yield "issued", str(invoice.issued_at)
    yield "status", invoice.status
    yield "void reason", invoice.void_reason
    yield from _party_lines("seller", invoice.seller)
    yield from _party_lines("customer", invoice.customer)
    for line in invoice.lines:
        amount = _amount(line.amount(invoice.currency), invoice)
        yield (
            "line",
            f"{line.description}  {line.quantity:f} × {line.unit_price:f} = {amount}, "
            f"VAT {line.vat_rate:f} %",
        )
    yield "net", _amount(invoice.totals.net, invoice)
    for share in invoice.totals.shares:
        yield f"VAT {share.rate:f} %", _amount(share.vat, invoice)
    yield "gross", _amount(invoice.totals.gross, invoice)
    for each in fields_of(Contents):
        if each.name != "currency":  # every amount names it
            for text in each.to_text(getattr(invoice, each.name)).splitlines():
                yield each.words, text


def _party_lines(role: str, party: Party) -> Iterator[tuple[str, str]]:
    for each in fields_of(type(party)):
        for text in each.to_text(getattr(party, each.name)).splitlines():
            yield role, text


def _amount(amount: int, invoice: Invoice) -> str:
    return f"{plain_amount(amount, invoice.currency)} {invoice.currency}"
