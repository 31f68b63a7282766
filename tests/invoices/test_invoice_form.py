"""A new invoice by the profile: what the form begins with and asks for, and who the seller is."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.emails.links import mark_confirmed
from accounts.models import User
from accounts.services import edit_profile
from invoices.document.invoice import Invoice
from invoices.models import InvoiceItem
from invoices.pages.customers import NewCustomerForm
from invoices.store.lists import all_invoices
from tests.invoice_factories import sell_as, stored_numbers
from tests.invoices.forms import LINE, NEW, typed
from tests.pages import Page
from tests.requests import Requests

#: What a seller in Germany needs.
GERMAN = {
    "name": "Ann GmbH",
    "address": "Weg 1\nBerlin",
    "country": "DE",
    "vat_id": "DE136695976",
    "iban": "DE89370400440532013000",
}
#: What the customer and the draft of such a seller need.
DETAILS = {"customer_address": "Rue 2\r\nParis", "supplied_from": "2026-03-01"}


def issued(user: User) -> list[Invoice]:
    return [*all_invoices(user.pk, timezone.localdate().year)]


# What the form begins with ------------------------------------------------------------------------


def currency_of(page: Any) -> str:
    """The currency that a page has chosen."""
    [chosen] = re.findall(r'<option value="([A-Z]{3})" selected>', page.content.decode())
    return str(chosen)


def test_a_form_begins_with_what_the_profile_says_and_folds_away_what_is_blank(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In Tokyo it is the next day, and the next year.
    moment = datetime(2026, 12, 31, 16, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: moment)

    def begun(**profile: str) -> tuple[str, str, str, int]:
        """Currency, due date and payment terms of a new form, and how many parts are open."""
        sell_as(ann, **profile)
        shown = client.get(NEW)
        page = Page(shown)
        dates = page.value("due_date"), page.value("payment_terms")
        return currency_of(shown), *dates, shown.content.decode().count(' class="part" open')

    assert begun() == ("EUR", "", "", 0)
    assert begun(country="JP") == ("JPY", "", "", 0)
    # Since 2026-01-01.
    assert begun(country="BG") == ("EUR", "", "", 0)
    terms = {"payment_days": "14", "payment_terms": "Within 14 days."}
    edit_profile(ann, time_zone="Asia/Tokyo")
    whole = begun(currency="USD", **terms)
    assert whole == ("USD", "2027-01-15", "Within 14 days.", 1)


def test_a_part_with_an_error_or_a_value_is_open(client: Client, ann: User) -> None:
    def open_parts(**values: str) -> int:
        return client.post(NEW, typed(**values)).content.decode().count('class="part" open')

    wrong = {"customer_name": ""}
    assert open_parts(**wrong) == 0
    assert open_parts(**wrong, customer_vat_id="FR1") == 1
    assert open_parts(**wrong, due_date="soon", buyer_reference="A 1") == 2


def test_midnight_and_the_year_are_those_of_the_seller(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_profile(ann, time_zone="Asia/Tokyo")
    for moment, issued_at in (
        (datetime(2026, 12, 31, 14, 59, 59, tzinfo=UTC), date(2026, 12, 31)),
        (datetime(2026, 12, 31, 15, 0, 0, tzinfo=UTC), date(2027, 1, 1)),
    ):
        monkeypatch.setattr(timezone, "now", lambda moment=moment: moment)

        # A due date on the day of the invoice is not in the past.
        response = client.post(NEW, typed(due_date=issued_at.isoformat()))

        assert response["Location"] == f"/invoices/{issued_at.year}-000001/"
        assert {invoice.issued_at for invoice in all_invoices(ann.pk, issued_at.year)} == {
            issued_at
        }


# What the law requires ----------------------------------------------------------------------------


def test_errors_of_lines_dates_profile_and_law_are_shown_at_once_with_links_to_their_fields(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    sell_as(ann, country="DE", name="Ann \U0001f986")
    day_before = timezone.localdate() - timedelta(days=1)
    values = {"due_date": f"{day_before}", "supplied_from": "tomorrow", "customer_country": "FR"}
    blank = client.get(NEW).content.decode()
    requests_sent.clear()

    # The law requires less of a small amount.
    line = LINE | {"description": "", "quantity": "20"}
    errors = Page(client.post(NEW, typed(line, **values))).errors

    fields = {"due_date", "lines-0-description", "supplied_from", "customer_address"}
    assert errors.keys() == {"", *fields}
    assert errors["supplied_from"] == ["Enter a date such as 2026-11-21."]
    general = " ".join(errors[""])
    for part in ("Change your profile first", "Your address", "also in the lines below"):
        assert part in general
    # An amount that cannot be read may be large.
    unread = Page(client.post(NEW, typed(LINE | {"quantity": "x"}, **values))).errors
    assert unread.keys() == {"", *fields} - {"lines-0-description"} | {"lines-0-quantity"}
    assert "TransactWriteItems" not in requests_sent.operations
    # The page says the same before anything is typed.
    for name in ("address", "tax_number"):
        assert f'name="leave" value="/invoices/seller/#id_{name}"' in blank
    for name in ("customer_address", "supplied_from"):
        assert f'href="#id_{name}"' in blank


@pytest.mark.parametrize(
    ("dates", "field", "said"),
    [
        ({"supplied_to": "2026-03-31"}, "supplied_from", "Enter the first day of supply."),
        (
            {"supplied_from": "2026-03-31", "supplied_to": "2026-03-30"},
            "supplied_to",
            "Enter a day that is not before the first day of supply.",
        ),
        (
            {"due_date": "2026-01-01"},
            "due_date",
            "Enter a day that is not before the date of the invoice.",
        ),
    ],
)
def test_a_date_that_contradicts_another_one_is_refused_at_its_field(
    client: Client, ann: User, dates: dict[str, str], field: str, said: str
) -> None:
    sell_as(ann)

    page = Page(client.post(NEW, typed(LINE, **dates)))

    assert page.errors[field] == [said]
    assert {name: page.value(name) for name in dates} == dates
    assert stored_numbers(ann.pk, timezone.localdate().year) == []


def test_a_supply_may_take_one_day_and_payment_may_be_due_at_once(
    client: Client, ann: User
) -> None:
    day = date(2026, 3, 31)
    today = timezone.localdate()

    client.post(NEW, typed(LINE, supplied_from=f"{day}", supplied_to=f"{day}", due_date=f"{today}"))

    [invoice] = issued(ann)
    assert (invoice.supplied_from, invoice.supplied_to, invoice.due_date) == (day, day, today)


def test_a_category_without_vat_needs_no_rate_and_every_other_one_does(
    client: Client, ann: User
) -> None:
    def sent(rate: str, category: str) -> Any:
        line = LINE | {"vat_rate": rate, "tax_category": category}
        return client.post(NEW, typed(line))

    for category in ("reverse_charge", "exempt", "zero"):
        assert sent("", category).status_code == 302
        [line] = issued(ann)[0].lines
        assert (line.vat_rate, line.category) == (0, category)
    required = ["This field is required."]
    for category in ("", "standard", "reduced"):
        assert Page(sent("", category)).errors["lines-0-vat_rate"] == required
    assert "Enter a rate above 0" in Page(sent("0", "standard")).errors["lines-0-vat_rate"][0]


def test_the_seller_is_checked_and_printed_as_the_profile_is_at_that_moment(
    client: Client, ann: User
) -> None:
    sell_as(ann, **GERMAN)
    form = typed(**DETAILS)
    assert "<strong><bdi>Ann GmbH</bdi></strong>" in client.get(NEW).text
    sell_as(ann, name="Ann AG", address="")

    page = Page(client.post(NEW, form))
    assert "Your address" in page.errors[""][0]
    assert "Ann AG" in page.text

    sell_as(ann, address="Ring 9")
    client.post(NEW, form)
    [invoice] = issued(ann)
    assert (invoice.seller.name, invoice.seller.address) == ("Ann AG", "Ring 9")


# The invoice's page -------------------------------------------------------------------------------


def test_the_page_of_an_invoice_shows_every_field(client: Client, ann: User) -> None:
    sell_as(ann, **GERMAN, bic="COBADEFFXXX", account_holder="Ann Holder", tax_number="12/3")
    without_vat = (
        LINE | {"vat_rate": "0", "tax_category": name} for name in ("intra_community", "exempt")
    )
    values = {
        "supplied_to": "2026-03-31",
        "due_date": f"{timezone.localdate()}",
        "payment_terms": "No discount.",
        "buyer_reference": "PO 7",
        "exemption_reason": "§ 4 UStG",
        "customer_vat_id": "FR40303265045",
        "customer_country": "FR",
        "customer_language": "en",
        "customer_number": "K 12",
        "customer_email": "bob@example.org",
        "prices_include_tax": "on",
        "note": "Thank you.",
    }
    form = typed(LINE, *without_vat, **DETAILS | values)

    text = Page(client.get(client.post(NEW, form)["Location"])).text

    for shown in (
        *("Germany", "France", "DE136695976", "FR40303265045", "12/3", "K 12", "bob@example.org"),
        *("Period of supply", "March 1, 2026", "March 31, 2026", "Due date", "PO 7"),
        *("No discount.", "DE89 3704 0044 0532 0130 00", "COBADEFFXXX", "Ann Holder"),
        *("Intra-community supply: VAT 0% on €100.00", "Exempt from VAT: VAT 0% on €100.00"),
        *("Exempt from VAT: § 4 UStG", "Prices include VAT", "With VAT, EUR", "Thank you."),
        "VAT 19% on €84.03",
    ):
        assert shown in text, shown


def test_japans_reduced_rate_is_marked(client: Client, ann: User) -> None:
    line = {"description": "Tea", "quantity": "1", "unit_price": "108", "vat_rate": "8"}
    cup = line | {"description": "Cup", "vat_rate": "10"}
    # A contract from before 2019 has the old standard rate of 8 percent.
    lease = line | {"description": "Lease", "tax_category": "standard"}

    def text() -> str:
        form = typed(line, cup, lease, currency="JPY", supplied_from="2026-03-01")
        return Page(client.post(NEW, form, follow=True)).text

    assert "※" not in text()
    sell_as(ann, country="JP", name="山田商店", vat_id="T5835678256246")
    marked = text()
    assert re.findall(r"(\w+) ※", marked) == ["Tea"]
    assert "※ Items at the reduced tax rate" in marked


def test_a_price_is_asked_about_only_if_its_currency_has_decimals(
    client: Client, ann: User
) -> None:
    for currency, price, shown in (
        ("JPY", "300,000", "¥300,000"),
        ("JPY", "1.080", ""),
        ("jpy", "1,080", "¥1,080"),
        ("EUR", "1,080", ""),
    ):
        line = LINE | {"quantity": "1", "unit_price": price}
        values = typed(line, currency=currency)

        response = client.post(NEW, values, follow=True)

        refused = Page(response).errors.get("lines-0-unit_price", [""])[0]
        assert ("can be either" in refused) == (not shown)
        assert shown in response.content.decode()
        if currency.isupper():
            assert client.post("/invoices/preview/", values).json()["lines"] == [shown]


def test_a_domestic_invoice_is_an_electronic_one_and_the_form_says_what_is_missing(
    client: Client, ann: User
) -> None:
    def asked(page: Any) -> str:
        also = Page(page).text.partition("electronic invoice (EN 16931), also enter:")[2]
        return also.partition("Issue the invoice")[0]

    sell_as(ann, **GERMAN)
    new = client.get(NEW)
    assert '<option value="DE" selected>' in new.content.decode()
    for lack in ("The customer’s address", "The due date or the payment terms"):
        assert lack in asked(new)
    assert "country" not in asked(new)
    # A form that is refused also says what the profile lacks.
    sell_as(ann, address="")
    form = typed(**DETAILS, payment_terms="Now.", customer_country="DE")
    refused = client.post(NEW, form)
    assert "The seller’s address" in asked(refused)
    assert "The customer’s address" not in asked(refused)

    sell_as(ann, address="Ring 9")
    location = client.post(NEW, form)["Location"]
    assert client.get(location.rstrip("/") + ".xml").status_code == 200


def test_a_customer_without_a_country_is_taken_for_a_domestic_one(
    client: Client, ann: User
) -> None:
    sell_as(ann, country="DE")
    customers = "/invoices/customers/new/"
    assert '<option value="DE" selected>' in client.get(customers).content.decode()
    for name, country in (("Bob", ""), ("Chloé", "FR")):
        request_id = NewCustomerForm.new_request_id()
        client.post(customers, {"name": name, "country": country, "request_id": request_id})
    for name, country in (("Bob", "DE"), ("Chloé", "FR")):
        found = client.post(NEW, typed(customer_name=name, find_customer="1"))
        assert f'<option value="{country}" selected>' in found.content.decode()


# ACCOUNTS_REQUIRE_CONFIRMED_EMAIL -----------------------------------------------------------------


def test_a_form_of_an_unconfirmed_account_keeps_what_was_typed_until_the_confirmation(
    client: Client, ann: User, settings: Any
) -> None:
    settings.INVOICES_REQUIRE_CONFIRMED_EMAIL = True
    demanded = "Confirm your email address before you issue an invoice."
    refused = "Confirm your email address first. Open your profile to get the link."
    values = typed(LINE, LINE | {"description": "More work"}, note="Thanks")
    for response in (client.get(NEW), client.post(NEW, values | {"add_line": "1"})):
        assert demanded in Page(response).text
        assert Page(response).text.count("Get the link in your profile") == 1

    page = Page(client.post(NEW, values))
    assert (refused in page.text, demanded in page.text) == (True, False)
    kept = {name: page.value(name) for name in values if name in page.fields}
    assert kept == {name: values[name] for name in kept}
    assert kept.keys() >= {"customer_name", "note", "lines-1-description", "request_id"}
    assert list(InvoiceItem.scan()) == []

    mark_confirmed(User.get(ann.pk))
    assert demanded not in Page(client.get(NEW)).text
    assert client.post(NEW, values)["Location"].endswith("-000001/")
