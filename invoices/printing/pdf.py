"""An invoice as a PDF/A-3a and PDF/UA-1 file, always the same bytes until it is voided.

The template `invoice.typ` lays out the texts of `_contents`. The PDF is in the language that the
invoice was issued in, whatever the reader's language is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from dynamo.processes import on_new_process
from invoices.documents import Contents, Invoice, Party
from invoices.fields import fields_of
from invoices.money import bare_amount, bare_price, readable_amount, readable_decimal
from invoices.printing.fonts import font_folders, installed, printable

if TYPE_CHECKING:
    import typst

_TEMPLATE = Path(__file__).with_name("invoice.typ")
_CHILD_SECONDS = 60
# For archives and attachments (PDF/A-3), and for screen readers (PDF/UA).
_STANDARDS: list[typst.PDFStandard] = ["a-3a", "ua-1"]
# Typst keeps intermediate results of the last compilations: 80 MB for each of the largest invoices.
# After a large one (so many characters of JSON), empty documents (2 ms each) displace them.
_LARGE = 20_000
_REMEMBERED_COMPILATIONS = 11


def render(invoice: Invoice) -> bytes:
    """`invoice` as a PDF file.

    A character that no font has is printed as U+FFFD; `fonts.missing_characters` finds it before.
    """
    with translation.override(invoice.language):
        contents = json.dumps(_contents(invoice), ensure_ascii=False)
    issued = datetime.combine(invoice.issued_at, datetime.min.time(), UTC)
    return _typeset(contents, int(issued.timestamp()))


def _contents(invoice: Invoice) -> dict[str, Any]:
    """Everything the template prints, in the active language."""
    day = invoice.issued_at
    title = _("Invoice %(number)s") % {"number": invoice.label}
    contents: dict[str, Any] = _printable(
        {
            # Typst takes the language without script and region.
            "language": invoice.language.partition("-")[0],
            "fonts": [family.name for family in installed()],
            "number": invoice.label,
            "date": {"year": day.year, "month": day.month, "day": day.day},
            "day": _day(day),
            "title": title,
            "foot": f"{title} · {_void()}" if invoice.is_voided else title,
            "labels": {
                "date": _("Date"),
                "seller": _("Seller"),
                "customer": _("Customer"),
                "description": _("Description"),
                "page": _("Page %(number)s of %(count)s")
                % {"number": "{number}", "count": "{count}"},
            },
            "seller": _party(invoice.seller),
            "customer": _party(invoice.customer),
            "descriptions": [_lines(line.description) for line in invoice.lines],
            "columns": _columns(invoice),
            "totals": _totals(invoice),
            "fields": {
                each.name: {
                    "label": str(each.label or ""),
                    "text": _readable(getattr(invoice, each.name)),
                }
                for each in fields_of(Contents)
            },
            "voided": _voided(invoice) if invoice.is_voided else None,
        }
    )
    return contents


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_printable(each) for each in value]
    return value


def _void() -> str:
    return pgettext("across the PDF of a voided invoice", "VOID")


def _day(day: date) -> str:
    # English dates stay as they were in the first release, so that its PDFs stay the same.
    return date_format(day, pgettext("a date on the PDF, in Django’s letters", "Y-m-d"))


def _lines(text: str) -> str:
    return "\n".join(text.strip().splitlines())


def _readable(value: str | Decimal | date | None) -> str:
    """The value of a field; empty if it has none."""
    if isinstance(value, Decimal):
        return readable_decimal(value)
    if isinstance(value, date):
        return _day(value)
    return _lines(value or "")


def _party(party: Party) -> dict[str, str]:
    return {
        "name": _lines(party.name),
        "address": _lines(party.address),
        "vat_id": _("VAT ID %(vat_id)s") % {"vat_id": party.vat_id} if party.vat_id else "",
    }


def _columns(invoice: Invoice) -> list[dict[str, Any]]:
    """The columns of numbers, from left to right."""
    currency, lines = invoice.currency, invoice.lines
    named = {"currency": currency}
    titles_and_cells = {
        _("Quantity"): [readable_decimal(line.quantity) for line in lines],
        _("Unit price, %(currency)s") % named: [
            bare_price(line.unit_price, currency) for line in lines
        ],
        _("VAT %"): [readable_decimal(line.vat_rate) for line in lines],
        _("Net, %(currency)s") % named: [
            bare_amount(line.amount(currency), currency) for line in lines
        ],
    }
    return [{"title": title, "cells": cells} for title, cells in titles_and_cells.items()]


def _totals(invoice: Invoice) -> list[tuple[str, str]]:
    """Labels and amounts: net, VAT per rate, and last the total."""
    currency, totals = invoice.currency, invoice.totals
    rows = [(_("Net"), readable_amount(totals.net, currency))]
    for share in totals.shares:
        label = _("VAT %(rate)s%% on %(net)s") % {
            "rate": readable_decimal(share.rate),
            "net": readable_amount(share.net, currency),
        }
        rows.append((label, readable_amount(share.vat, currency)))
    return [*rows, (_("Total"), readable_amount(totals.gross, currency))]


def _voided(invoice: Invoice) -> dict[str, str]:
    banner = _("VOID: this invoice was voided.")
    if invoice.voided_on:
        day = _day(invoice.voided_on)
        banner = _("VOID: this invoice was voided on %(date)s.") % {"date": day}
    return {
        "mark": _void(),
        "banner": banner,
        "reason": _lines(_("Reason: %(reason)s") % {"reason": invoice.void_reason}),
    }


def _typeset(contents: str, timestamp: int) -> bytes:
    if _forked:
        return _typeset_in_new_process(contents, timestamp)
    # Imported with the first PDF, so that commands and servers start without it.
    import typst

    fonts = _fonts()
    pdf = typst.compile(
        _TEMPLATE,
        font_paths=fonts,
        sys_inputs={"invoice": contents},
        timestamp=timestamp,
        pdf_standards=_STANDARDS,
    )
    if len(contents) > _LARGE:
        for _compilation in range(_REMEMBERED_COMPILATIONS):
            typst.compile(b"", font_paths=fonts)
    return pdf


@cache
def _fonts() -> typst.Fonts:
    """The fonts, loaded once per process and shared by its threads."""
    import typst

    return typst.Fonts(
        include_system_fonts=False,
        include_embedded_fonts=False,
        font_paths=list(map(str, font_folders())),
    )


# Typst has a pool of threads. In a forked child they do not exist, and it would wait for them
# forever. So the child of a process that made a PDF starts a new process for each PDF.
_forked = False


def _after_fork() -> None:
    global _forked
    _forked = _forked or "typst" in sys.modules


on_new_process(_after_fork)

_PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from invoices.printing.pdf import _typeset
sys.stdout.buffer.write(_typeset(sys.stdin.buffer.read().decode(), int(sys.argv[2])))
"""


def _typeset_in_new_process(contents: str, timestamp: int) -> bytes:
    program = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(timestamp)]
    made = subprocess.run(
        program, input=contents.encode(), stdout=subprocess.PIPE, check=True, timeout=_CHILD_SECONDS
    )
    return made.stdout
