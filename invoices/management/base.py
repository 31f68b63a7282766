"""The base of the invoice commands: arguments, the account, one-line errors, invoices as text."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from accounts.exceptions import UnknownUser
from accounts.models import AbstractAccount
from accounts.services import find_user
from dynamo import Unavailable
from dynamo.auth.usernames import as_uuid
from dynamo.management.base import DynamoCommand
from dynamo.management.progress import replacing
from invoices.document.fields import fields_of, words_of
from invoices.document.invoice import Contents, Invoice
from invoices.document.money import plain_amount
from invoices.output.files import as_json
from invoices.store.records import Record, find_invoice

#: The arguments that more than one command takes.
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "number": {"metavar": "NUMBER", "help": "such as 2026-000042"},
    "--reason": {"required": True, "help": "stored with the document"},
    "--request-id": {"help": "repeated with the same id, the command has its effect once"},
    "--json": {"action": "store_true", "help": "print JSON, one object per line"},
}


class InvoiceCommand(DynamoCommand):
    """A command on the invoices of one account, `--user WHO`. `takes` names its other arguments."""

    takes: ClassVar[tuple[str, ...]] = ()
    who = "a username, an email address or a primary key, which may be that of a deleted account"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="WHO", required=True, help=self.who)
        for name in self.takes:
            parser.add_argument(name, **_ARGUMENTS[name])

    def show(self, invoice: Invoice, options: Mapping[str, object]) -> None:
        """Print the invoice: one line, or JSON with `--json`."""
        self.stdout.write(as_json(invoice) if options["json"] else as_row(invoice))


class InvoiceFileCommand(InvoiceCommand):
    """Writes an invoice to a file."""

    takes = ("number",)

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        what = "a file, or - for stdout"
        parser.add_argument("-o", "--output", metavar="FILE", required=True, help=what)

    def content(self, invoice: Invoice) -> bytes:
        """The contents of the file for `invoice`."""
        raise NotImplementedError

    def handle(self, *args: object, user: str, number: str, output: str, **options: object) -> None:
        account, _user = find_owner(user)
        content = self.content(find_invoice(account, number))
        if output == "-":
            self.stdout.buffer.write(content)  # type: ignore[attr-defined]  # the wrapped stream's
            return
        try:
            with replacing(Path(output)) as new:
                new.write_bytes(content)
        except OSError as error:
            raise CommandError(f"Cannot write {output}: {error.strerror}.") from error


@contextmanager
def errors_about(what: str) -> Iterator[None]:
    """Turn a ValidationError of the body into a CommandError that begins with `what`."""
    try:
        yield
    except ValidationError as error:
        raise CommandError(f"{what}: {' '.join(error.messages)}") from error


def request_id_of(options: dict[str, Any], clean: Callable[[str], object]) -> str:
    """`--request-id`, or a random one."""
    asked = options["request_id"]
    with errors_about("Request id"):
        return str(clean(str(uuid.uuid4()) if asked is None else asked))


@contextmanager
def repeatable(how: str) -> Iterator[None]:
    """If DynamoDB does not answer the body, tell the user how to repeat the command safely."""
    try:
        yield
    except Unavailable as error:
        raise CommandError(f"{error} Repeat the command{how} only once.") from error


def find_owner(who: str) -> tuple[str, AbstractAccount | None]:
    """The primary key of an account, and the account, or None if it is deleted.

    Raises:
        UnknownUser: there is no such account, and `who` is not a primary key.
    """
    try:
        user = find_user(who)
    except UnknownUser:
        if pk := as_uuid(who):
            return pk, None
        raise
    return user.pk, user


def as_row(invoice: Invoice) -> str:
    """One line: number, date, total, customer, and whether it is voided or a credit note."""
    state = "  (voided)" if invoice.is_voided else ""
    if invoice.is_credit_note:
        state = f"  (credit note for {invoice.credits})"
    gross = _amount(invoice.totals.gross, invoice)
    return f"{invoice.label}  {invoice.issued_at}  {gross}  {invoice.customer.name}{state}"


def as_text(record: Record) -> str:
    """The contents of the invoice and its later events, in lines of `name: value`."""
    return "\n".join(
        f"{name + ':':<13}{line}"
        for name, text in _named_texts(record)
        for line in text.splitlines()
    )


def _named_texts(record: Record) -> Iterator[tuple[str, str]]:
    invoice = record.invoice
    yield "number", invoice.label
    yield "issued", str(invoice.issued_at)
    yield "status", invoice.status
    yield "void reason", invoice.void_reason
    for role, party in (("seller", invoice.seller), ("customer", invoice.customer)):
        for item in fields_of(type(party)):
            yield role, item.to_text(getattr(party, item.name))
    for line in invoice.lines:
        amount = _amount(line.amount(invoice.currency), invoice)
        terms = f"{line.quantity:f} × {line.unit_price:f} = {amount}, VAT {line.vat_rate:f} %"
        yield "line", f"{line.description}  {terms}"
    yield "net", _amount(invoice.totals.net, invoice)
    for share in invoice.totals.shares:
        yield f"VAT {share.rate:f} %", _amount(share.vat, invoice)
    yield "gross", _amount(invoice.totals.gross, invoice)
    for entry in fields_of(Contents):
        if entry.name != "currency":  # every amount names the currency
            yield words_of(entry), entry.to_text(getattr(invoice, entry.name))
    yield "credited by", record.credit_note
    yield "paid on", str(record.state.paid_on) if record.is_paid else ""


def _amount(amount: int, invoice: Invoice) -> str:
    return f"{plain_amount(amount, invoice.currency)} {invoice.currency}"
