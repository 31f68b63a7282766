"""The pages that issue and show an invoice; and what other accounts see of it."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import signing
from django.test import Client

from accounts.models import User
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Invoice, Seller
from invoices.models import InvoiceItem
from invoices.pages import new
from invoices.pages.forms import InvoiceForm
from invoices.pages.lineforms import SHOWN_LINES
from invoices.store.lists import all_invoices
from invoices.store.sellers import profile_of
from sequences.models import Counter
from tests import numbered
from tests.commands import run
from tests.factories import make_user
from tests.invoice_factories import issued, sell_as
from tests.invoices.forms import LINE, LIST, NEW, TODAY, listed, typed
from tests.items import scanned
from tests.pages import Page, arrive, form_values, let_in
from tests.requests import OF_EVERY_PAGE, Requests

pytestmark = pytest.mark.usefixtures("held_day")

YEAR = TODAY.year
FIRST = f"{YEAR}-000001"
PAGE = f"/invoices/{FIRST}/"
SECOND_PAGE = f"/invoices/{YEAR}-000002/"


def stored(user: User, year: int = YEAR) -> list[Invoice]:
    """All that is stored of the account's year, oldest first."""
    return [*all_invoices(user.pk, year)][::-1]


def assert_nothing_is_stored(user: User) -> None:
    assert stored(user) == []
    for model in (InvoiceItem, Counter):
        assert scanned(model.table()) == []


def refused(client: Client, user: User, form: dict[str, Any]) -> Page:
    """The page that answers a form which issues nothing."""
    response = client.post(NEW, form)
    assert response.status_code == 200
    assert_nothing_is_stored(user)
    return Page(response)


# Issuing ------------------------------------------------------------------------------------------


def test_a_form_is_issued_and_leads_to_its_invoice(client: Client, ann: User) -> None:
    sell_as(ann, name="Ann Ltd", address="1 High St", vat_id="GB 1")

    response = client.post(
        NEW, typed(LINE, customer_address="2 Low Road\r\nLeeds", note="Pay soon.")
    )

    assert (response.status_code, response["Location"]) == (302, PAGE)
    [invoice] = stored(ann)
    assert invoice.customer == Customer("Bob Ltd", "2 Low Road\nLeeds")
    assert invoice.seller == Seller("Ann Ltd", "1 High St", "GB 1")
    assert invoice.lines == (Line("Work", Decimal(2), Decimal(50), Decimal(19)),)
    assert (invoice.currency, invoice.note, invoice.issued_at) == ("EUR", "Pay soon.", TODAY)
    page = Page(client.get(PAGE))
    assert page.messages == [f"Invoice {FIRST} was issued."]
    for shown in ("Ann Ltd", "GB 1", "Bob Ltd", "Work", "€100.00", "€119.00", "Pay soon."):
        assert shown in page.text


def test_a_new_form_has_one_line_and_its_own_request_id_and_is_accepted(
    client: Client, ann: User
) -> None:
    one = Page(client.get(NEW))
    other = Page(client.get(NEW))

    assert (one.value("lines-TOTAL_FORMS"), one.value("lines-0-quantity")) == ("1", "1")
    assert "lines-1-description" not in one.fields
    assert one.value("request_id") != other.value("request_id")
    assert one.errors == {}
    form = form_values(client, NEW, customer_name="Bob", currency="EUR")
    form |= {f"lines-0-{name}": text for name, text in LINE.items()}
    assert client.post(NEW, form)["Location"] == PAGE
    # The profile has neither a name nor an address.
    assert "Add your business name and address" in one.text
    sell_as(ann, name="Ann Ltd", address="1 High St")
    assert "Add your business name" not in Page(client.get(NEW)).text


#: For some fields a text that they do not allow.
WRONG = {
    "lines-1-quantity": "1,500",
    "lines-1-vat_rate": "100.001",
    "lines-1-tax_category": "none",
    "customer_name": "\u202eabc",
    "customer_country": "XX",
    "customer_email": "bob",
    "note": "😀",
    "currency": "<script>",
    "due_date": "2020-01-01",
    "supplied_from": "2026-13-01",
}
#: What is wrong together with another field, and where the error is shown.
WRONG_TOGETHER = (
    ("customer_name", "", "customer_name"),
    ("supplied_to", "2026-01-31", "supplied_from"),
    ("lines-1-tax_category", "exempt", "lines-1-vat_rate"),
    ("request_id", signing.TimestampSigner(salt="accounts.signup").sign("x"), "request_id"),
)


def test_a_value_that_is_not_allowed_is_rejected_at_its_field_and_kept(
    client: Client, ann: User
) -> None:
    page = refused(client, ann, typed(LINE, LINE, **WRONG))

    assert page.errors.keys() == {"", *WRONG}
    assert page.autofocused() == ["customer_name"]
    for name, text in (WRONG | {"lines-0-description": "Work"}).items():
        if name in page.fields and text.isprintable():
            assert page.value(name) == text, name
    for name, text, at in WRONG_TOGETHER:
        page = refused(client, ann, typed(LINE, LINE, **{name: text}))
        assert [error for error in page.errors if error] == [at]


def test_the_heading_tells_where_the_errors_are(client: Client, ann: User) -> None:
    for values, heading in (
        ({}, "Correct the marked fields in the lines below."),
        ({"customer_name": ""}, "Correct the marked fields, also in the lines below."),
        ({"lines-0-quantity": "9" * 9, "lines-0-unit_price": "9" * 12}, "The total of the invoice"),
    ):
        response = client.post(NEW, typed(LINE | {"quantity": "x"}) | values)
        assert [item.startswith(heading) for item in Page(response).errors[""]] == [True]
    # The error of a line names its field.
    refused = client.post(NEW, typed(LINE | {"quantity": "x"})).content.decode()
    assert re.search(r'<div class="line-error">\s*<span>Quantity</span>\s*<ul', refused)


# Lines --------------------------------------------------------------------------------------------


def test_an_invoice_without_a_line_is_rejected_at_the_first_line(client: Client, ann: User) -> None:
    for form in (typed({}) | {"lines-TOTAL_FORMS": "0"}, typed(LINE | dict.fromkeys(LINE, ""))):
        page = refused(client, ann, form)
        assert page.errors["lines-0-description"] == ["An invoice needs at least one line."]
        assert page.value("lines-TOTAL_FORMS") == "1"


def test_every_line_that_was_sent_counts_regardless_of_the_stated_number_and_a_blank_one_does_not(
    client: Client, ann: User
) -> None:
    form = typed(LINE, LINE)
    uncounted = {name: text for name, text in form.items() if name != "lines-TOTAL_FORMS"}
    for sent in (uncounted, form | {"lines-TOTAL_FORMS": "x"}):
        page = refused(client, ann, sent)
        assert page.errors[""]
        assert page.value("lines-1-description") == "Work"
    endless = InvoiceForm(
        form | {"lines-TOTAL_FORMS": "9" * 23}, user=ann, profile=profile_of(ann.pk)
    )
    assert endless.errors["__all__"]
    assert len(endless.lines.forms) <= SHOWN_LINES
    blank = {"description": "", "quantity": "1", "unit_price": "", "vat_rate": "19"}

    counts = {"lines-TOTAL_FORMS": ("-1", "0", "5"), "lines-INITIAL_FORMS": ("-1", "5")}
    for name, texts in counts.items():
        for text in texts:
            client.post(NEW, typed(blank, LINE, blank, LINE, {}) | {name: text})

    assert [len(invoice.lines) for invoice in stored(ann)] == [2] * 5


def test_a_form_with_too_many_or_too_long_lines_is_rejected_and_kept(
    client: Client, ann: User
) -> None:
    for count in (201, 240):
        form = InvoiceForm(typed(*[LINE] * count), user=ann, profile=profile_of(ann.pk))
        assert "An invoice has at most 200 lines." in str(form.errors)
        assert len(form.lines.forms) == count
    long = LINE | {"description": "字" * 1000}

    page = refused(client, ann, typed(*[long] * 22))

    told = "The descriptions of all lines together have more than 20000 characters."
    assert told in page.errors["lines-20-description"][0]
    assert "lines-21-description" not in page.errors
    assert page.value("lines-21-description") == long["description"]
    command = ("issueinvoice", "--user=ann", "--customer=Bob")
    _out, err, code = run(*command, *["--line", f"{long['description']};1;1;19"] * 21)
    assert (told in err, code) == (True, 1)
    assert stored(ann) == []


def test_a_line_is_added_and_removed_without_a_script_and_nothing_is_lost(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = typed(LINE, LINE | {"description": " <b> ", "quantity": "x"}, note="a note", currency="")
    kept = {name: form[name] for name in form.keys() - {"lines-TOTAL_FORMS", "currency"}}
    for button in ("add_line", "enter"):
        page = Page(client.post(NEW, {**form, button: "1"}))

        assert {name: page.value(name) for name in kept} == kept
        assert (page.value("lines-TOTAL_FORMS"), page.value("lines-2-vat_rate")) == ("3", "19")
        assert page.autofocused() == ["lines-2-description"]
        assert page.errors == {}

    for names, at, left in (("abc", "1", ["a", "c"]), ("a", "0", [""]), ("ab", "９", ["a", "b"])):
        lines = [LINE | {"description": name} for name in names]
        page = Page(client.post(NEW, typed(*lines, remove_line=at)))

        shown = [page.value(f"lines-{at}-description") for at in range(len(left))]
        assert (page.value("lines-TOTAL_FORMS"), shown) == (str(len(left)), left)
        assert page.autofocused()[0].endswith("-description")
    monkeypatch.setattr(new, "MAX_LINES", 2)
    full = Page(client.post(NEW, typed(LINE, LINE, add_line="1")))
    assert full.value("lines-TOTAL_FORMS") == "2"
    assert_nothing_is_stored(ann)


# Sent twice ---------------------------------------------------------------------------------------


def test_the_same_form_with_other_contents_is_rejected_and_then_issues_another_invoice(
    client: Client, ann: User
) -> None:
    form = typed()
    client.post(NEW, form)
    other = form | {"lines-0-quantity": "3"}

    page = Page(client.post(NEW, other))

    assert FIRST in page.errors[""][0]
    assert page.value("lines-0-quantity") == "3"
    assert len(stored(ann)) == 1
    again = client.post(NEW, other | {"request_id": page.value("request_id")})
    assert again["Location"] == SECOND_PAGE


def test_a_later_date_and_a_damaged_series_are_errors_of_the_form(
    client: Client, ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    series = issued(ann.pk, day=TODAY.replace(month=12, day=31)).series
    assert "Dec. 31" in Page(client.post(NEW, typed())).errors[""][0]

    numbered.remove_counter(InvoiceItem, series)

    assert "nothing was issued" in Page(client.post(NEW, typed())).errors[""][0]
    assert series in caplog.text


def test_issuing_again_fills_a_new_form_from_an_invoice_even_a_voided_one(
    client: Client, ann: User
) -> None:
    lines = [LINE | {"description": "b", "quantity": "-1.50"}, LINE]
    dates = {"supplied_from": "2026-01-01", "supplied_to": "2026-01-31", "due_date": f"{TODAY}"}
    client.post(NEW, typed(*lines, currency="JPY", note="a note", **dates))
    client.post(f"{PAGE}void/", {"reason": "wrong"})
    sell_as(ann, payment_days=7)

    shown = client.get(f"{NEW}?from={FIRST}").content.decode()
    assert re.search(r'<option value="JPY"\s+selected>', shown)
    form = form_values(client, f"{NEW}?from={FIRST}", currency="JPY")
    response = client.post(f"{NEW}?from={FIRST}", form)

    assert response["Location"] == SECOND_PAGE
    first, second = stored(ann)
    # The dates are new.
    new = {"supplied_from": None, "supplied_to": None, "due_date": TODAY + timedelta(days=7)}
    same = {"number": 2, "request_id": second.request_id, "status": "issued", "void_reason": ""}
    assert second == replace(first, **new, **same)


# Showing ------------------------------------------------------------------------------------------


def test_an_invoice_costs_one_read_and_the_browser_shows_its_pdf(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    arrive(client, ann)
    issued(ann.pk, day=TODAY)
    requests_sent.clear()

    client.get(PAGE)
    pdf = client.get(f"/invoices/{FIRST}.pdf")

    of_page, of_pdf = "TransactGetItems", "GetItem"
    assert requests_sent.operations == [*OF_EVERY_PAGE, of_page, *OF_EVERY_PAGE, of_pdf]
    assert pdf.content.startswith(b"%PDF-")
    headers = {
        "Content-Type": "application/pdf",
        "Content-Disposition": f'inline; filename="{FIRST}.pdf"',
        "Cache-Control": "private, no-store",
    }
    assert headers.items() <= pdf.headers.items()


def test_hostile_text_is_shown_as_text(client: Client, ann: User) -> None:
    hostile = "<script>alert(1)</script>\"'&{{ 7|add:7 }}"
    sell_as(ann, name=hostile)
    values = dict.fromkeys(("customer_name", "customer_address", "note"), hostile)
    form = typed(LINE | {"description": hostile}, **values)
    client.post(NEW, form)
    client.post(f"{PAGE}void/", {"reason": hostile})

    for response in (
        client.post(NEW, form | {"lines-0-quantity": hostile, "currency": hostile}),
        *map(client.get, (PAGE, LIST, f"{LIST}?customer={hostile[:8]}", f"{NEW}?from={FIRST}")),
    ):
        assert response.status_code == 200
        assert b"<script>alert" not in response.content
        assert hostile[:8] in Page(response).text + str(Page(response).fields)


# What is not there --------------------------------------------------------------------------------


def test_only_its_account_finds_an_invoice(client: Client, ann: User) -> None:
    before = issued(ann.pk, day=TODAY)
    stranger = let_in(make_user())

    for url in (
        *(PAGE, f"/invoices/{FIRST}.pdf", f"/invoices/{FIRST}.xml", f"{NEW}?from={FIRST}"),
        *(f"/invoices/{YEAR}.{end}" for end in ("csv", "lines.csv", "bookings.csv", "zip")),
    ):
        assert stranger.get(url).status_code == 404, url
    for change in ("void", "credit", "paid", "send", "unpaid"):
        # A GET of the last of them leads to the page, which is a 404.
        assert stranger.get(f"{PAGE}{change}/", follow=True).status_code == 404, change
        for reason in ("", "mine now"):
            values = {"reason": reason, "paid_on": f"{TODAY}", "to": "eve@example.org"}
            assert stranger.post(f"{PAGE}{change}/", values).status_code == 404, change
    assert stored(ann) == [before]
    assert listed(stranger) == []


def test_an_address_that_names_no_invoice_or_page_of_the_list_is_not_found(
    client: Client, ann: User
) -> None:
    issued(ann.pk, day=TODAY)
    names = (f"{YEAR}-000002", "2026-42", "2026-000001x", "2026-9999999999999999")
    years = [f"year={year}" for year in ("x", "0", "99999", "-1", "2026.5")]
    before = [f"before={number}" for number in ("x", "0", "1e9", "9999999999999999999999")]

    for url in (
        *(f"/invoices/{name}{end}" for name in names for end in ("/", ".pdf", "/void/")),
        *(f"{NEW}?from={name}" for name in names),
        *(f"{LIST}?{query}" for query in (*years, *before, "customer=%00", "state=lost")),
    ):
        assert client.get(url).status_code == 404, url
