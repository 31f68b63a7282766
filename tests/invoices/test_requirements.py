"""What the law of the seller's country requires on an invoice."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from invoices.document.amounts import Line
from invoices.document.identifiers import EU
from invoices.document.invoice import Customer, Draft, Seller
from invoices.document.requirements import check_requirements, doubts, missing, rates_of
from tests.invoices.samples import a_line

IDS = {
    "DE": "DE136695976",
    "AT": "ATU13585627",
    "FR": "FR40303265045",
    "GB": "GB980780684",
    "CH": "CHE-107.787.577 MWST",
    "JP": "T5835678256246",
    "IT": "IT00743110157",
}


def seller(country: str, **changes: str) -> Seller:
    """A seller whose profile is complete."""
    values = {"vat_id": IDS.get(country, ""), "country": country, "tax_number": "303265045"}
    return Seller(**{"name": "Ann Ltd", "address": "Way 1", **values} | changes)


def whole(*lines: Line, **changes: Any) -> Draft:
    """A draft that lacks nothing anywhere."""
    draft = Draft(
        Customer("Bob", "Road 2", IDS["FR"], "FR"),
        lines or (a_line("10"),),
        "EUR",
        supplied_from=date(2026, 3, 14),
        due_date=date(2026, 4, 14),
        payment_terms="No discount. Interest 12 %, EUR 40.",
    )
    return replace(draft, **changes)


def plain(*lines: Line, **changes: Any) -> Draft:
    """A draft with what every form has, and nothing more."""
    lines = lines or (a_line("10"),)
    return replace(Draft(Customer("Bob"), lines, "EUR"), **changes)


def lacks(draft: Draft, seller: Seller) -> set[str]:
    return {item.field for item in missing(seller, draft)}


def of_category(category: str) -> Line:
    """A line of a small amount."""
    return a_line("1", "1", "0", category=category)


EXEMPT = of_category("exempt")


BUSINESS = {"name", "address"}
#: What profile and invoice must have, by country.
ASKED: dict[str, tuple[set[str], set[str]]] = {
    "DE": ({*BUSINESS, "tax_number"}, {"customer_address", "supplied_from"}),
    "AT": ({*BUSINESS, "vat_id"}, {"customer_address", "supplied_from"}),
    "IT": ({*BUSINESS, "vat_id"}, {"customer_address"}),
    "FR": ({*BUSINESS, "vat_id", "tax_number"}, {"customer_address", "supplied_from", "due_date"}),
    "GB": ({*BUSINESS, "vat_id"}, {"customer_address", "supplied_from"}),
    "CH": ({*BUSINESS, "vat_id"}, {"customer_address"}),
    "JP": ({"name", "vat_id"}, {"supplied_from"}),
    # Nothing where no law is known.
    **dict.fromkeys(("US", "BR", ""), (set(), set())),
}


@pytest.mark.parametrize(
    ("country", "of_profile", "of_invoice"), [(k, *v) for k, v in ASKED.items()]
)
def test_profile_and_invoice_must_have_what_the_country_requires(
    country: str, of_profile: set[str], of_invoice: set[str]
) -> None:
    nobody = Seller("ann", country=country, is_named=False)
    complete = seller(country)

    assert lacks(whole(), nobody) == of_profile
    assert lacks(plain(), complete) == of_invoice
    # The page shows the same before anything is typed.
    assert {item.field for item in missing(complete)} == of_invoice
    assert lacks(plain(), nobody) == of_profile | of_invoice
    assert lacks(whole(), complete) == set()
    check_requirements(whole(), complete)


@pytest.mark.parametrize("country", IDS)
def test_a_vat_id_that_was_stored_before_it_was_checked_must_fit_the_country(country: str) -> None:
    older = seller(country, vat_id="1", tax_number="")

    assert lacks(whole(), older) >= ({"tax_number"} if country == "DE" else {"vat_id"})


def test_a_tax_number_is_enough_in_germany_and_a_vat_id_too() -> None:
    assert lacks(whole(), seller("DE", vat_id="")) == set()
    assert lacks(whole(), seller("DE", tax_number="")) == set()


@pytest.mark.parametrize("country", ["AT", "FR", "GB", "CH", "JP"])
def test_a_seller_who_charges_no_vat_needs_no_vat_id(country: str) -> None:
    exempt = whole(EXEMPT, exemption_reason="Small business")

    assert lacks(exempt, seller(country, vat_id="")) == set()
    assert lacks(whole(), seller(country, vat_id="")) == {"vat_id"}


@pytest.mark.parametrize(
    ("country", "currency", "limit", "rate"),
    [
        ("DE", "EUR", "250", "19"),
        ("AT", "EUR", "400", "20"),
        ("IT", "EUR", "100", "22"),
        ("GB", "GBP", "250", "20"),
        ("CH", "CHF", "400", "8.1"),
        # In France, nothing is left out.
        ("FR", "EUR", "0", "20"),
    ],
)
def test_less_is_required_up_to_a_small_amount_with_vat(
    country: str, currency: str, limit: str, rate: str
) -> None:
    # In the Union, the seller's numbers are not required either.
    numbers = {"vat_id": "", "tax_number": ""} if currency == "EUR" else {}

    def small(price: str, currency: str = currency) -> set[str]:
        draft = plain(a_line("1", price, rate), currency=currency, prices_include_tax=True)
        return lacks(draft, seller(country, **numbers))

    assert small(limit) == set()
    for price in (str(Decimal(limit) + Decimal("0.01")), f"-{Decimal(limit) + 1}"):
        assert "customer_address" in small(price)
    assert "customer_address" in small(limit, "USD")
    cheap = plain(a_line("1", "1"), currency=currency)
    assert "address" in lacks(cheap, seller(country, address=""))


@pytest.mark.parametrize("category", ["reverse_charge", "intra_community"])
def test_a_customer_who_owes_the_vat_needs_a_vat_id_of_the_country(category: str) -> None:
    draft = whole(of_category(category))

    assert lacks(draft, seller("DE")) == set()
    for vat_id in ("", IDS["AT"]):
        other = replace(draft, customer=replace(draft.customer, vat_id=vat_id))
        assert lacks(other, seller("DE")) == {"customer_vat_id"}
    assert lacks(draft, seller("DE", vat_id="")) == {"vat_id"}


def test_an_intra_community_supply_goes_to_another_member_state() -> None:
    for country in ("", "DE", "US"):
        customer = Customer("Bob", "Road 2", IDS["FR"], country)
        draft = whole(of_category("intra_community"), customer=customer)
        assert "customer_country" in lacks(draft, seller("DE"))


def test_a_reverse_charge_outside_of_the_union_needs_no_vat_id() -> None:
    draft = whole(of_category("reverse_charge"), customer=Customer("B", "R", "", "CH"))

    assert lacks(draft, seller("DE")) == set()


@pytest.mark.parametrize("country", sorted(EU))
def test_an_exempt_line_needs_a_reason_in_the_union(country: str) -> None:
    assert lacks(whole(EXEMPT), seller(country)) == {"exemption_reason"}
    assert lacks(whole(EXEMPT, exemption_reason="§ 19 UStG"), seller(country)) == set()


def test_terms_are_required_between_businesses_in_france() -> None:
    assert lacks(whole(payment_terms=""), seller("FR")) == {"payment_terms"}
    private = Customer("Bob", "Road 2")
    assert lacks(whole(payment_terms="", customer=private), seller("FR")) == set()


# Doubts -------------------------------------------------------------------------------------------

ZERO = a_line("1", "100", "0")
OWED = a_line("1", "100", "0", category="reverse_charge")
CREDIT = a_line("-1", "100", "19")


def to(country: str, vat_id: str = "") -> Customer:
    return Customer("Bob", "Road 2", vat_id, country)


#: Seller's country, customer, lines, and the beginnings of what is asked.
DOUBTS: list[tuple[str, Customer, list[Line], list[str]]] = [
    ("DE", to("DE"), [a_line(), a_line("1", "1", "7")], []),
    (
        "DE",
        to("DE"),
        [a_line("1", "1", "18")],
        ["18 % VAT? The rates of your country are 19, 7 %."],
    ),
    # A consumer, whose country's rate applies.
    ("DE", to("FR"), [a_line("1", "1", "5.5")], []),
    ("DE", to("FR"), [ZERO, ZERO], ["0 % VAT to another country of the European Union?"]),
    ("DE", to("FR", IDS["FR"]), [OWED], []),
    ("DE", to("FR", IDS["FR"]), [a_line()], ["VAT to a business in another country"]),
    ("DE", to("CH"), [ZERO], ["0 % VAT to a customer abroad?"]),
    ("GB", to("FR"), [ZERO], ["0 % VAT to a customer abroad?"]),
    ("DE", to(""), [ZERO], ["0 % VAT? Choose “Exempt from VAT”"]),
    ("GB", to("GB"), [of_category("zero")], []),
    ("DE", to("FR", IDS["FR"]), [of_category("export")], ["Export to a country of the European"]),
    ("DE", to("US"), [of_category("export")], []),
    ("DE", to("DE"), [CREDIT], ["A total below zero?"]),
    ("", to(""), [CREDIT], ["A total below zero?"]),
    ("DE", to("DE"), [CREDIT, a_line()], []),
    ("US", to("FR"), [ZERO, a_line("1", "1", "18")], []),
]


@pytest.mark.parametrize(("country", "customer", "lines", "asked"), DOUBTS)
def test_what_may_be_wrong_is_asked_once_and_refuses_nothing(
    country: str, customer: Customer, lines: list[Line], asked: list[str]
) -> None:
    draft = whole(*lines, customer=customer, payment_terms="")
    found = [str(doubt.text) for doubt in doubts(seller(country), draft)]

    assert [text[: len(start)] for text, start in zip(found, asked, strict=True)] == asked
    assert not lacks(draft, seller(country)) & {
        doubt.field for doubt in doubts(seller(country), draft)
    }


def test_the_usual_rates_of_each_country_are_not_asked_about_at_home() -> None:
    for country in sorted(EU | {"GB", "CH", "NO", "JP"}):
        usual = [a_line("1", "1", rate) for rate in rates_of(country)[:-1]]
        assert list(doubts(seller(country), whole(*usual, customer=to(country)))) == [], country


@pytest.mark.parametrize(
    ("country", "customer", "asked"),
    [
        ("DE", to("FR"), {"payment_terms"}),
        ("DE", replace(to("FR"), language="de"), set()),
        ("DE", to("AT"), set()),
        # The page is in English.
        ("", to("DE"), {"payment_terms"}),
        ("", to(""), set()),
    ],
)
def test_terms_are_asked_about_if_the_document_has_another_language_than_the_seller(
    country: str, customer: Customer, asked: set[str]
) -> None:
    draft = whole(customer=customer)
    assert {doubt.field for doubt in doubts(seller(country), draft)} == asked
    without = replace(draft, payment_terms="")
    assert not {doubt.field for doubt in doubts(seller(country), without)}
