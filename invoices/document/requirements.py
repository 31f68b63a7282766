"""What the law of the seller's country requires on an invoice, as far as a program can tell.

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

Of other countries nothing is known. Rules that depend on facts that an invoice does not have, such
as the seller's turnover, are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.utils.translation import gettext_lazy as _

from invoices.document.amounts import totals
from invoices.document.invoice import Contents, Seller
from invoices.document.money import minor_units
from web.identifiers import EU, clean_vat_id

#: The amount with VAT up to which less is asked, in major units, and its currency.
_SMALL = {
    **dict.fromkeys(EU, (100, "EUR")),
    "DE": (250, "EUR"),
    "AT": (400, "EUR"),
    "FR": (0, "EUR"),
    "GB": (250, "GBP"),
    "CH": (400, "CHF"),
}
#: The customer, not the seller, owes the VAT. Such an invoice is never a small one.
_OWED_BY_CUSTOMER = {"reverse_charge", "intra_community"}


@dataclass(frozen=True)
class Case:
    """An invoice to be checked. `contents` is None before anything was typed."""

    seller: Seller
    is_named: bool
    contents: Contents | None = None

    @property
    def categories(self) -> set[str]:
        return {line.category for line in self.contents.lines} if self.contents else set()

    @property
    def has_vat(self) -> bool:
        lines = self.contents.lines if self.contents else ()
        return self.contents is None or any(line.vat_rate for line in lines)

    @property
    def has_vat_id(self) -> bool:
        """Whether the seller has one that fits the country. The profile may have an older one."""
        vat_id = self.seller.vat_id
        return bool(vat_id) and _is_vat_id(vat_id, self.seller.country)

    @property
    def is_small(self) -> bool:
        """Whether less is asked because of the amount."""
        if self.contents is None or self.categories & _OWED_BY_CUSTOMER:
            return False
        limit, currency = _SMALL.get(self.seller.country, (0, ""))
        sums = totals(self.contents.lines, self.contents.currency, self.contents.prices_include_tax)
        return self.contents.currency == currency and abs(sums.gross) <= limit * minor_units(
            currency
        )

    def lacks(self, name: str) -> bool:
        return self.contents is None or not getattr(self.contents, name)

    @property
    def lacks_customer_address(self) -> bool:
        return self.contents is None or not self.contents.customer.address

    @property
    def lacks_customer_vat_id(self) -> bool:
        """Whether the customer owes the VAT, and has no VAT ID that fits its country."""
        if self.contents is None or not self.categories & _OWED_BY_CUSTOMER:
            return False
        customer = self.contents.customer
        # A reverse charge to a country outside of the EU has no VAT ID to name.
        if customer.country and customer.country not in EU:
            return False
        return not customer.vat_id or not _is_vat_id(customer.vat_id, customer.country)

    @property
    def lacks_other_member_state(self) -> bool:
        if self.contents is None or "intra_community" not in self.categories:
            return False
        return self.contents.customer.country not in EU - {self.seller.country}


def _is_vat_id(text: str, country: str) -> bool:
    try:
        clean_vat_id(text, country)
    except ValidationError:
        return False
    return True


@dataclass(frozen=True)
class Requirement:
    """What the law of `countries` requires. `field` is one of the form, or of the profile."""

    countries: frozenset[str]
    field: str
    message: Any
    is_lacking: Callable[[Case], bool]
    in_profile: bool = False
    of_small: bool = False


_ALL = EU | {"GB", "CH", "JP"}
_WITH_SUPPLY_DATE = frozenset({"DE", "AT", "FR", "GB", "JP"})

_REQUIREMENTS = (
    # The profile
    Requirement(
        _ALL,
        "business_name",
        _("Your name or the name of your business"),
        lambda case: not case.is_named,
        in_profile=True,
        of_small=True,
    ),
    Requirement(
        EU | {"GB", "CH"},
        "business_address",
        _("Your address"),
        lambda case: not case.seller.address,
        in_profile=True,
        of_small=True,
    ),
    Requirement(
        frozenset({"DE"}),
        "tax_number",
        _("Your tax number or VAT ID"),
        lambda case: not case.has_vat_id and not case.seller.tax_number,
        in_profile=True,
    ),
    Requirement(
        EU - {"DE"},
        "vat_id",
        _("Your VAT ID, because you charge VAT"),
        lambda case: case.has_vat and not case.has_vat_id,
        in_profile=True,
    ),
    Requirement(
        frozenset({"GB", "CH"}),
        "vat_id",
        _("Your VAT ID, because you charge VAT"),
        lambda case: case.has_vat and not case.has_vat_id,
        in_profile=True,
        of_small=True,
    ),
    Requirement(
        frozenset({"JP"}),
        "vat_id",
        _("Your registration number, because you charge consumption tax"),
        lambda case: case.has_vat and not case.has_vat_id,
        in_profile=True,
    ),
    Requirement(
        EU,
        "vat_id",
        _("Your VAT ID, because the customer owes the VAT"),
        lambda case: bool(case.categories & _OWED_BY_CUSTOMER) and not case.has_vat_id,
        in_profile=True,
    ),
    Requirement(
        frozenset({"FR"}),
        "tax_number",
        _("Your SIREN or SIRET number"),
        lambda case: not case.seller.tax_number,
        in_profile=True,
    ),
    # The invoice
    Requirement(
        EU | {"GB", "CH"},
        "customer_address",
        _("The customer’s address"),
        lambda case: case.lacks_customer_address,
    ),
    Requirement(
        _WITH_SUPPLY_DATE,
        "supplied_from",
        _("The date of supply"),
        lambda case: case.lacks("supplied_from"),
    ),
    Requirement(
        frozenset({"FR"}), "due_date", _("The due date"), lambda case: case.lacks("due_date")
    ),
    Requirement(
        frozenset({"FR"}),
        "payment_terms",
        _("The payment terms: discount, interest on late payment, EUR 40 for recovery"),
        lambda case: (
            case.contents is not None
            and bool(case.contents.customer.vat_id)
            and not case.contents.payment_terms
        ),
    ),
    Requirement(
        EU,
        "customer_country",
        _("A country of the European Union other than yours"),
        lambda case: case.lacks_other_member_state,
    ),
    Requirement(
        EU,
        "customer_vat_id",
        _("The customer’s VAT ID, from the customer’s country"),
        lambda case: case.lacks_customer_vat_id,
    ),
    Requirement(
        EU,
        "exemption_reason",
        _("Why a line is exempt from VAT"),
        lambda case: "exempt" in case.categories and case.lacks("exemption_reason"),
        of_small=True,
    ),
)


def missing(case: Case) -> Iterator[Requirement]:
    """What the law requires and `case` lacks. Nothing if the seller names no country."""
    is_small = case.is_small
    seen = set()
    for each in _REQUIREMENTS:
        applies = case.seller.country in each.countries and (each.of_small or not is_small)
        if applies and each.field not in seen and each.is_lacking(case):
            seen.add(each.field)
            yield each


def check_requirements(contents: Contents, seller: Seller, *, is_named: bool) -> None:
    """Reject an invoice that lacks what the law of the seller's country requires.

    `is_named` is whether the profile has a name: a username is not one.

    Raises:
        ValidationError: at each field of the form; what the profile lacks is at none.
    """
    errors: dict[str, list[Any]] = {}
    for each in missing(Case(seller, is_named, contents)):
        message = (
            _("Your country’s law requires this. Add it to your profile: %(what)s.")
            if each.in_profile
            else _("Your country’s law requires this: %(what)s.")
        )
        field = NON_FIELD_ERRORS if each.in_profile else each.field
        error = ValidationError(message, "required_by_law", {"what": each.message})
        errors.setdefault(field, []).append(error)
    if errors:
        raise ValidationError(errors)
