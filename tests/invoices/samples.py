"""Invoices for tests that need no engine, and strategies that draw them."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from invoices.document.amounts import TAX_CATEGORIES, Line
from invoices.document.invoice import Customer, Draft, Invoice, Seller, draw_up
from invoices.models import InvoiceState
from invoices.store.records import Record

SELLER = Seller("Łódź Őrség Kft.", "Ulica Żółta 5\n90-001 Łódź", "PL1234567890")
FULL_SELLER = Seller(
    "Ann GmbH",
    "Hauptstraße 1\n10115 Berlin",
    "DE136695976",
    "DE",
    tax_number="12/345/67890",
    iban="DE89370400440532013000",
    bic="COBADEFFXXX",
    account_holder="Ann Example",
)
CUSTOMER = Customer("株式会社山田商店", "東京都千代田区１－１")

CURRENCIES = st.sampled_from(["EUR", "USD", "JPY", "KWD", "CLP", "TND"])
RATES = st.sampled_from([Decimal(rate) for rate in ("0", "7", "8.1", "19", "19.00", "20")])
NUMBERS = st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=4)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = TEXTS.filter(str.strip)
CATEGORIES = st.sampled_from(["", *TAX_CATEGORIES])
LINES = st.builds(Line, NAMES, NUMBERS, NUMBERS, RATES)
OTHER_LINES = st.builds(Line, NAMES, NUMBERS, NUMBERS, RATES, CATEGORIES)
COUNTRIES = st.sampled_from(["", "DE", "FR", "JP", "US"])
DATES = st.none() | st.dates(date(1000, 1, 1))


def a_line(
    quantity: str = "1",
    unit_price: str = "100",
    vat_rate: str = "19",
    description: str = "Work",
    category: str = "",
) -> Line:
    """One line; numbers as text, so that each is exact."""
    return Line(description, Decimal(quantity), Decimal(unit_price), Decimal(vat_rate), category)


def an_invoice(*lines: Line, currency: str = "EUR", **changes: Any) -> Invoice:
    """Invoice 2026-000042 of the lines (one of 100 when none is given)."""
    draft = Draft(CUSTOMER, lines or (a_line(),), currency)
    invoice = draw_up(draft, "account-1", SELLER, date(2026, 11, 21), "request-1")
    return replace(invoice, **({"number": 42} | changes))


def a_voided_invoice(**changes: Any) -> Invoice:
    """The same, voided."""
    voided_at = datetime(2026, 11, 23, 12, tzinfo=UTC)
    return replace(
        an_invoice(),
        **{"status": "voided", "void_reason": "Wrong customer", "voided_at": voided_at} | changes,
    )


#: Lines of usual amounts, with the category of their rate.
PLAIN_LINES = st.builds(
    a_line,
    st.decimals(-9, 99, places=3).filter(bool).map(str),
    st.decimals(-999, 9999, places=2).map(str),
    st.sampled_from(["0", "5.5", "7", "8.125", "19"]),
)


@st.composite
def invoices(draw: st.DrawFn) -> Invoice:
    """Any issued or voided invoice."""
    draft = Draft(
        draw(st.builds(Customer, NAMES, TEXTS, TEXTS, COUNTRIES, TEXTS)),
        tuple(draw(st.lists(LINES | OTHER_LINES, min_size=1, max_size=4))),
        draw(CURRENCIES),
        draw(TEXTS),
        prices_include_tax=draw(st.booleans()),
        supplied_from=draw(DATES),
        supplied_to=draw(DATES),
        due_date=draw(DATES),
        payment_terms=draw(TEXTS),
        buyer_reference=draw(TEXTS),
        exemption_reason=draw(TEXTS),
        issued_on=draw(st.dates(date(1000, 1, 1))),
    )
    numbers = [TEXTS] * 8  # of the tax office and of the bank
    seller = draw(st.builds(Seller, NAMES, TEXTS, TEXTS, COUNTRIES, *numbers))
    invoice = draw_up(draft, "account-1", seller, date(2026, 1, 1), "request-1")
    invoice = replace(invoice, number=draw(st.integers(1, 10**15 - 1)))
    if not draw(st.booleans()):
        return invoice
    voided_at = draw(st.datetimes(timezones=st.just(UTC)))
    return replace(invoice, status="voided", void_reason=draw(NAMES), voided_at=voided_at)


def record_of(invoice: Invoice) -> Record:
    """The record of an invoice to which nothing happened."""
    return Record(invoice, InvoiceState(invoice.series, invoice.number))
