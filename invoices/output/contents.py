"""The contents of the PDF of an invoice, as texts in the active language."""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import accumulate
from typing import Any
from unicodedata import normalize

from django.utils.formats import date_format
from django.utils.translation import gettext as _, gettext_lazy, pgettext

from invoices.document.amounts import TAX_CATEGORIES, category_of_rate, readable_quantity
from invoices.document.fonts import installed, printable
from invoices.document.identifiers import readable_iban
from invoices.document.invoice import Customer, Invoice, Party, Seller, details_of
from invoices.document.money import (
    bare_amount,
    bare_price,
    in_major_units,
    readable_amount,
    readable_decimal,
)
from invoices.document.places import country_name

# The remarks that the law requires where VAT is not charged; "Reverse charge" is a fixed term.
_REASONS = {
    "reverse_charge": gettext_lazy("Reverse charge: the customer is liable for the VAT."),
    "intra_community": gettext_lazy("Intra-community supply, exempt from VAT."),
    "export": gettext_lazy("Export, exempt from VAT."),
}
_JAPAN, _REDUCED = "JP", "※"
# Finds words in the names of organizations, whose title differs from that of persons.
_ORGANIZATION = re.compile(
    r"会社|法人|\([株有]\)|商[店会事]|組合|銀行|協会|学[校園]|大学|病院|医院|事務所|役所|役場"
    r"|[店社部課室局]$|\b(?:Inc|Ltd|Limited|LLC|LLP|Co|Corp|Company|GmbH|AG|KG|SARL|SAS|SA)\b"
)


def contents_of(invoice: Invoice) -> dict[str, object]:
    """All values that the template prints."""
    day = invoice.issued_at
    title = _("Credit note %(number)s") if invoice.is_credit_note else _("Invoice %(number)s")
    title = _("Draft of an invoice") if invoice.is_draft else title % {"number": invoice.label}
    void = pgettext("across the PDF of a voided invoice", "VOID") if invoice.is_voided else ""
    credited = _("This credit note cancels invoice %(number)s.") % {"number": invoice.credits}
    code = payment_code(invoice)
    # On a credit note, nothing is to be paid.
    bank = [] if invoice.is_credit_note else bank_account(invoice.seller)
    contents = {
        # Typst takes the language without script and region.
        "language": invoice.language.partition("-")[0],
        "fonts": [family.name for family in installed()],
        "date": {"year": day.year, "month": day.month, "day": day.day},
        "day": _day(day),
        "title": title,
        "foot": f"{title} · {void}" if void else title,
        "labels": {
            "date": _("Date"),
            "seller": _("Seller"),
            "customer": _("Customer"),
            "description": _("Description"),
            "brought": _("Brought forward"),
            "carried": _("Carried forward"),
            "due": _("Amount due"),
            "payment": pgettext("above a bank account", "Payment") if bank else _("Payment"),
            "pay": _("Pay by QR code"),
            "note": _("Note"),
            "page": _("Page %(number)s of %(count)s") % {"number": "{number}", "count": "{count}"},
        },
        # The text that is printed across each page.
        "mark": pgettext("across the PDF of a preview", "DRAFT") if invoice.is_draft else void,
        "voided": _banner(_voided(invoice), invoice.void_reason) if invoice.is_voided else None,
        "credited": _banner(credited, invoice.credit_reason) if invoice.is_credit_note else None,
        "seller": _party(invoice.seller, invoice),
        "customer": _party(invoice.customer, invoice),
        "due": amount_due(invoice),
        "details": [(label, _lines(text)) for label, text in details_of(invoice, _day)],
        "descriptions": list(_descriptions(invoice)),
        "columns": _columns(invoice),
        "carried": _carried(invoice),
        "totals": _totals(invoice),
        "remarks": [_lines(item) for item in remarks_of(invoice)],
        "terms": "" if invoice.is_credit_note else _lines(invoice.payment_terms),
        "bank": bank,
        # The code as SVG, with one unit per square.
        "code": code.svg_inline(border=0) if code else "",
        "note": _lines(invoice.note),
    }
    return {name: _printable(content) for name, content in contents.items()}


def _printable(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_printable(item) for item in value]
    return value


def _day(day: date) -> str:
    # English dates must not change, so that the PDFs of the first release do not change.
    return date_format(day, pgettext("a date on the PDF, in Django’s letters", "Y-m-d"))


def _lines(text: str) -> str:
    return "\n".join(text.strip().splitlines())


def _voided(invoice: Invoice) -> str:
    if not invoice.voided_on:
        return _("VOID: this invoice was voided.")
    return _("VOID: this invoice was voided on %(date)s.") % {"date": _day(invoice.voided_on)}


def _banner(what: str, reason: str) -> dict[str, str]:
    return {"banner": what, "reason": _lines(_("Reason: %(reason)s") % {"reason": reason})}


def _party(party: Party, invoice: Invoice) -> dict[str, object]:
    """The name, and the lines below it.

    The country is shown if it differs from the other party's.
    """
    below = [_lines(party.address)]
    if invoice.seller.country != invoice.customer.country:
        below.append(country_name(party.country))
    if party.vat_id:
        is_japanese = party.country == _JAPAN
        label = _("Registration number %(vat_id)s") if is_japanese else _("VAT ID %(vat_id)s")
        below.append(label % {"vat_id": party.vat_id})
    if isinstance(party, Seller) and party.tax_number:
        is_french = party.country == "FR"
        label = "SIREN/SIRET %(number)s" if is_french else _("Tax number %(number)s")
        below.append(label % {"number": party.tax_number})
    if isinstance(party, Customer) and party.number:
        below.append(_("Customer number %(number)s") % {"number": party.number})
    name = _lines(party.name)
    if isinstance(party, Customer):
        name = f"{name} {honorific(invoice)}".rstrip()
    return {"name": name, "below": [text for text in below if text]}


def _descriptions(invoice: Invoice) -> Iterator[tuple[str, str]]:
    """The description of each line, and its tax category unless this follows from the rate."""
    for line in invoice.lines:
        description, category = _lines(line.description), ""
        if is_marked(line.category, invoice):
            description += f" {_REDUCED}"
        elif line.category != category_of_rate(line.vat_rate):
            category = str(TAX_CATEGORIES.get(line.category, line.category))
        yield description, category


def _columns(invoice: Invoice) -> list[dict[str, object]]:
    """The columns of numbers, from left to right."""
    currency, lines = invoice.currency, invoice.lines
    named = {"currency": currency}
    prices = _("Unit price, %(currency)s")
    amounts = _("With VAT, %(currency)s") if invoice.prices_include_tax else _("Net, %(currency)s")
    titles_and_cells = {
        _("Quantity"): [readable_quantity(line) for line in lines],
        prices % named: [bare_price(line.unit_price, currency) for line in lines],
        _("VAT %"): [readable_decimal(line.vat_rate) for line in lines],
        amounts % named: [bare_amount(line.amount(currency), currency) for line in lines],
    }
    return [{"title": title, "cells": cells} for title, cells in titles_and_cells.items()]


def _carried(invoice: Invoice) -> list[str]:
    """For each line, the sum of the lines up to and including it."""
    currency = invoice.currency
    sums = accumulate(line.amount(currency) for line in invoice.lines)
    return [bare_amount(amount, currency) for amount in sums]


def _totals(invoice: Invoice) -> list[tuple[str, str]]:
    """Labels and amounts: net, VAT per category and rate, and last the total."""
    currency, totals = invoice.currency, invoice.totals
    rows = [(_("Net"), readable_amount(totals.net, currency))]
    for share in totals.shares:
        label, named = _("VAT %(rate)s%% on %(net)s"), share.tax_category
        if is_marked(share.category, invoice):
            label = f"{label} {_REDUCED}"
        elif named:
            label = _("%(category)s: VAT %(rate)s%% on %(net)s")
        values = {
            "category": TAX_CATEGORIES.get(named, named),
            "rate": readable_decimal(share.rate),
            "net": readable_amount(share.net, currency),
        }
        rows.append((label % values, readable_amount(share.vat, currency)))
    return [*rows, (_("Total"), readable_amount(totals.gross, currency))]


def remarks_of(invoice: Invoice) -> Iterator[str]:
    """The remarks below the totals, on PDF and page, including those that the law requires."""
    categories = [share.category for share in invoice.totals.shares]
    if invoice.prices_include_tax:
        yield _("Prices include VAT")
    if any(is_marked(category, invoice) for category in categories):
        yield _("%(mark)s Items at the reduced tax rate") % {"mark": _REDUCED}
    for category in categories:
        if category in _REASONS:
            yield str(_REASONS[category])
    if reason := invoice.exemption_reason.strip():
        is_exempt = "exempt" in categories
        yield _("Exempt from VAT: %(reason)s") % {"reason": reason} if is_exempt else reason


def is_marked(category: str, invoice: Invoice) -> bool:
    """Whether Japanese law requires a mark on items of `category`: taxed at the reduced rate."""
    is_japanese = invoice.seller.country == _JAPAN or _is_in_japanese(invoice)
    return is_japanese and category == "reduced"


def honorific(invoice: Invoice) -> str:
    """The title after the customer's name on a Japanese document; empty if the name has one.

    A program cannot recognize a person for certain: `御中` or `様` typed after the name decides.
    """
    name = invoice.customer.name.strip()
    if not _is_in_japanese(invoice) or name.endswith(("御中", "様", "殿", "先生")):
        return ""
    return "御中" if _ORGANIZATION.search(normalize("NFKC", name)) else "様"


def amount_due(invoice: Invoice) -> str:
    """The amount at the top of a Japanese invoice; empty on other documents."""
    if not _is_in_japanese(invoice) or invoice.is_credit_note or invoice.is_voided:
        return ""
    return readable_amount(invoice.totals.gross, invoice.currency)


def _is_in_japanese(invoice: Invoice) -> bool:
    return invoice.language.startswith("ja")


def bank_account(seller: Seller) -> list[tuple[str, str]]:
    """Labels and texts."""
    rows = [
        (_("Bank"), seller.bank_name),
        (_("Branch"), seller.bank_branch),
        (_("Kind of account"), seller.account_kind),
        (_("Account number"), seller.account_number),
        (_("Account holder"), seller.account_holder),
        (_("IBAN"), readable_iban(seller.iban)),
        (_("BIC"), seller.bic),
    ]
    return [(label, text) for label, text in rows if text]


# The payment code ---------------------------------------------------------------------------------

_NAME_MAX_LENGTH = 70


def payment_code(invoice: Invoice) -> Any:
    """The QR code (`segno.QRCode`) by which a banking app fills in the transfer (EPC069-12).

    None if there is nothing to pay, or if the currency is not EUR. The remittance text is the
    number of the invoice.
    """
    seller = invoice.seller
    is_payable = not (invoice.is_draft or invoice.is_voided or invoice.is_credit_note)
    if not is_payable or invoice.currency != "EUR" or not seller.iban:
        return None
    from segno.helpers import make_epc_qr

    name = " ".join((seller.account_holder or seller.name).split())
    try:
        return make_epc_qr(
            name=name[:_NAME_MAX_LENGTH],
            iban=seller.iban,
            bic=seller.bic,
            amount=in_major_units(invoice.totals.gross, invoice.currency),
            text=invoice.label,
            encoding="utf-8",
        )
    except ValueError:
        # EPC069-12 has no amount below 0.01 or above 999,999,999.99. Other reasons are an invalid
        # bank account that a program stored, and a name of more than 331 bytes.
        return None
