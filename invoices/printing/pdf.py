"""An invoice as a PDF/A-3a and PDF/UA-1 file, always the same bytes until it is voided.

The template `invoice.typ` lays out the texts of `_contents`. The PDF is in the language that the
invoice was issued in, whatever the reader's language is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from dynamo.processes import on_new_process
from invoices.documents import Contents, Invoice, Party, Seller
from invoices.printing.fonts import font_folders, installed, printable
from invoices.values.amounts import TAX_CATEGORIES, Line
from invoices.values.fields import fields_of
from invoices.values.money import bare_amount, bare_price, readable_amount, readable_decimal
from web.choices import country_name

if TYPE_CHECKING:
    import typst

_TEMPLATE = Path(__file__).with_name("invoice.typ")
_CHILD_SECONDS = 60
_WITHOUT_VAT = {"exempt", "reverse_charge", "intra_community", "export"}
_REDUCED = "※"
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
    pattern = _("Credit note %(number)s") if invoice.is_credit_note else _("Invoice %(number)s")
    title = pattern % {"number": invoice.label}
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
                "brought": _("Brought forward"),
                "carried": _("Carried forward"),
                "payment": _("Payment"),
                "page": _("Page %(number)s of %(count)s")
                % {"number": "{number}", "count": "{count}"},
            },
            "seller": _party(invoice.seller, invoice.customer),
            "customer": _party(invoice.customer, invoice.seller),
            "descriptions": [_lines(line.description) for line in invoice.lines],
            "remarks": [_remark(line, invoice) for line in invoice.lines],
            "columns": _columns(invoice),
            "sums": _running_sums(invoice),
            "totals": _totals(invoice),
            "facts": _facts(invoice),
            "credit": _credit(invoice),
            "reasons": _reasons(invoice),
            "payment": _payment(invoice),
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


def _readable(value: str | Decimal | date | bool | None) -> str:
    """The value of a field; empty if it has none, or says yes or no."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, Decimal):
        return readable_decimal(value)
    if isinstance(value, date):
        return _day(value)
    return _lines(value or "")


def _party(party: Party, other: Party) -> dict[str, Any]:
    details = [_lines(party.address)]
    if party.country and party.country != other.country:
        details.append(country_name(party.country))
    if party.vat_id:
        pattern = _("VAT ID %(vat_id)s")
        if party.country == "JP":
            pattern = _("Registration number %(vat_id)s")
        details.append(pattern % {"vat_id": party.vat_id})
    if isinstance(party, Seller) and party.tax_number:
        details.append(_("Tax number %(number)s") % {"number": party.tax_number})
    return {"name": _lines(party.name), "details": [each for each in details if each]}


def _facts(invoice: Invoice) -> list[tuple[str, str]]:
    """Labels and texts of what stands above the lines."""
    supplied = _("Date of supply")
    days = [_day(day) for day in (invoice.supplied_from, invoice.supplied_to) if day]
    if invoice.supplied_to:
        supplied = _("Period of supply")
    facts = [
        (supplied, " – ".join(days)),
        (_("Due date"), _readable(invoice.due_date)),
        (_("Customer number"), invoice.customer.number),
        (_("Customer’s reference"), invoice.buyer_reference),
    ]
    return [(label, text) for label, text in facts if text]


def _credit(invoice: Invoice) -> list[str]:
    """What a credit note says of the invoice that it cancels."""
    if not invoice.is_credit_note:
        return []
    texts = [_("This credit note cancels invoice %(number)s.") % {"number": invoice.credits}]
    if invoice.credit_reason:
        texts.append(_("Reason: %(reason)s") % {"reason": invoice.credit_reason})
    return texts


def _is_marked(category: str, invoice: Invoice) -> bool:
    """Whether Japan asks to mark it as taxed at the reduced rate."""
    is_japanese = invoice.seller.country == "JP" or invoice.language.startswith("ja")
    return is_japanese and category == "reduced"


def _remark(line: Line, invoice: Invoice) -> str:
    """What stands behind a description: why the line has another tax."""
    if _is_marked(line.category, invoice):
        return _REDUCED
    return str(TAX_CATEGORIES[line.category]) if line.category in _WITHOUT_VAT else ""


def _reasons(invoice: Invoice) -> list[str]:
    """The texts below the totals, one for each category that needs it."""
    categories = {share.category for share in invoice.totals.shares}
    texts = {
        "reverse_charge": _("Reverse charge: the customer is liable for the VAT."),
        "intra_community": _("Intra-Community supply, exempt from VAT."),
        "export": _("Export, exempt from VAT."),
        "exempt": _("Exempt from VAT: %(reason)s") % {"reason": invoice.exemption_reason}
        if invoice.exemption_reason
        else _("Exempt from VAT"),
    }
    reasons = [text for category, text in texts.items() if category in categories]
    if any(_is_marked(category, invoice) for category in categories):
        reasons.append(_("%(mark)s Items at the reduced tax rate") % {"mark": _REDUCED})
    return reasons


def _payment(invoice: Invoice) -> list[str]:
    """The payment terms and the bank account. A credit note asks for no payment."""
    seller = invoice.seller
    if invoice.is_credit_note:
        return []
    account = [
        (_("Account holder"), seller.account_holder if seller.iban else ""),
        ("IBAN", " ".join(textwrap.wrap(seller.iban.replace(" ", ""), 4))),
        ("BIC", seller.bic),
    ]
    texts = [_lines(invoice.payment_terms), *(f"{label} {text}" for label, text in account if text)]
    return [text for text in texts if text]


def _running_sums(invoice: Invoice) -> list[str]:
    """The sum of the lines up to each one, which is carried over to the next page."""
    amounts = (line.amount(invoice.currency) for line in invoice.lines)
    return [readable_amount(total, invoice.currency) for total in accumulate(amounts)]


def _columns(invoice: Invoice) -> list[dict[str, Any]]:
    """The columns of numbers, from left to right."""
    currency, lines = invoice.currency, invoice.lines
    named = {"currency": currency}
    price, amount = _("Unit price, %(currency)s"), _("Net, %(currency)s")
    if invoice.prices_include_tax:
        price, amount = _("Gross price, %(currency)s"), _("Gross, %(currency)s")
    titles_and_cells = {
        _("Quantity"): [readable_decimal(line.quantity) for line in lines],
        price % named: [bare_price(line.unit_price, currency) for line in lines],
        _("VAT %"): [readable_decimal(line.vat_rate) for line in lines],
        amount % named: [bare_amount(line.amount(currency), currency) for line in lines],
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
        if _is_marked(share.category, invoice):
            label = f"{label} {_REDUCED}"
        elif share.category in _WITHOUT_VAT:
            label = f"{label} · {TAX_CATEGORIES[share.category]}"
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
