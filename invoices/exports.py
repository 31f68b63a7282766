"""Many invoices as one file, made while it is sent: one invoice in memory at a time."""

from __future__ import annotations

import csv
import io
import re
import threading
import zipfile
from collections.abc import Iterable, Iterator

from dynamo.processes import PerProcess
from invoices.documents import Invoice
from invoices.money import plain_amount
from invoices.pdf import render

COLUMNS = (
    "number",
    "date",
    "status",
    "customer",
    "currency",
    "net",
    "vat",
    "gross",
    "void reason",
)

# What spreadsheets take for a formula: these signs, in Japanese ones also the full-width forms
# (U+FF0B and so on). Where the decimal point is a comma, Excel begins a cell at each semicolon, in
# quotes or not. https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = re.compile(r"(^|;)(?=[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
# The first year that a ZIP can write.
_ZIP_BEGINS = 1980
_READABLE_BY_ALL = 0o644 << 16

_drawing = PerProcess(threading.Lock)


def as_csv(invoices: Iterable[Invoice]) -> Iterator[bytes]:
    """A table of `invoices` with the columns of `COLUMNS`: commas, CRLF, UTF-8 with a BOM.

    Without the BOM, Excel takes the file for its legacy encoding. Amounts are plain decimals
    (`-1234.50`); what a spreadsheet would calculate of a text gets an apostrophe in front.
    """
    yield "\N{BYTE ORDER MARK}".encode()
    yield _row(COLUMNS)
    for invoice in invoices:
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
            )
        )


def as_zip(invoices: Iterable[Invoice]) -> Iterator[bytes]:
    """A ZIP of the invoices' PDFs, `2026-000042.pdf` each, dated by the issue date.

    The same bytes for the same invoices. Of those that are sent only an entry of the directory
    stays in memory.
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for invoice in invoices:
            # One PDF of all downloads at a time: each may take all cores and 100 MB.
            with _drawing():
                pdf = render(invoice)
            archive.writestr(_entry(invoice), pdf)
            yield sink.take()
    yield sink.take()


class _Sink(io.RawIOBase):
    """What a ZipFile writes, to be taken away piece by piece; it cannot go back."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: object) -> int:
        before = len(self._written)
        self._written += memoryview(piece)  # type: ignore[arg-type]  # any buffer
        return len(self._written) - before

    def take(self) -> bytes:
        """What was written since the last time."""
        piece = bytes(self._written)
        self._written.clear()
        return piece


def _entry(invoice: Invoice) -> zipfile.ZipInfo:
    day = invoice.issued_at
    moment = (max(day.year, _ZIP_BEGINS), day.month, day.day, 0, 0, 0)
    entry = zipfile.ZipInfo(f"{invoice.label}.pdf", moment)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _READABLE_BY_ALL
    return entry


def _row(cells: Iterable[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def _as_text(text: str) -> str:
    return _FORMULA.sub(r"\1'", text)
