"""Electronic invoices: an invoice as XML by EN 16931, in the syntax of Factur-X and ZUGFeRD (CII).

The XML is the same for the same stored invoice. Credit notes have type 381 and positive amounts, as
the standard asks, although the invoice is stored with negative ones.

Sources: EN 16931-1:2017 (the names BT-… and BR-… below); https://fnfe-mpe.org/factur-x/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any, NamedTuple

from django.utils import translation
from django.utils.translation import gettext as _

from invoices.document.amounts import Line, VatShare
from invoices.document.fields import fields_of
from invoices.document.invoice import Customer, Invoice, Party, Seller
from invoices.document.money import in_major_units, minor_units
from web.choices import is_country

#: The name of the file within a PDF, which Factur-X fixes.
XML_NAME = "factur-x.xml"
GUIDELINE = "urn:cen.eu:en16931:2017"

_INVOICE, _CREDIT_NOTE = "380", "381"
_PIECE = "C62"
_CREDIT_TRANSFER, _SEPA_CREDIT_TRANSFER = "30", "58"
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
# The standard's amounts have at most two decimals.
_MOST_MINOR_UNITS = 100
_PRICE_DECIMALS = Decimal("1e-8")
# XML cannot contain them, not even escaped.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)


class Lack(NamedTuple):
    """What the standard asks and an invoice does not say, and the field for it, if there is one."""

    text: str
    field: str = ""
    in_profile: bool = False


def missing(invoice: Invoice) -> list[str]:
    """What the standard asks and the invoice does not say; empty if `as_xml` is complete."""
    return [each.text for each in lacks(invoice)]


def lacks(invoice: Invoice) -> Iterator[Lack]:
    """As `missing`, with the fields."""
    seller, customer = invoice.seller, invoice.customer
    categories = {share.category for share in invoice.totals.shares}
    if invoice.is_voided:
        yield Lack(_("A voided invoice has no electronic invoice."))
    if minor_units(invoice.currency) > _MOST_MINOR_UNITS:
        yield Lack(_("Electronic invoices have amounts of two decimals at most."), "currency")
    if not seller.address:
        yield Lack(_("The seller’s address"), "business_address", in_profile=True)
    if not seller.country:
        yield Lack(_("The seller’s country"), "country", in_profile=True)
    if not seller.vat_id and not seller.tax_number:
        yield Lack(_("The seller’s VAT ID or tax number"), "vat_id", in_profile=True)
    if not customer.address:
        yield Lack(_("The customer’s address"), "customer_address")
    if not customer.country:
        yield Lack(_("The customer’s country"), "customer_country")
    if not (invoice.due_date or invoice.payment_terms or invoice.is_credit_note):
        yield Lack(_("The due date or the payment terms"), "due_date")
    if (categories & {"zero", "reverse_charge"} and not seller.vat_id) or (
        categories & {"intra_community", "export"} and not _is_vat_id(seller.vat_id)
    ):
        yield Lack(_("The seller’s VAT ID"), "vat_id", in_profile=True)
    if categories & {"reverse_charge", "intra_community"} and not _is_vat_id(customer.vat_id):
        yield Lack(_("The customer’s VAT ID"), "customer_vat_id")
    if "intra_community" in categories and not invoice.supplied_from:
        yield Lack(_("The date of supply"), "supplied_from")
    if "exempt" in categories and not invoice.exemption_reason:
        yield Lack(_("The reason why VAT is not charged"), "exemption_reason")
    if any(map(_NOT_IN_XML.search, _texts(invoice))):
        yield Lack(_("Texts without the characters that XML does not allow"))


def _texts(invoice: Invoice) -> Iterator[str]:
    for part in (invoice, invoice.seller, invoice.customer, *invoice.lines):
        for each in fields_of(type(part)):
            if isinstance(text := getattr(part, each.name), str):
                yield text


def as_xml(invoice: Invoice) -> bytes:
    """The invoice as XML in UTF-8. Complete only if nothing is `missing`. Takes 2 ms, or
    30 ms for 100 lines."""
    # Imported with the first electronic invoice, because it takes 50 ms.
    from drafthorse.models.document import Document

    document: Any = Document()
    # Texts of the law are in the invoice's language, whatever the reader's is.
    with translation.override(invoice.language), localcontext(_EXACT):
        _describe(document, invoice)
    xml: bytes = document.serialize(schema=None)
    return xml


def _describe(document: Any, invoice: Invoice) -> None:
    from drafthorse.models.note import IncludedNote

    document.context.guideline_parameter.id = GUIDELINE
    document.header.id = invoice.label
    document.header.type_code = _CREDIT_NOTE if invoice.is_credit_note else _INVOICE
    document.header.issue_date_time = invoice.issued_at
    for text in (invoice.note, invoice.credit_reason):
        if text:
            note: Any = IncludedNote()
            note.content = text
            document.header.notes.add(note)
    trade = document.trade
    for number, (line, net) in enumerate(zip(invoice.lines, invoice.line_nets(), strict=True), 1):
        trade.items.add(_line(number, line, net, invoice))
    if invoice.buyer_reference:
        trade.agreement.buyer_reference = invoice.buyer_reference
    _add_seller(trade.agreement.seller, invoice.seller)
    _add_customer(trade.agreement.buyer, invoice.customer)
    if any(share.category == "intra_community" for share in invoice.totals.shares):
        trade.delivery.ship_to.address.country_id = invoice.customer.country
    if completed_on := invoice.supplied_to or invoice.supplied_from:
        trade.delivery.event.occurrence = completed_on
    _settle(trade.settlement, invoice)


def _settle(settlement: Any, invoice: Invoice) -> None:
    """Payment, VAT and totals."""
    from drafthorse.models.payment import PaymentMeans, PaymentTerms

    seller, totals, currency = invoice.seller, invoice.totals, invoice.currency
    settlement.currency_code = currency
    if seller.iban:
        means: Any = PaymentMeans()
        means.type_code = _SEPA_CREDIT_TRANSFER if currency == "EUR" else _CREDIT_TRANSFER
        means.payee_account.iban = seller.iban
        means.payee_account.account_name = seller.account_holder or seller.name
        if seller.bic:
            means.payee_institution.bic = seller.bic
        settlement.payment_means.add(means)
    for shares in _breakdown(totals.shares):
        settlement.trade_tax.add(_tax(shares, invoice))
    if invoice.supplied_from and invoice.supplied_to:
        settlement.period.start = invoice.supplied_from
        settlement.period.end = invoice.supplied_to
    if invoice.payment_terms or invoice.due_date:
        terms: Any = PaymentTerms()
        if invoice.payment_terms:
            terms.description = invoice.payment_terms
        if invoice.due_date:
            terms.due = invoice.due_date
        settlement.terms.add(terms)
    net, vat, gross = (
        _amount(amount, invoice) for amount in (totals.net, totals.vat, totals.gross)
    )
    summation = settlement.monetary_summation
    summation.line_total = net
    summation.charge_total = summation.allowance_total = _amount(0, invoice)
    summation.tax_basis_total = net
    summation.tax_total = (vat, currency)
    summation.grand_total = gross
    summation.prepaid_total = _amount(0, invoice)
    summation.due_amount = gross
    if invoice.credits:
        settlement.invoice_referenced_document.issuer_assigned_id = invoice.credits


def _line(number: int, line: Line, net: int, invoice: Invoice) -> Any:
    from drafthorse.models.tradelines import LineItem

    item: Any = LineItem()
    item.document.line_id = str(number)
    item.product.name = line.description
    price, quantity = line.unit_price, _sign(invoice) * line.quantity
    if price < 0:  # BR-27: a price is not negative
        price, quantity = -price, -quantity
    if invoice.prices_include_tax:
        price = (price * 100 / (100 + line.vat_rate)).quantize(_PRICE_DECIMALS)
    item.agreement.net.amount = _plain(price)
    item.delivery.billed_quantity = (_plain(quantity), _PIECE)
    code, _reason_code = _CATEGORIES[line.category]
    tax = item.settlement.trade_tax
    tax.type_code = "VAT"
    tax.category_code = code
    tax.rate_applicable_percent = _plain(line.vat_rate)
    item.settlement.monetary_summation.total_amount = _amount(net, invoice)
    return item


def _breakdown(shares: Iterable[VatShare]) -> Iterable[list[VatShare]]:
    """The shares that the standard counts as one: it has one code for both rates above zero."""
    groups: dict[tuple[Decimal, str], list[VatShare]] = {}
    for share in shares:
        code, _reason_code = _CATEGORIES[share.category]
        groups.setdefault((share.rate, code), []).append(share)
    return groups.values()


def _tax(shares: list[VatShare], invoice: Invoice) -> Any:
    from drafthorse.models.accounting import ApplicableTradeTax

    share = shares[0]
    code, reason_code = _CATEGORIES[share.category]
    tax: Any = ApplicableTradeTax()
    tax.type_code = "VAT"
    tax.category_code = code
    tax.rate_applicable_percent = _plain(share.rate)
    tax.basis_amount = _amount(sum(each.net for each in shares), invoice)
    tax.calculated_amount = _amount(sum(each.vat for each in shares), invoice)
    if share.category == "exempt":
        tax.exemption_reason = invoice.exemption_reason
    elif reason_code:
        tax.exemption_reason_code = reason_code
    return tax


def _add_seller(party: Any, seller: Seller) -> None:
    _add_party(party, seller)
    if seller.vat_id:
        _register(party, seller.vat_id)
    if seller.tax_number:
        _register(party, seller.tax_number, "FC")
    if not _is_vat_id(seller.vat_id):  # BR-CO-26: a buyer must be able to identify the seller
        party.id = seller.vat_id or seller.tax_number


def _add_customer(party: Any, customer: Customer) -> None:
    is_vat_id = _is_vat_id(customer.vat_id)
    # The standard has no other tax number of a customer than a VAT ID.
    if identifier := customer.number or ("" if is_vat_id else customer.vat_id):
        party.id = identifier
    _add_party(party, customer)
    if is_vat_id:
        _register(party, customer.vat_id)


def _add_party(party: Any, who: Party) -> None:
    party.name = who.name
    party.address.country_id = who.country
    # The address is free text. Its lines go to the standard's three lines, the rest to the last.
    first, second, *others = [*who.address.splitlines(), "", ""]
    for name, text in (
        ("line_one", first),
        ("line_two", second),
        ("line_three", ", ".join(filter(None, others))),
    ):
        if text:
            setattr(party.address, name, text)


def _register(party: Any, number: str, scheme: str = "") -> None:
    from drafthorse.models.party import TaxRegistration

    registration: Any = TaxRegistration()
    scheme = scheme or ("VA" if _is_vat_id(number) else "FC")
    registration.id = (scheme, number.replace(" ", "").upper() if scheme == "VA" else number)
    party.tax_registrations.add(registration)


def _is_vat_id(number: str) -> bool:
    """Whether it begins with its country, as BR-CO-09 asks."""
    prefix = number[:2].upper()
    return is_country(prefix) or prefix in _OTHER_VAT_PREFIXES


def _sign(invoice: Invoice) -> int:
    return -1 if invoice.is_credit_note else 1


def _amount(amount: int, invoice: Invoice) -> Decimal:
    return in_major_units(_sign(invoice) * amount, invoice.currency).quantize(
        Decimal(1) / minor_units(invoice.currency)
    )


def _plain(number: Decimal) -> str:
    """A number without exponent and trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
