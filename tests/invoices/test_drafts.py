"""What `issue_invoice` rejects before any request, as forms and commands do."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from invoices.document.invoice import Customer, Draft, Seller
from invoices.store.issuing import issue_invoice
from invoices.store.records import find_invoice
from tests.invoice_factories import SELLER, assert_whole, draft, issued, new_account
from tests.invoices.samples import a_line
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def account() -> str:
    return new_account()


def of_line(**changes: Any) -> Draft:
    return draft(lines=(replace(a_line(), **changes),))


def of(**changes: Any) -> Draft:
    return replace(draft(), **changes)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (of(lines=()), "The lines: An invoice needs at least one line."),
        (of(lines=(a_line(),) * 201), "The lines: An invoice has at most 200 lines."),
        (of(lines=None), "The lines: must be a Sequence, not None."),
        (of(customer=Customer(" ")), "The customer's name: This field is required."),
        (of(customer=Customer("\u2800 \u200e")), "The customer's name: This field is required."),
        (of(customer=None), "The customer: must be a Customer, not None."),
        (of(customer=Customer("Bob", 5)), "The customer's address: must be a str, not 5."),  # type: ignore[arg-type]
        (
            of(customer=Customer("Bob", vat_id=b"x")),
            "The customer's VAT id: must be a str, not b'x'.",
        ),  # type: ignore[arg-type]
        (of(note=None), "The note: must be a str, not None."),
        (of(lines="x"), "Line 1: must be a Line, not 'x'."),
        (of(customer=Customer(None)), "The customer's name: must be a str, not None."),  # type: ignore[arg-type]
        (of(currency="ZZZ"), "The currency: Enter a currency code such as EUR."),
        (of(currency="eur"), "The currency: Enter a currency code such as EUR."),
        (of(currency=""), "The currency: This field is required."),
        *[
            (of(issued_on=date(year, 1, 1)), "The issue date: Enter a year from 1970 to 2099.")
            for year in (900, 1900, 1969, 2100, 2150)
        ],
        (of(issued_on="2026-03-14"), "The issue date: must be a date, not '2026-03-14'."),
        (of(issued_on=datetime(2026, 3, 14)), "The issue date: Use a date without a time."),  # noqa: DTZ001
        (of_line(description=""), "Line 1, description: This field is required."),
        (of_line(quantity=Decimal(0)), "Line 1, quantity: Enter a number other than 0."),
        (of_line(quantity=2), "Line 1, quantity: must be a Decimal, not 2."),
        (of_line(quantity=0.1), "Line 1, quantity: must be a Decimal, not 0.1."),
        (of_line(quantity="1"), "Line 1, quantity: must be a Decimal, not '1'."),
        (of_line(quantity=Decimal("Infinity")), "Line 1, quantity: Enter a number such as 12.50."),
        (of_line(unit_price=Decimal("NaN")), "Line 1, unit price: Enter a number such as 12.50."),
        (
            of_line(unit_price=Decimal(10) ** 41),
            "Line 1, unit price: Use at most 12 digits before the decimal point.",
        ),
        (
            of(lines=(a_line(), a_line(vat_rate="-1"))),
            "Line 2, VAT rate: Enter a number from 0 to 100.",
        ),
        (
            of(lines=(a_line("1000", "999999999999"),) * 2),
            "The lines: The total of the invoice is too large.",
        ),
        # The net alone: what the second line takes off is taken off twice from the gross.
        (
            of(
                lines=(
                    a_line("150", "100000000000", "0"),
                    a_line("-40", "100000000000", "100"),
                )
            ),
            "The lines: The total of the invoice is too large.",
        ),
    ],
)
def test_a_draft_that_no_form_allows_is_rejected_before_any_request(
    account: str, requests_sent: Requests, bad: Draft, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        issue_invoice(bad, account=account, seller=SELLER)

    assert requests_sent.operations == []


@pytest.mark.parametrize(
    ("seller", "message"),
    [
        (Seller(""), "The seller's name: This field is required."),
        (Seller(None), "The seller's name: must be a str, not None."),  # type: ignore[arg-type]
        (Seller("We", 5), "The seller's address: must be a str, not 5."),  # type: ignore[arg-type]
        (None, "The seller: must be a Seller, not None."),
    ],
)
def test_a_seller_that_is_not_allowed_is_rejected_before_any_request(
    account: str, requests_sent: Requests, seller: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        issue_invoice(draft(), account=account, seller=seller)

    assert requests_sent.operations == []


@pytest.mark.parametrize(
    "language", ["", "x", "en_US", "../en", "en\n", "e" * 9, "en-" * 9, None, 5]
)
def test_a_language_that_is_not_a_tag_is_rejected_before_any_request(
    account: str, requests_sent: Requests, language: Any
) -> None:
    with pytest.raises(ValueError, match=r"^The language:? must be a"):
        issue_invoice(draft(), account=account, seller=SELLER, language=language)

    assert requests_sent.operations == []


@pytest.mark.parametrize("language", ["ja", "pt-BR", "zh-Hant-TW"])
def test_an_invoice_may_be_in_any_language_with_a_tag(account: str, language: str) -> None:
    invoice = issue_invoice(draft(), account=account, seller=SELLER, language=language)

    assert find_invoice(account, invoice.label).language == language


@pytest.mark.parametrize("request_id", ["", " ", "x" * 101, "x" * 3_000, "a\nb", "\ud800", 5])
def test_a_request_id_that_no_command_allows_is_rejected_before_any_request(
    account: str, requests_sent: Requests, request_id: Any
) -> None:
    with pytest.raises(ValueError, match=r"^The request id: "):
        issued(account, request_id=request_id)

    assert requests_sent.operations == []


def test_a_uuid_is_the_same_request_id_as_its_text(account: str) -> None:
    request_id = uuid.uuid4()

    first = issued(account, request_id=request_id)

    assert first.request_id == str(request_id)
    assert issued(account, request_id=str(request_id)) == first
    assert_whole(account, 1)


@pytest.mark.parametrize("account", ["", "t#b", "#", None, 5])
def test_an_account_that_could_share_keys_is_rejected_before_any_request(
    requests_sent: Requests, account: Any
) -> None:
    with pytest.raises(ValueError, match="without #"):
        issued(account)

    assert requests_sent.operations == []


def test_an_account_whose_keys_look_like_guards_is_rejected() -> None:
    with pytest.raises(ValueError, match="keys of guard items begin with it"):
        issued("requestId")

    assert issued("requestIds").number == 1


def test_a_request_id_with_a_number_sign_belongs_to_one_account(account: str) -> None:
    first = issued(account, request_id="b#c")

    with pytest.raises(ValueError, match="without #"):
        issued(f"{account}#b", request_id="c")

    assert issued(account, request_id="b#c") == first
    assert issued(account, request_id="c").number == 2
    assert_whole(account, 2)
