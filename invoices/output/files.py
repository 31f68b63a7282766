"""Invoices for programs: JSON, and files of many invoices, which are made while they are sent."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any

from accounts.models import User
from accounts.personal_data import account_of, sessions_of
from invoices.document.amounts import Line, VatShare
from invoices.document.fields import fields_of
from invoices.document.invoice import Contents, Invoice, Party
from invoices.document.money import plain_amount
from invoices.output.typesetting import pdf_of
from invoices.store.customers import all_customers
from invoices.store.lists import all_records, years_of
from invoices.store.records import Record

#: The fields that had no column when they were released. Each newer one has, after the others.
_WITHOUT_COLUMN = {
    *("currency", "note", "prices_include_tax", "supplied_from", "supplied_to", "due_date"),
    *("payment_terms", "buyer_reference", "exemption_reason"),
}
_NEW_FIELDS = [
    each for each in fields_of(Contents) if each.is_typed and each.name not in _WITHOUT_COLUMN
]

COLUMNS = (
    *("number", "date", "status", "customer", "currency", "net", "vat", "gross", "void reason"),
    *("state", "paid on", "due date"),
    *(each.words for each in _NEW_FIELDS),
)
#: What the tables of lines and of bookings say about the document of a row.
DOCUMENT_COLUMNS = (
    *("number", "date", "type", "credits", "status", "customer", "customer number"),
    *("customer country", "customer VAT ID", "currency"),
)
LINE_COLUMNS = (
    *DOCUMENT_COLUMNS,
    *("line", "description", "quantity", "unit price", "tax category", "VAT rate", "net"),
    "unit",
)
BOOKING_COLUMNS = (
    *(*DOCUMENT_COLUMNS, "supplied from", "supplied to", "due date"),
    *("tax category", "VAT rate", "net", "VAT", "gross"),
)

_BYTE_ORDER_MARK = "\N{BYTE ORDER MARK}".encode()

# Text that a spreadsheet would take for a formula begins with these characters, in Japanese
# spreadsheets also with their full-width forms.
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
# Characters of these Unicode categories (controls, marks, spaces) are skipped before them, and some
# letters and symbols that are blank.
_SKIPPED = frozenset("CMZ")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")
# The first year that a ZIP can store.
_ZIP_FIRST_YEAR = 1980
_READABLE_BY_ALL = 0o644 << 16


# JSON --------------------------------------------------------------------------------------------


def as_json(invoice: Invoice) -> str:
    """Number, totals and status as one JSON object. Amounts are in minor units."""
    return _dumped(_summary(invoice))


def as_full_json(record: Record) -> str:
    """Everything the invoice says, and what became of it, as one JSON object.

    `paidOn`, and `creditedBy`, the number of the credit note, are there only if it is so. Records
    of lists do not know `creditedBy`; there the credit note has `credits`.
    """
    events = {"paidOn": record.state.paid_on, "creditedBy": record.credit_note}
    happened = {name: value for name, value in events.items() if value}
    return _dumped(_full(record.invoice) | happened)


def _full(invoice: Invoice) -> dict[str, Any]:
    amount = "gross" if invoice.prices_include_tax else "net"
    return _summary(invoice) | {
        "seller": _values(invoice.seller),
        "customer": _values(invoice.customer),
        "lines": [
            _values(line) | {amount: line.amount(invoice.currency)} for line in invoice.lines
        ],
        "vatShares": [
            _values(share) | {"taxCategory": share.category} for share in invoice.totals.shares
        ],
        **_values(invoice),
    }


def account_as_json(user: User) -> Iterator[bytes]:
    """All data of an account as one JSON document in UTF-8, in pieces.

        {"account": {...},
        "sessions": [...],
        "invoices": [
        {...},
        {...}
        ],
        "customers": [
        {...}
        ]}

    The first invoice is read at once. If DynamoDB stops answering later, the document ends early
    and is not valid JSON. Memory holds one page of invoices and one of states (1 MB each).

    Costs 6 requests and 260 read units to find the years, then 2 requests for each year, 1 for the
    customers and 1 for each further MB, and 1 read unit per 4 KB.
    """
    records = (
        record for year in sorted(years_of(user.pk)) for record in all_records(user.pk, year)
    )
    first = next(records, None)
    return _account_pieces(user, [] if first is None else chain([first], records))


def _account_pieces(user: User, records: Iterable[Record]) -> Iterator[bytes]:
    yield f'{{"account": {_dumped(account_of(user))},\n'.encode()
    yield f'"sessions": {_dumped(sessions_of(user))},\n'.encode()
    yield b'"invoices": ['
    yield from _elements(map(as_full_json, records))
    yield b',\n"customers": ['
    yield from _elements(_dumped(_values(each)) for each in all_customers(user.pk))
    yield b"}\n"


def _elements(values: Iterable[str]) -> Iterator[bytes]:
    """The rest of a JSON array."""
    separator = "\n"
    for value in values:
        yield f"{separator}{value}".encode()
        separator = ",\n"
    yield b"\n]"


def _summary(invoice: Invoice) -> dict[str, Any]:
    return {
        "number": invoice.label,
        "series": invoice.series,
        "net": invoice.totals.net,
        "vat": invoice.totals.vat,
        "gross": invoice.totals.gross,
        "currency": invoice.currency,
        "issuedAt": invoice.issued_at,
        "status": invoice.status,
    } | ({"credits": invoice.credits} if invoice.is_credit_note else {})


def _values(part: Party | Line | VatShare | Invoice) -> dict[str, Any]:
    return {each.stored_as(): getattr(part, each.name) for each in fields_of(type(part))}


def _dumped(shown: Any) -> str:
    return json.dumps(shown, default=_json_text, ensure_ascii=False)


def _json_text(value: Any) -> str:
    """Dates in ISO 8601. Decimals as text, so that readers do not make floats of them."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON form")


# Files of a year ---------------------------------------------------------------------------------


def as_csv(records: Iterable[Record]) -> Iterator[bytes]:
    """A row for each invoice, with the columns of `COLUMNS`; the format of all tables here.

    `status` is that of the invoice itself (issued or voided), `state` one of `STANDINGS`.

    Commas, CRLF, UTF-8 with a byte order mark, without which Excel would read a legacy encoding.
    Amounts are plain decimals (`-1234.50`). A text that a spreadsheet would calculate gets an
    apostrophe in front.
    """
    yield _BYTE_ORDER_MARK + _row(COLUMNS)
    for record in records:
        invoice = record.invoice
        totals, currency = invoice.totals, invoice.currency
        yield _row(
            (
                invoice.label,
                invoice.issued_at.isoformat(),
                invoice.status,
                _as_text(invoice.customer.name),
                _as_text(currency),
                *(plain_amount(sum_, currency) for sum_ in (totals.net, totals.vat, totals.gross)),
                _as_text(invoice.void_reason),
                record.standing,
                _as_day(record.state.paid_on),
                _as_day(invoice.due_date),
                *(_as_text(each.to_text(getattr(invoice, each.name))) for each in _NEW_FIELDS),
            )
        )


def as_lines_csv(records: Iterable[Record]) -> Iterator[bytes]:
    """A row for each line of each invoice, with its tax category and rate: `LINE_COLUMNS`.

    The net amounts of an invoice's lines add up to its net total, also if prices include tax.
    """
    yield _BYTE_ORDER_MARK + _row(LINE_COLUMNS)
    for invoice in (record.invoice for record in records):
        document = _document_cells(invoice)
        for number, (line, net) in enumerate(
            zip(invoice.lines, invoice.line_nets(), strict=True), 1
        ):
            yield _row(
                (
                    *document,
                    str(number),
                    _as_text(line.description),
                    f"{line.quantity:f}",
                    f"{line.unit_price:f}",
                    line.category,
                    f"{line.vat_rate:f}",
                    plain_amount(net, invoice.currency),
                    line.unit,
                )
            )


def as_bookings_csv(records: Iterable[Record]) -> Iterator[bytes]:
    """A row for each tax category and rate of each invoice: `BOOKING_COLUMNS`.

    For the import into accounting programs. The amounts of a voided invoice are 0, and its row
    stays, so that the numbers are complete. Credit notes have negative amounts.
    """
    yield _BYTE_ORDER_MARK + _row(BOOKING_COLUMNS)
    for invoice in (record.invoice for record in records):
        document = _document_cells(invoice)
        factor = 0 if invoice.is_voided else 1
        for share in invoice.totals.shares:
            amounts = (share.net, share.vat, share.net + share.vat)
            yield _row(
                (
                    *document,
                    *(_as_day(day) for day in (invoice.supplied_from, invoice.supplied_to)),
                    _as_day(invoice.due_date),
                    share.category,
                    f"{share.rate:f}",
                    *(plain_amount(factor * each, invoice.currency) for each in amounts),
                )
            )


def _document_cells(invoice: Invoice) -> tuple[str, ...]:
    """The cells of `DOCUMENT_COLUMNS`."""
    customer = invoice.customer
    return (
        invoice.label,
        invoice.issued_at.isoformat(),
        "credit note" if invoice.is_credit_note else "invoice",
        invoice.credits,
        invoice.status,
        *map(_as_text, (customer.name, customer.number, customer.country, customer.vat_id)),
        _as_text(invoice.currency),
    )


def _as_day(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def as_zip(records: Iterable[Record]) -> Iterator[bytes]:
    """A ZIP of the PDFs, each named `2026-000042.pdf` and dated by the issue date.

    The same invoices give the same bytes. Of a PDF that was sent, only its entry of the directory
    stays in memory.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for invoice in (record.invoice for record in records):
            archive.writestr(_entry(invoice), pdf_of(invoice, keep=False))
            yield sink.take()
    yield sink.take()


#: The files of a year, by the ending of their name.
YEAR_FILES: dict[str, Callable[[Iterable[Record]], Iterator[bytes]]] = {
    "csv": as_csv,
    "lines.csv": as_lines_csv,
    "bookings.csv": as_bookings_csv,
    "zip": as_zip,
}


class _Sink(io.RawIOBase):
    """Collects what a ZipFile writes until it is taken. It cannot seek."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: object) -> int:
        before = len(self._written)
        self._written += memoryview(piece)  # type: ignore[arg-type]  # any buffer
        return len(self._written) - before

    def take(self) -> bytes:
        """What was written since the last call."""
        piece = bytes(self._written)
        self._written.clear()
        return piece


def _entry(invoice: Invoice) -> zipfile.ZipInfo:
    day = invoice.issued_at
    moment = (max(day.year, _ZIP_FIRST_YEAR), day.month, day.day, 0, 0, 0)
    entry = zipfile.ZipInfo(f"{invoice.label}.pdf", moment)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _READABLE_BY_ALL
    return entry


def _row(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def _as_text(text: str) -> str:
    # Where the decimal point is a comma, Excel begins a cell at each semicolon, even in quotes.
    return ";".join(f"'{cell}" if _is_formula(cell) else cell for cell in text.split(";"))


def _is_formula(cell: str) -> bool:
    visible = (
        char
        for char in cell
        if unicodedata.category(char)[0] not in _SKIPPED and char not in _BLANK
    )
    return cell.startswith(("\t", "\r", "\n")) or next(visible, "") in _FORMULA
