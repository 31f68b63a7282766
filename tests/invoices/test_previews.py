"""An invoice before it has a number: the amounts while somebody types, its preview, its PDF."""

import io
import os
import re
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from hypothesis import given, settings, strategies as st
from pypdf import PdfReader

from accounts.models import User
from accounts.pages import keptforms
from dynamo.runtime.gates import Gate
from dynamo.runtime.processes import PerProcess
from invoices.document.amounts import LINE_FIELDS, Line
from invoices.document.identifiers import EU
from invoices.document.invoice import Customer, Draft, Seller, draw_up
from invoices.document.requirements import rates_of
from invoices.models import SellerProfile
from invoices.pages import base
from invoices.pages.forms import InvoiceForm
from invoices.store.records import from_item, to_item
from tests.clocks import hold_the_day
from tests.factories import PASSWORD, make_user
from tests.invoice_factories import sell_as, stored_invoices
from tests.invoices import forms
from tests.invoices.forms import LINE, NEW
from tests.invoices.samples import CURRENCIES, PLAIN_LINES
from tests.pages import Page, let_in, sign_in
from tests.requests import Requests

PREVIEW, PDF = "/invoices/preview/", f"{NEW}preview.pdf"


# Amounts while somebody types ---------------------------------------------------------------------


def typed_form(data: dict[str, str]) -> InvoiceForm:
    form = InvoiceForm(data, user=User(username="ann"), profile=SellerProfile(""), is_preview=True)
    form.is_valid()
    return form


@settings(max_examples=10_000 if os.environ.get("STRESS") == "full" else 30)
@given(st.lists(PLAIN_LINES, min_size=1, max_size=6), CURRENCIES, st.booleans())
def test_drafts_have_the_amounts_that_are_stored(
    lines: list[Line], currency: str, with_tax: bool
) -> None:
    draft = Draft(Customer("Bob"), tuple(lines), currency, prices_include_tax=with_tax)
    stored = from_item(to_item(draw_up(draft, "a", Seller("We"), date(2026, 1, 1), "r")))

    rows = (
        {field.name: field.to_typed(getattr(line, field.name)) for field in LINE_FIELDS.values()}
        for line in lines
    )
    gross = "on" if with_tax else ""
    data = forms.typed(*rows, currency=currency, prices_include_tax=gross)
    amounts, sums = typed_form(data).amounts()

    assert sums == stored.totals
    assert amounts == [line.amount(currency) for line in stored.lines]


@pytest.mark.parametrize(
    "wrong",
    [
        {"quantity": "x"},
        {"unit_price": "1.234"},
        {"vat_rate": "101"},
        {"quantity": "9" * 9, "unit_price": "9" * 12},
    ],
)
def test_totals_are_unknown_while_a_number_is_wrong(wrong: dict[str, str]) -> None:
    amounts, sums = typed_form(forms.typed(LINE, LINE | wrong)).amounts()

    assert (amounts[0], sums) == (10000, None)


def test_the_page_gets_amounts_as_far_as_they_are_known(client: Client, ann: User) -> None:
    lines = [LINE | {"unit_price": "1.234,50"}, LINE | {"unit_price": ""}, LINE | {"vat_rate": ""}]
    answer = client.post(PREVIEW, forms.typed(*lines)).json()

    assert answer["lines"] == ["€2,469.00", "", "€100.00"]
    # Net, the VAT of the lines whose rate is known, and gross.
    assert re.findall("€[\\d,.]+(?=</dd>)", answer["totals"]) == [
        "€2,569.00",
        "€469.11",
        "€3,038.11",
    ]


def test_the_page_gets_what_is_lacking_and_what_may_be_wrong_as_far_as_it_is_typed(
    client: Client, ann: User
) -> None:
    sell_as(ann, country="DE", tax_number="1", name="Ann", address="Way 1")
    blank = {"description": "", "quantity": "", "unit_price": ""}

    def shown(*lines: dict[str, str], **values: str) -> str:
        form = forms.typed(*lines, **values)
        del form["lines-TOTAL_FORMS"]  # the script does not send it
        answer = client.post(PREVIEW, form)
        return str(answer.json()["checks"])

    new = shown(blank)
    assert re.findall('#id_[^"]+', new)[:2] == ["#id_customer_address", "#id_supplied_from"]
    assert "requires this" not in shown(LINE)  # a small amount
    large = LINE | {"unit_price": "500"}
    given = {"customer_address": "Road 2", "supplied_from": "2026-03-14"}
    assert "requires this" in shown(large)
    assert "requires this" not in shown(large, **given)
    zero = shown(LINE, blank, LINE | {"vat_rate": "0"}, customer_country="FR")
    assert "#id_lines-2-tax_category" in zero
    assert "0 % VAT to another country of the European Union?" in zero
    # The preview says the same.
    form = forms.typed(LINE, blank, LINE | {"vat_rate": "0"}, customer_country="FR", preview="1")
    assert "#id_lines-2-tax_category" in client.post(NEW, form, follow=True).text


@pytest.mark.parametrize("data", [{}, forms.typed(currency="XXX"), {"lines-239-quantity": "1"}])
def test_an_empty_or_nonsensical_question_is_answered(
    client: Client, ann: User, data: dict[str, str]
) -> None:
    answer = client.post(PREVIEW, data)

    assert answer.status_code == 200
    assert answer.json()["totals"] == "" or "€0.00" in answer.json()["totals"]


def test_too_many_questions_of_an_account_at_once_are_rejected(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "_gate", PerProcess(lambda: Gate("a page", 2, 0, per=0)))

    with base.one_at_a_time(ann.pk):
        refused = client.post(PREVIEW, forms.typed())
        other = let_in(make_user(username="Bob")).post(PREVIEW, forms.typed())

    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert other.status_code == 200
    assert client.post(PREVIEW, forms.typed()).status_code == 200


# Page and PDF -------------------------------------------------------------------------------------


def previewed(client: Client, line: dict[str, str] | None = None, **values: str) -> Any:
    """The page of a preview."""
    address = "1 Main Street\nLeeds"
    customer = {"customer_name": "Bob & Sons", "customer_address": address}
    sent = forms.typed(line or LINE, preview="1", **customer | values)
    return client.get(client.post(NEW, sent)["Location"])


def pdf_of(client: Client, preview: Any) -> Any:
    """The PDF that the page of a preview links to."""
    return client.get(f"{PDF}?{preview.request['QUERY_STRING']}")


def page_of(preview: Any) -> str:
    """The URL of the form of a preview."""
    return f"{NEW}?{preview.request['QUERY_STRING']}"


def sent_again(response: Any) -> dict[str, str]:
    """The hidden fields of the page, as its buttons send them."""
    page = Page(response)
    return {name: page.value(name) for name in page.fields}


def text_of(pdf: Any) -> str:
    assert pdf["Content-Type"] == "application/pdf"
    return "".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf.content)).pages)


def test_a_preview_shows_page_and_pdf_without_a_number_and_stores_nothing(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    client.get(NEW)
    requests_sent.clear()

    response = previewed(client)
    page = Page(response).text
    pdf = text_of(pdf_of(client, response))

    assert "Draft without a number" in page
    assert "€119.00" in page
    assert "Draft of an invoice" in pdf
    assert "DRAFT" in pdf
    assert "-000000" not in page + pdf
    # The session keeps the form. Besides, the requests read only who is signed in.
    writes = [
        operation
        for operation in requests_sent.operations
        if operation not in {"GetItem", "BatchGetItem"}
    ]
    assert writes == ["PutItem"]
    assert stored_invoices(ann.pk) == []


def test_the_form_of_a_preview_is_kept_until_it_is_issued_and_then_leads_to_the_invoice(
    client: Client, ann: User
) -> None:
    shown = previewed(client)
    values = sent_again(shown)
    urls = (page_of(shown), shown.request["PATH_INFO"])
    preview = f"{urls[1]}?{shown.request['QUERY_STRING']}"

    # The link "Change", Back, and the menu.
    for url in (urls[0], NEW):
        form = Page(client.get(url, follow=True))
        for name in ("customer_address", "lines-0-unit_price", "request_id"):
            assert form.value(name) == values[name]
    # A reload in another language.
    client.post(f"/i18n/setlang/?next={preview}", {"language": "ja"})
    assert "番号のない下書き" in Page(client.get(preview)).text
    first, second = (client.post(page_of(shown), values)["Location"] for _again in range(2))

    assert first == second
    assert len(stored_invoices(ann.pk)) == 1
    assert "Bob &amp; Sons" in client.get(first).content.decode()
    for url in (urls[0], preview, preview.replace("preview/", "preview.pdf")):
        assert client.get(url)["Location"] == first
    assert Page(client.get(NEW)).value("customer_name") == ""


def test_each_tab_has_its_own_preview_and_another_account_has_none(
    client: Client, ann: User
) -> None:
    tabs = [previewed(client, customer_name=name) for name in ("Bob", "Carl")]

    for tab, name in zip(tabs, ("Bob", "Carl"), strict=True):
        again = client.get("/invoices/new/preview/?" + tab.request["QUERY_STRING"])
        assert name in Page(again).text
        assert Page(client.get(page_of(tab))).value("customer_name") == name
    # The menu leads to the newest.
    assert client.get(NEW)["Location"] == page_of(tabs[1])
    client.post(page_of(tabs[1]), {"start_empty": "1"})
    assert client.get(NEW)["Location"] == page_of(tabs[0])

    sign_in(client, make_user(username="dan", email="dan@example.org"))
    gone = client.get("/invoices/new/preview/?" + tabs[0].request["QUERY_STRING"], follow=True)
    assert Page(gone).messages == ["This preview is no longer kept. The invoice was not issued."]
    assert Page(gone).value("customer_name") == ""


def test_a_form_that_is_too_long_to_be_kept_has_no_preview(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptforms, "MAX_PACKED", 200)

    page = Page(client.post(NEW, forms.typed(preview="1")))

    assert page.messages == ["This invoice is too long for a preview."]
    assert page.value("customer_name") == "Bob Ltd"


@pytest.mark.parametrize("path", ["preview/", "preview.pdf"])
def test_a_preview_that_became_wrong_at_midnight_shows_its_form(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    hold_the_day(forms.TODAY, monkeypatch)
    shown = previewed(client, due_date=forms.TODAY.isoformat())
    hold_the_day(forms.TODAY + timedelta(days=1), monkeypatch)

    page = Page(client.get(f"{NEW}{path}?{shown.request['QUERY_STRING']}"))

    assert page.errors["due_date"]
    assert page.value("customer_name") == "Bob & Sons"


def test_a_preview_says_what_law_and_standard_require_and_then_cannot_be_issued(
    client: Client, ann: User
) -> None:
    sell_as(ann, country="DE")

    text = Page(previewed(client, LINE | {"quantity": "20"})).text

    for said in (
        *("The law of your country (Germany) requires this", "The date of supply"),
        *("Your address", "EN 16931 also needs", "The customer’s country"),
    ):
        assert said in text
    for unsaid in ("Lack(", "Issue the invoice"):
        assert unsaid not in text


def test_a_preview_whose_session_ended_leads_to_its_form_when_it_is_issued(
    client: Client, ann: User
) -> None:
    shown = previewed(client)
    client.logout()
    asked = sent_again(client.post(page_of(shown), sent_again(shown)))
    asked |= {"username": ann.username, "password": PASSWORD}

    answer = client.post("/accounts/login/", asked, follow=True)

    assert answer.redirect_chain == [(page_of(shown), 302)]
    assert Page(answer).value("customer_name") == "Bob & Sons"


def test_a_preview_of_a_form_with_errors_shows_the_form(client: Client, ann: User) -> None:
    page = Page(client.post(NEW, forms.typed(preview="1", currency="??")))

    assert page.errors["currency"]
    assert page.value("customer_name") == "Bob Ltd"


def test_a_line_has_a_unit_and_the_rates_of_the_sellers_country_are_offered(
    client: Client, ann: User
) -> None:
    sell_as(ann, country="FR")
    page = client.get(NEW).content.decode()

    preview = previewed(client, LINE | {"unit": "HUR"})

    offered = re.findall(r'<option value="([\d.]+)"></option>', page)
    assert offered == ["20", "10", "5.5", "2.1", "0"]
    assert 'list="vat-rates"' in page
    for text in (Page(preview).text, text_of(pdf_of(client, preview))):
        assert "2\N{NO-BREAK SPACE}h" in text
    assert Page(client.post(NEW, forms.typed(LINE | {"unit": "XX"}))).errors


def test_the_standard_rate_is_offered_first() -> None:
    for country in EU | {"GB", "CH", "NO", "JP"}:
        first, *_others, last = rates = [Decimal(rate) for rate in rates_of(country)]
        assert (first, last) == (max(rates), 0)
    assert rates_of("AT") == ["20", "13", "10", "4.9", "0"]
    assert rates_of("US") == []
