"""The requirements of the law of the seller's country that a program can check.

`check_requirements` is called by the form and the command before a number is drawn. It checks only
invoices of sellers whose profile names a country: without one, nothing is known about the law.

    where   law                                                      small amounts
    EU      Directive 2006/112/EC, Articles 226 and 226b             Article 220a: up to EUR 100
    DE      § 14 (4) and § 14a UStG                                  § 33 UStDV: up to EUR 250
    AT      § 11 (1) UStG 1994                                       § 11 (6): up to EUR 400
    FR      Article 242 nonies A of annex II of the CGI;             none that leaves out names
            Article L441-9 and R123-237 of the code de commerce
    GB      Regulation 14 of the VAT Regulations 1995                Regulation 16A: up to GBP 250
    CH      Article 26 MWSTG                                         Article 57 MWSTV: up to CHF 400
    JP      Article 57-4 (1) of the Consumption Tax Act              by trade, not by amount
    US      No law of VAT. Neither the federal government nor a state requires more than a form has.

The rules of other countries are not included. Rules that depend on facts that an invoice does not
have, such as the seller's turnover, are not checked. Nor are the four mentions that French invoices
get with electronic invoicing, from September 2026 or 2027 by the seller's size: the customer's
SIREN, the place of delivery, whether goods or services are sold, and VAT on debits. A note can name
them.
"""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.translation import get_language, gettext_lazy as _

from invoices.document.amounts import Line, totals
from invoices.document.identifiers import EU, clean_vat_id
from invoices.document.invoice import (
    DEFAULT_LANGUAGE,
    DOCUMENT_LANGUAGES,
    TYPED_FIELDS,
    Contents,
    Customer,
    Draft,
    Seller,
)
from invoices.document.money import minor_units, readable_decimal

#: The largest gross amount of a small invoice, which needs less, in major units; its currency.
_SMALL = {
    **dict.fromkeys(EU, (100, "EUR")),
    "DE": (250, "EUR"),
    "AT": (400, "EUR"),
    "FR": (0, "EUR"),
    "GB": (250, "GBP"),
    "CH": (400, "CHF"),
}
#: In these categories, the customer owes the VAT. Such an invoice is never a small one.
_OWED_BY_CUSTOMER = {"reverse_charge", "intra_community"}


#: Stands for an invoice in which nothing was typed yet. It is assumed to have VAT.
_NOTHING_TYPED = Contents(
    Customer(""), (Line("", Decimal(1), Decimal(1), vat_rate=Decimal(1)),), currency=""
)


class Lack(NamedTuple):
    """A value that an invoice lacks, or one that may be wrong.

    `field` belongs to the form or to the profile. With `line`, it belongs to that line.
    """

    text: object
    field: str = ""
    line: int | None = None

    @property
    def in_profile(self) -> bool:
        return bool(self.field) and self.line is None and self.field not in TYPED_FIELDS


def missing(seller: Seller, contents: Contents = _NOTHING_TYPED) -> Iterator[Lack]:
    """The values that the law requires and `contents` lacks; by default, of an empty form.

    Yields nothing if the seller has no country.
    """
    country, customer = seller.country, contents.customer
    categories = {line.category for line in contents.lines}
    is_owed_by_customer = bool(categories & _OWED_BY_CUSTOMER)
    is_small = not is_owed_by_customer and _is_small(contents, country)
    # The profile may have a VAT ID that was stored before the country was changed.
    has_vat_id = _is_vat_id(seller.vat_id, country)
    lines = contents.lines or _NOTHING_TYPED.lines
    lacks_vat_id = not has_vat_id and any(line.vat_rate for line in lines)
    if country in EU | {"GB", "CH", "JP"} and not seller.is_named:
        yield Lack(_("Your name or the name of your business"), "name")
    if country in EU | {"GB", "CH"} and not seller.address:
        yield Lack(_("Your address"), "address")
    if country == "DE" and not (is_small or has_vat_id or seller.tax_number):
        yield Lack(_("Your tax number or VAT ID"), "tax_number")
    if lacks_vat_id and (country in {"GB", "CH"} or (country in EU - {"DE"} and not is_small)):
        yield Lack(_("Your VAT ID, because you charge VAT"), "vat_id")
    elif lacks_vat_id and country == "JP":
        yield Lack(_("Your registration number, because you charge consumption tax"), "vat_id")
    elif country in EU and is_owed_by_customer and not has_vat_id:
        yield Lack(_("Your VAT ID, because the customer owes the VAT"), "vat_id")
    if country == "FR" and not (is_small or seller.tax_number):
        yield Lack(_("Your SIREN or SIRET number"), "tax_number")
    if country in EU and "exempt" in categories and not contents.exemption_reason:
        yield Lack(_("Why a line is exempt from VAT"), "exemption_reason")
    if is_small:
        return
    if country in EU | {"GB", "CH"} and not customer.address:
        yield Lack(_("The customer’s address"), "customer_address")
    if country in {"DE", "AT", "FR", "GB", "JP"} and not contents.supplied_from:
        yield Lack(_("The date of supply"), "supplied_from")
    if country == "FR" and contents.asks_for_payment and not contents.due_date:
        yield Lack(_("The due date"), "due_date")
    is_of_business = customer.vat_id and contents.asks_for_payment
    if country == "FR" and is_of_business and not contents.payment_terms:
        what = _("The payment terms: discount, interest on late payment, EUR 40 for recovery")
        yield Lack(what, "payment_terms")
    if country not in EU or not is_owed_by_customer:
        return
    if "intra_community" in categories and customer.country not in EU - {country}:
        what = _("A country of the European Union other than yours")
        yield Lack(what, "customer_country")
    # A reverse charge to a country outside of the EU has no VAT ID to name.
    has_its_vat_id = _is_vat_id(customer.vat_id, customer.country)
    if customer.country in EU | {""} and not has_its_vat_id:
        yield Lack(_("The customer’s VAT ID, from the customer’s country"), "customer_vat_id")


def _is_small(contents: Contents, country: str) -> bool:
    """Whether the law requires less because the amount is small. False while no line is known."""
    limit, currency = _SMALL.get(country, (0, ""))
    if not currency or currency != contents.currency or not contents.lines:
        return False
    sums = totals(contents.lines, currency, contents.prices_include_tax)
    return abs(sums.gross) <= limit * minor_units(currency)


def _is_vat_id(text: str, country: str) -> bool:
    try:
        return bool(text and clean_vat_id(text, country))
    except ValidationError:
        return False


def check_requirements(contents: Contents, seller: Seller) -> None:
    """Reject an invoice without values that the law of the seller's country requires.

    Raises:
        ValidationError: the error of a missing value is at its field; that of the profile is at no
            field.
    """
    errors: dict[str, list[object]] = {}
    for item in missing(seller, contents):
        message = (
            _("Your country’s law requires this. Add it to your profile: %(what)s.")
            if item.in_profile
            else _("Your country’s law requires this: %(what)s.")
        )
        field = NON_FIELD_ERRORS if item.in_profile else item.field
        error = ValidationError(message, "required_by_law", {"what": item.text})
        errors.setdefault(field, []).append(error)
    if errors:
        raise ValidationError(errors)


# Doubts -------------------------------------------------------------------------------------------

_ZERO_IN_EU = _(
    "0 % VAT to another country of the European Union? For a business, choose “Reverse charge” "
    "(services) or “Intra-community supply” (goods), and enter its VAT ID. Others pay VAT."
)
_ZERO_ABROAD = _(
    "0 % VAT to a customer abroad? Choose “Export” for goods or “Reverse charge” for services."
)
_ZERO_AT_HOME = _(
    "0 % VAT? Choose “Exempt from VAT” and give the reason, for example the paragraph of the law. "
    "Or choose “Zero rate”."
)
_CHARGED_IN_EU = _(
    "VAT to a business in another country of the European Union? Most often the business owes the "
    "VAT: choose “Reverse charge” (services) or “Intra-community supply” (goods), with 0 %."
)
_NOT_EXPORT = _("Export to a country of the European Union? Choose “Intra-community supply”.")
_BELOW_ZERO = _(
    "A total below zero? To cancel an invoice, open it and choose “Credit…”. The credit note names "
    "the invoice."
)


def doubts(seller: Seller, contents: Contents) -> Iterator[Lack]:
    """The values that may be wrong, and what to do. They may be intended, so nothing is refused."""
    shown = set()
    for doubt in _all_doubts(seller.country, contents):
        if doubt.text not in shown:
            shown.add(doubt.text)
            yield doubt


def _all_doubts(country: str, contents: Contents) -> Iterator[Lack]:
    to = contents.customer.country
    is_within_eu = country in EU and to in EU - {country}
    is_abroad = to not in {"", country}
    usual = {Decimal(rate) for place in (country, to) for rate in rates_of(place)}
    for at, line in enumerate(contents.lines if rates_of(country) else ()):
        if not line.vat_rate and not line.tax_category:
            zero = _ZERO_ABROAD if is_abroad else _ZERO_AT_HOME
            yield Lack(_ZERO_IN_EU if is_within_eu else zero, "tax_category", at)
        elif line.vat_rate not in usual:
            text = _("%(rate)s %% VAT? The rates of your country are %(rates)s %%.")
            rates = ", ".join(map(_readable, rates_of(country)[:-1]))
            yield Lack(text % {"rate": _readable(line.vat_rate), "rates": rates}, "vat_rate", at)
        elif line.vat_rate and is_within_eu and contents.customer.vat_id:
            yield Lack(_CHARGED_IN_EU, "tax_category", at)
        elif line.category == "export" and is_within_eu:
            yield Lack(_NOT_EXPORT, "tax_category", at)
    if contents.payment_terms and not _is_in_language_of(country, contents):
        text = _("The document is in %(language)s. Are the payment terms in this language, too?")
        yield Lack(text % _named_language(contents), "payment_terms")
    if contents.lines:
        sums = totals(contents.lines, contents.currency, contents.prices_include_tax)
        if sums.gross < 0:
            yield Lack(_BELOW_ZERO)


def _readable(rate: str | Decimal) -> str:
    return readable_decimal(Decimal(rate))


# Payment terms ------------------------------------------------------------------------------------


def language_of(customer: Customer) -> str:
    """The language of the document: that of the customer, or else that of the page."""
    return customer.language_or(get_language() or DEFAULT_LANGUAGE)


def without_foreign_terms(draft: Draft, seller: Seller, usual_terms: str) -> Draft:
    """`draft` without its payment terms, if they come from the profile and are in another language.

    The profile's `usual_terms` are taken to be in the language of documents within its country.
    """
    if draft.payment_terms != usual_terms or _is_in_language_of(seller.country, draft):
        return draft
    return replace(draft, payment_terms="")


def terms_left_out(typed: Draft) -> Lack:
    """The note of the form that `without_foreign_terms` left out the payment terms."""
    text = _(
        "The document is in %(language)s, so the payment terms of your profile are left out. To "
        "print terms, enter them in this language."
    )
    return Lack(text % _named_language(typed), "payment_terms")


def _is_in_language_of(country: str, contents: Contents) -> bool:
    return language_of(contents.customer) == language_of(Customer("", country=country))


def _named_language(contents: Contents) -> dict[str, str]:
    return {"language": DOCUMENT_LANGUAGES[language_of(contents.customer)]}


# VAT rates ----------------------------------------------------------------------------------------

#: The rates of countries in percent, the standard rate first. Rates change, so nothing is checked
#: against them, and any other rate can be typed. Compared on 2026-11-23 with the European
#: Commission's database "Taxes in Europe" as of 2026-09-29, and with the published rates of GB, CH,
#: NO and JP. The rates of regions (such as Madeira) and of a few goods (such as livestock in
#: Ireland) are left out.
_RATES = """
    AT 20 13 10 4.9, BE 21 12 6, BG 20 9, CY 19 9 5 3, CZ 21 12, DE 19 7, DK 25, EE 24 13 9,
    ES 21 10 4, FI 25.5 13.5 10, FR 20 10 5.5 2.1, GR 24 13 6, HR 25 13 5, HU 27 18 5, IE 23 13.5 9,
    IT 22 10 5 4, LT 21 12 5, LU 17 14 8 3, LV 21 12 5, MT 18 12 7 5, NL 21 9, PL 23 8 5,
    PT 23 13 6, RO 21 11, SE 25 12 6, SI 22 9.5 5, SK 23 19 5, GB 20 5, CH 8.1 3.8 2.6,
    NO 25 15 12, JP 10 8
"""
_BY_COUNTRY = {country: [*rates, "0"] for country, *rates in map(str.split, _RATES.split(","))}


def rates_of(country: str) -> list[str]:
    """The rates that a form offers, 0 as the last one; none for a country without rates here."""
    return _BY_COUNTRY.get(country, [])


def marked_if_reduced(line: Line, country: str) -> Line:
    """`line` with the category "reduced", if the law of the seller's country requires a mark."""
    reduced = map(Decimal, rates_of(country)[1:-1])
    if country == "JP" and not line.tax_category and line.vat_rate in reduced:
        return replace(line, tax_category="reduced")
    return line
