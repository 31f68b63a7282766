"""Invoices for programs: JSON, and files of many invoices, which are made while they are sent."""

import csv
import io
import json
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import Any

from accounts.models import AbstractAccount
from accounts.personal_data import account_of, by_stored_name, exported_by_apps, sessions_of
from invoices.document.amounts import Line, VatShare
from invoices.document.fields import fields_of, words_of
from invoices.document.invoice import Contents, Invoice, Party
from invoices.document.money import plain_amount
from invoices.models import SELLER_VALUES
from invoices.output.pdf import pdf_of
from invoices.store.customers import all_customers
from invoices.store.lists import all_records, years_of
from invoices.store.records import Record
from invoices.store.sellers import profile_of

#: The typed fields of an invoice whose columns come after the others, new ones included.
_MORE_FIELDS = [
    item
    for item in fields_of(Contents)
    if item.is_typed and item.name not in {"currency", "due_date"}
]

_BYTE_ORDER_MARK = "\N{BYTE ORDER MARK}".encode()

# Spreadsheets calculate text that begins with these characters; Japanese ones also with their
# full-width forms. https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
# Before them, characters of these Unicode categories (controls, marks, spaces) are skipped, and
# some letters and symbols that are blank.
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
    """The contents of the invoice and its later events, as one JSON object.

    `paidOn` is included if the invoice is paid, and `creditedBy`, the number of the credit note, if
    it is credited. Records of lists have no `creditedBy`; there the credit note has `credits`.
    """
    invoice = record.invoice
    amount = "gross" if invoice.prices_include_tax else "net"
    events = {"paidOn": record.state.paid_on, "creditedBy": record.credit_note}
    shown = _summary(invoice) | {
        "seller": _values(invoice.seller),
        "customer": _values(invoice.customer),
        "lines": [
            _values(line) | {amount: line.amount(invoice.currency)} for line in invoice.lines
        ],
        "vatShares": [
            _values(share) | {"taxCategory": share.category} for share in invoice.totals.shares
        ],
        **_values(invoice),
        **{name: value for name, value in events.items() if value},
    }
    return _dumped(shown)


def account_as_json(user: AbstractAccount) -> Iterator[bytes]:
    """All data of an account as one JSON document in UTF-8, in pieces.

        {"account": {...},
        "sessions": [...],
        "seller": {...},
        …, what other apps store (`account_exporting`)
        "invoices": [
        {...},
        {...}
        ],
        "customers": [
        {...}
        ]}

    The first invoice is read at once. If DynamoDB stops answering later, the document ends early
    and is not valid JSON. Memory holds one page of invoices and one of states (1 MB each).

    Costs 7 requests and 261 read units to find the years and the seller, then 2 requests for each
    year, 1 for the customers and 1 for each further MB, and 1 read unit per 4 KB.
    """
    records = (
        record for year in sorted(years_of(user.pk)) for record in all_records(user.pk, year)
    )
    return _account_pieces(user, chain(list(islice(records, 1)), records))


def _account_pieces(user: AbstractAccount, records: Iterable[Record]) -> Iterator[bytes]:
    yield f'{{"account": {_dumped(account_of(user))},\n'.encode()
    yield f'"sessions": {_dumped(sessions_of(user))},\n'.encode()
    yield f'"seller": {_dumped(by_stored_name(profile_of(user.pk), SELLER_VALUES))},\n'.encode()
    for name, part in exported_by_apps(user).items():
        yield f'"{name}": {_dumped(part)},\n'.encode()
    yield b'"invoices": ['
    yield from _elements(map(as_full_json, records))
    yield b',\n"customers": ['
    yield from _elements(_dumped(_values(customer)) for customer in all_customers(user.pk))
    yield b"}\n"


def _elements(values: Iterable[str]) -> Iterator[bytes]:
    """The rest of a JSON array."""
    separator = "\n"
    for value in values:
        yield f"{separator}{value}".encode()
        separator = ",\n"
    yield b"\n]"


def _summary(invoice: Invoice) -> dict[str, object]:
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


def _values(part: Party | Line | VatShare | Invoice) -> dict[str, object]:
    return {item.attr_name: getattr(part, item.name) for item in fields_of(type(part))}


def _dumped(shown: object) -> str:
    return json.dumps(shown, default=_json_text, ensure_ascii=False)


def _json_text(value: object) -> str:
    """Dates are in ISO 8601. Decimals are texts, so that readers do not convert them to floats."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{value!r} has no JSON form")


# Files of a year ---------------------------------------------------------------------------------


Row = dict[str, object]


def _table(
    rows_of: Callable[[Record], Iterable[Row]], records: Iterable[Record]
) -> Iterator[bytes]:
    """The rows of each record, whose keys are the headings.

    CSV with commas and CRLF, in UTF-8 with a byte order mark. Without the mark, Excel would assume
    a legacy encoding. Amounts are plain decimals (`-1234.50`). A text that a spreadsheet would
    calculate gets an apostrophe in front.
    """
    for count, row in enumerate(chain.from_iterable(map(rows_of, records))):
        if not count:
            yield _BYTE_ORDER_MARK + _line(row)
        yield _line(map(_cell, row.values()))


def _line(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return _as_text(value) if isinstance(value, str) else _json_text(value)


def _invoice_rows(record: Record) -> Iterator[Row]:
    """The invoice. `status` is its own (issued or voided), `state` is one of `STANDINGS`."""
    invoice, totals = record.invoice, record.invoice.totals
    yield {
        "number": invoice.label,
        "date": invoice.issued_at,
        "status": invoice.status,
        "customer": invoice.customer.name,
        "currency": invoice.currency,
        **_amounts(invoice, net=totals.net, vat=totals.vat, gross=totals.gross),
        "void reason": invoice.void_reason,
        "state": record.standing,
        "paid on": record.state.paid_on,
        "due date": invoice.due_date,
        **{words_of(field): field.to_text(getattr(invoice, field.name)) for field in _MORE_FIELDS},
    }


def _line_rows(record: Record) -> Iterator[Row]:
    """The rows of each line.

    Net amounts add up to the net total of the invoice, also if prices include tax."""
    invoice = record.invoice
    for number, (line, net) in enumerate(zip(invoice.lines, invoice.line_nets(), strict=True), 1):
        yield {
            **_document(invoice),
            "line": str(number),
            "description": line.description,
            "quantity": line.quantity,
            "unit price": line.unit_price,
            "tax category": line.category,
            "VAT rate": line.vat_rate,
            **_amounts(invoice, net=net),
            "unit": line.unit,
        }


def _booking_rows(record: Record) -> Iterator[Row]:
    """Each tax category and rate, for the import into accounting programs.

    The amounts of a voided invoice are 0, and its row is kept, so that the numbers are complete.
    Credit notes have negative amounts.
    """
    invoice = record.invoice
    factor = 0 if invoice.is_voided else 1
    for share in invoice.totals.shares:
        net = factor * share.net
        vat = factor * share.vat
        yield {
            **_document(invoice),
            "supplied from": invoice.supplied_from,
            "supplied to": invoice.supplied_to,
            "due date": invoice.due_date,
            "tax category": share.category,
            "VAT rate": share.rate,
            **_amounts(invoice, net=net, VAT=vat, gross=net + vat),
        }


def _document(invoice: Invoice) -> Row:
    """The columns about the document in the rows of lines and of bookings."""
    return {
        "number": invoice.label,
        "date": invoice.issued_at,
        "type": "credit note" if invoice.is_credit_note else "invoice",
        "credits": invoice.credits,
        "status": invoice.status,
        "customer": invoice.customer.name,
        "customer number": invoice.customer.number,
        "customer country": invoice.customer.country,
        "customer VAT ID": invoice.customer.vat_id,
        "currency": invoice.currency,
    }


def _amounts(invoice: Invoice, **amounts: int) -> Row:
    """Amounts with the decimals of the currency."""
    return {
        name: Decimal(plain_amount(amount, invoice.currency)) for name, amount in amounts.items()
    }


def as_zip(records: Iterable[Record]) -> Iterator[bytes]:
    """A ZIP of the PDFs, each named `2026-000042.pdf` and dated by the issue date.

    The same invoices give the same bytes. After a PDF was sent, only its entry of the directory
    remains in memory.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for invoice in (record.invoice for record in records):
            archive.writestr(_entry(invoice), pdf_of(invoice, keep=False))
            yield sink.take()
    yield sink.take()


#: The files of a year, by the ending of their name.
YEAR_FILES: dict[str, Callable[[Iterable[Record]], Iterator[bytes]]] = {
    "csv": partial(_table, _invoice_rows),
    "lines.csv": partial(_table, _line_rows),
    "bookings.csv": partial(_table, _booking_rows),
    "zip": as_zip,
}


class _Sink(io.RawIOBase):
    """Collects what a ZipFile writes until it is taken. This stream cannot seek."""

    _written = b""

    def write(self, piece: Any) -> int:
        self._written += piece
        return len(piece)

    def take(self) -> bytes:
        """The bytes that were written since the last call."""
        piece, self._written = self._written, b""
        return piece


def _entry(invoice: Invoice) -> zipfile.ZipInfo:
    day = invoice.issued_at
    moment = (max(day.year, _ZIP_FIRST_YEAR), day.month, day.day, 0, 0, 0)
    entry = zipfile.ZipInfo(f"{invoice.label}.pdf", moment)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _READABLE_BY_ALL
    return entry


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
