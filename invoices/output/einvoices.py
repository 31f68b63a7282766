"""Electronic invoices: an invoice as XML by EN 16931, in the syntax of Factur-X and ZUGFeRD (CII).

The template `einvoice.xml` is filled with texts. The XML is the same for the same stored invoice.
Credit notes have type 381 and positive amounts, as the standard requires, although the invoice is
stored with negative ones.

Sources: EN 16931-1:2017 (the names BT-… and BR-… below); https://fnfe-mpe.org/factur-x/
"""

import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from pathlib import Path

from django import template
from django.utils.translation import gettext as _

from invoices.document.amounts import Line, VatShare
from invoices.document.invoice import Invoice, Party
from invoices.document.money import EXACT, minor_units, plain_amount, plain_decimal
from invoices.document.places import is_country, is_currency
from invoices.document.requirements import Lack

#: The name of the file within a PDF, which Factur-X fixes.
XML_NAME = "factur-x.xml"
#: The unit of a line without a unit.
_ONE = "C62"
#: Kosovo, which ISO 3166 does not have, in the standard's list of countries.
_COUNTRIES = {"XK": "1A"}
# Codes of UNCL 5305 and, where VAT is not charged for a fixed reason, of the VATEX list.
_CATEGORIES = {
    "standard": ("S", ""),
    "reduced": ("S", ""),
    "zero": ("Z", ""),
    "exempt": ("E", ""),
    "reverse_charge": ("AE", "VATEX-EU-AE"),
    "intra_community": ("K", "VATEX-EU-IC"),
    "export": ("G", "VATEX-EU-G"),
}
#: VAT IDs that do not begin with their country's ISO code: Greece and Northern Ireland.
_OTHER_VAT_PREFIXES = {"EL", "XI"}
#: Kosovo and South Sudan, which the standard's list of prefixes does not have.
_NOT_VAT_PREFIXES = {"XK", "SS"}
# The standard's amounts have at most two decimals.
_MOST_MINOR_UNITS = 100
_PRICE_DECIMALS = Decimal("1e-8")
# Characters that XML cannot contain, not even escaped.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
#: Finds `einvoice.xml` in this folder, because the helper process has no templates of pages.
_TEMPLATES = template.Engine(dirs=[str(Path(__file__).parent)])
_BLANK_LINES = re.compile(r">\s*\n(?=[ \t]*<)")


def missing(invoice: Invoice) -> list[str]:
    """The values that the standard requires and the invoice lacks; empty if `as_xml` is
    complete."""
    return [str(lack.text) for lack in lacks(invoice)]


def lacks(invoice: Invoice) -> Iterator[Lack]:
    """Like `missing`, with the field of each value."""
    seller, customer = invoice.seller, invoice.customer
    categories = {share.category for share in invoice.totals.shares}
    if invoice.is_voided:
        yield Lack(_("A voided invoice has no electronic invoice."))
    if not is_currency(invoice.currency):
        yield Lack(_("A currency that is in use today"), "currency")
    if minor_units(invoice.currency) > _MOST_MINOR_UNITS:
        yield Lack(_("Electronic invoices have amounts of two decimals at most."), "currency")
    if not seller.address:
        yield Lack(_("The seller’s address"), "address")
    if not seller.country:
        yield Lack(_("The seller’s country"), "country")
    if not seller.vat_id and not seller.tax_number:
        yield Lack(_("The seller’s VAT ID or tax number"), "vat_id")
    if not customer.address:
        yield Lack(_("The customer’s address"), "customer_address")
    if not customer.country:
        yield Lack(_("The customer’s country"), "customer_country")
    if invoice.asks_for_payment and not (invoice.due_date or invoice.payment_terms):
        yield Lack(_("The due date or the payment terms"), "due_date")
    if (categories & {"zero", "reverse_charge"} and not seller.vat_id) or (
        categories & {"intra_community", "export"} and not _is_vat_id(seller.vat_id)
    ):
        yield Lack(_("The seller’s VAT ID"), "vat_id")
    if categories & {"reverse_charge", "intra_community"} and not _is_vat_id(customer.vat_id):
        yield Lack(_("The customer’s VAT ID"), "customer_vat_id")
    if "intra_community" in categories and not invoice.supplied_from:
        yield Lack(_("The date of supply"), "supplied_from")
    if "exempt" in categories and not invoice.exemption_reason:
        yield Lack(_("The reason why VAT is not charged"), "exemption_reason")
    parts = (invoice, seller, customer, *invoice.lines)
    texts = (text for part in parts for text in vars(part).values() if isinstance(text, str))
    if any(map(_NOT_IN_XML.search, texts)):
        yield Lack(_("Texts without the characters that XML does not allow"))


def as_xml(invoice: Invoice) -> bytes:
    """The invoice as XML in UTF-8. The XML is complete only if `missing` is empty."""
    with localcontext(EXACT):
        context = template.Context(_contents(invoice))
    xml: str = _TEMPLATES.get_template("einvoice.xml").render(context)
    # Quotation marks need no escapes in texts of XML. Django's tags leave blank lines.
    xml = xml.replace("&quot;", '"').replace("&#x27;", "'")
    return _BLANK_LINES.sub(">\n", xml).strip().encode()


def _contents(invoice: Invoice) -> dict[str, object]:
    """The values of the template in addition to the `invoice`: numbers and codes as texts."""
    seller, customer, totals = invoice.seller, invoice.customer, invoice.totals
    is_intra_community = any(share.category == "intra_community" for share in totals.shares)
    identifies_seller = _is_vat_id(seller.vat_id)
    is_identified = _is_vat_id(customer.vat_id)
    return {
        "invoice": invoice,
        "notes": [text for text in (invoice.note, invoice.credit_reason) if text],
        "lines": [
            _line(line, net, invoice)
            for line, net in zip(invoice.lines, invoice.line_nets(), strict=True)
        ],
        # BR-CO-26: a buyer must be able to identify the seller.
        "seller": _party(seller, "" if identifies_seller else seller.vat_id or seller.tax_number)
        | {"numbers": _numbers(seller.vat_id, seller.tax_number)},
        # The standard has no other tax number of a customer than a VAT ID.
        "customer": _party(customer, customer.number or ("" if is_identified else customer.vat_id))
        | {"numbers": _numbers(customer.vat_id if is_identified else "")},
        "shipped_to": _country(customer) if is_intra_community else "",
        "supplied_on": invoice.supplied_to or invoice.supplied_from,
        "taxes": list(_taxes(invoice)),
        "net": _amount(totals.net, invoice),
        "vat": _amount(totals.vat, invoice),
        "gross": _amount(totals.gross, invoice),
        "zero": _amount(0, invoice),
    }


def _line(line: Line, net: int, invoice: Invoice) -> dict[str, str]:
    price, quantity = line.unit_price, _sign(invoice) * line.quantity
    if price < 0:  # BR-27: a price must not be negative
        price, quantity = -price, -quantity
    if invoice.prices_include_tax:
        price = (price * 100 / (100 + line.vat_rate)).quantize(_PRICE_DECIMALS)
    return {
        "name": line.description,
        "price": plain_decimal(price),
        "quantity": plain_decimal(quantity),
        "unit": line.unit or _ONE,
        "category": _CATEGORIES[line.category][0],
        "rate": plain_decimal(line.vat_rate),
        "net": _amount(net, invoice),
    }


def _taxes(invoice: Invoice) -> Iterator[dict[str, str]]:
    """The VAT by code and rate: the standard has one code for both rates above zero."""
    groups: dict[tuple[Decimal, str, str], list[VatShare]] = {}
    for share in invoice.totals.shares:
        groups.setdefault((share.rate, *_CATEGORIES[share.category]), []).append(share)
    for (rate, category, reason), shares in groups.items():
        yield {
            "category": category,
            "reason": reason,
            "rate": plain_decimal(rate),
            "net": _amount(sum(share.net for share in shares), invoice),
            "vat": _amount(sum(share.vat for share in shares), invoice),
        }


def _party(who: Party, identifier: str) -> dict[str, object]:
    # The address is free text. Its lines go to the standard's three lines, the rest to the last.
    first, second, *others = [*who.address.splitlines(), "", ""]
    address = (first, second, ", ".join(filter(None, others)))
    return {"id": identifier, "name": who.name, "address": address, "country": _country(who)}


def _country(who: Party) -> str:
    return _COUNTRIES.get(who.country, who.country)


def _numbers(vat_id: str, tax_number: str = "") -> list[tuple[str, str]]:
    """Tax numbers with the names of their schemes. The standard takes one number per scheme."""
    if not _is_vat_id(vat_id):
        return [("FC", number) for number in (vat_id, tax_number) if number][:1]
    first = ("VA", vat_id.replace(" ", "").upper())
    return [first, ("FC", tax_number)] if tax_number else [first]


def _is_vat_id(number: str) -> bool:
    """Whether it begins with its country, as BR-CO-09 requires."""
    prefix = number[:2].upper()
    is_code = is_country(prefix) and prefix not in _NOT_VAT_PREFIXES
    return is_code or prefix in _OTHER_VAT_PREFIXES


def _sign(invoice: Invoice) -> int:
    return -1 if invoice.is_credit_note else 1


def _amount(amount: int, invoice: Invoice) -> str:
    return plain_amount(_sign(invoice) * amount, invoice.currency)
