"""The pages of invoices: issuing, showing, voiding, listing; and the pages of other accounts."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import signing
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.services import edit_profile
from dynamo._internal.client.sending import send
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Invoice, Seller
from invoices.document.money import readable_amount
from invoices.models import InvoiceItem
from invoices.pages.forms import InvoiceForm
from invoices.store import lists
from invoices.store.issuing import issue_invoice
from invoices.store.lists import all_invoices
from sequences.models import Counter
from tests.clocks import hold_the_day
from tests.factories import make_user
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.numbered import remove_counter
from tests.pages import Page, arrive, form_values
from tests.requests import OF_EVERY_PAGE, Requests

LIST = "/invoices/"
NEW = "/invoices/new/"
TODAY = timezone.localdate()
YEAR = TODAY.year

LINE = {"description": "Work", "quantity": "2", "unit_price": "50.00", "vat_rate": "19"}
HEAD = {"customer_name": "Bob Ltd", "customer_address": "2 Low Road\r\nLeeds", "currency": "EUR"}


@pytest.fixture(autouse=True)
def _it_stays_today(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_day(TODAY, monkeypatch)


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    user = make_user(username="ann")
    arrive(client, user)
    return user


@pytest.fixture
def stranger(engine: str) -> Client:
    """Another account, signed in."""
    other = Client()
    other.force_login(make_user())
    return other


def label(number: int, year: int = YEAR) -> str:
    return f"{year}-{number:06}"


def page_of(number: int) -> str:
    return f"/invoices/{label(number)}/"


def typed(*lines: dict[str, str], **values: Any) -> dict[str, Any]:
    """The values of the form as a browser sends them."""
    return {
        **HEAD,
        "request_id": InvoiceForm.new_request_id(),
        "lines-TOTAL_FORMS": str(len(lines)),
        "lines-INITIAL_FORMS": "0",
        **{
            f"lines-{at}-{name}": text
            for at, line in enumerate(lines)
            for name, text in line.items()
        },
        **values,
    }


def issued(user: User, customer: str = "Bob Ltd", **values: Any) -> Invoice:
    line = Line("Work", Decimal(2), Decimal("50.00"), Decimal(19))
    draft = Draft(**{"customer": Customer(customer), "lines": (line,), "currency": "EUR"} | values)
    return issue_invoice(draft, account=user.pk, seller=Seller("Ann Ltd"))


def stored(user: User, year: int = YEAR) -> list[Invoice]:
    """All that is stored of the account's year, oldest first."""
    return list(all_invoices(user.pk, year, oldest_first=True))


def the_invoice(user: User) -> Invoice:
    (invoice,) = stored(user)
    return invoice


def assert_nothing_is_stored(user: User) -> None:
    assert stored(user) == []
    assert send("Scan", {"TableName": InvoiceItem.table()})["Items"] == []
    assert send("Scan", {"TableName": Counter.table()})["Items"] == []


def refused(client: Client, user: User, form: dict[str, Any]) -> Page:
    """The page that answers a form which issues nothing."""
    response = client.post(NEW, form)
    assert response.status_code == 200
    assert_nothing_is_stored(user)
    return Page(response)


# Issuing ------------------------------------------------------------------------------------------


def test_a_form_is_issued_and_leads_to_its_invoice(client: Client, ann: User) -> None:
    edit_profile(ann, business_name="Ann Ltd", business_address="1 High St", vat_id="GB 1")

    response = client.post(NEW, typed(LINE, note="Pay soon."))

    assert (response.status_code, response["Location"]) == (302, page_of(1))
    invoice = the_invoice(ann)
    assert invoice.customer == Customer("Bob Ltd", "2 Low Road\nLeeds")
    assert invoice.seller == Seller("Ann Ltd", "1 High St", "GB 1")
    assert invoice.lines == (Line("Work", Decimal(2), Decimal(50), Decimal(19)),)
    assert (invoice.totals.net, invoice.totals.vat, invoice.totals.gross) == (10000, 1900, 11900)
    assert (invoice.currency, invoice.note) == ("EUR", "Pay soon.")
    assert invoice.issued_at == TODAY
    page = Page(client.get(response["Location"]))
    assert page.messages == [f"Invoice {label(1)} was issued."]
    for shown in (
        "Ann Ltd",
        "GB 1",
        "Bob Ltd",
        "Work",
        "€100.00",
        "€19.00",
        "€119.00",
        "Pay soon.",
    ):
        assert shown in page.text


def test_a_new_form_has_one_line_and_its_own_request_id_and_is_accepted(
    client: Client, ann: User
) -> None:
    one, other = Page(client.get(NEW)), Page(client.get(NEW))

    assert one.value("lines-TOTAL_FORMS") == "1"
    assert "lines-1-description" not in one.fields
    assert one.value("lines-0-quantity") == "1"
    assert one.value("request_id") != other.value("request_id")
    assert one.errors == {}
    form = form_values(client, NEW, **HEAD)
    form |= {f"lines-0-{name}": text for name, text in LINE.items()}
    assert client.post(NEW, form).status_code == 302
    assert the_invoice(ann).number == 1


def test_issuing_costs_one_transaction_once_the_counter_was_read(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    client.post(NEW, typed(LINE))
    assert requests_sent.operations == [*OF_EVERY_PAGE, "GetItem", "TransactWriteItems"]
    requests_sent.clear()

    client.post(NEW, typed(LINE))

    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactWriteItems"]


def test_blank_lines_are_ignored(client: Client, ann: User) -> None:
    blank = {"description": "", "quantity": "1", "unit_price": "", "vat_rate": "19"}

    client.post(NEW, typed(blank, LINE, blank, LINE, {}))

    assert len(the_invoice(ann).lines) == 2


def test_the_form_shows_the_seller_and_where_to_complete_it(client: Client, ann: User) -> None:
    incomplete = Page(client.get(NEW)).text
    edit_profile(ann, business_name="Ann Ltd", business_address="1 High St")
    complete = Page(client.get(NEW)).text

    assert "ann" in incomplete
    assert "Add your business name and address" in incomplete
    assert "Ann Ltd" in complete
    assert "Add your business name and address" not in complete


# Amounts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("currency", "lines", "net", "gross"),
    [
        ("EUR", [("1", "100", "19"), ("-1", "20", "19"), ("1", "-5,0050", "0")], 7499, 9019),
        ("KWD", [("1", "0.0005", "20"), ("2", "1.25", "20")], 2501, 3001),
        ("EUR", [("+1", "5.", "20"), ("1", ".5", "20.0")], 550, 660),
    ],
)
def test_typed_numbers_are_computed_exactly(
    client: Client,
    ann: User,
    currency: str,
    lines: list[tuple[str, str, str]],
    net: int,
    gross: int,
) -> None:
    names = ("quantity", "unit_price", "vat_rate")
    rows = [{"description": "x", **dict(zip(names, line, strict=True))} for line in lines]

    response = client.post(NEW, typed(*rows, currency=currency))

    invoice = the_invoice(ann)
    assert (invoice.totals.net, invoice.totals.gross) == (net, gross)
    assert readable_amount(gross, currency) in Page(client.get(response["Location"])).text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("quantity", text) for text in ("", "1e999", "1,500", "0", "1234567890", "9" * 1000)],
        *[("unit_price", text) for text in ("", "1.234", "1,23,4", "0.0000001")],
        *[("vat_rate", text) for text in ("", "-1", "100.001")],
        *[
            ("description", text)
            for text in ("", " ", "x" * 1001, "a\nb", "\u202eabc", "😀", "\x00")
        ],
    ],
)
def test_a_value_that_a_line_does_not_allow_is_rejected_at_its_field_and_kept(
    client: Client, ann: User, name: str, text: str
) -> None:
    page = refused(client, ann, typed(LINE, LINE | {name: text}))

    assert list(page.errors) == ["", f"lines-1-{name}"]
    assert page.value("lines-0-description") == "Work"
    if text.isprintable():
        assert page.value(f"lines-1-{name}") == text
    assert page.autofocused() == [f"lines-1-{name}"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("customer_name", text) for text in ("", " ", "x" * 201, "a\nb", "😀", "שלום", "\x00")],
        *[("customer_address", text) for text in ("x" * 501, "a\x07", "😀")],
        *[("note", text) for text in ("x" * 1001, "😀")],
        *[("currency", text) for text in ("", "XXX", "EURO", "€", "<script>")],
    ],
)
def test_a_value_that_an_invoice_does_not_allow_is_rejected_at_its_field(
    client: Client, ann: User, name: str, text: str
) -> None:
    page = refused(client, ann, typed(LINE, **{name: text}))

    assert list(page.errors) == [name]
    assert page.value("lines-0-description") == "Work"


def test_an_invoice_with_an_ambiguous_number_is_shown_as_one_that_can_be_issued_again(
    client: Client, ann: User
) -> None:
    line = Line("Work", Decimal("1.234"), Decimal("-5.005"), Decimal("8.125"))
    issued(ann, lines=(line,))

    copied = form_values(client, f"{NEW}?from={label(1)}", currency="EUR")
    assert (copied["lines-0-quantity"], copied["lines-0-unit_price"]) == ("1.2340", "-5.0050")
    assert client.post(NEW, copied).status_code == 302

    assert [invoice.lines for invoice in stored(ann)] == [(line,)] * 2


def test_the_heading_tells_where_the_errors_are(client: Client, ann: User) -> None:
    lines_alone = refused(client, ann, typed(LINE | {"quantity": "x"}))
    both = refused(client, ann, typed(LINE | {"quantity": "x"}, customer_name=""))

    huge = refused(client, ann, typed(LINE | {"quantity": "9" * 9, "unit_price": "9" * 12}))

    assert lines_alone.errors[""] == ["Correct the marked fields in the lines below."]
    assert both.errors[""] == ["Correct the marked fields, also in the lines below."]
    assert huge.errors[""] == ["The total of the invoice is too large."]


def test_an_error_of_a_line_names_its_field_below_the_row(client: Client, ann: User) -> None:
    page = client.post(NEW, typed(LINE | {"quantity": "x"})).content.decode()

    row, below = page.index('class="form-row"'), page.index('id="id_lines-0-quantity_error"')
    assert row < page.index('name="lines-0-vat_rate"') < below
    assert re.search(r'<div class="line-error">\s*<span>Quantity</span>\s*<ul', page)


def test_a_seller_that_cannot_be_printed_must_change_the_profile(client: Client, ann: User) -> None:
    edit_profile(ann, business_name="Ann 😀")

    page = refused(client, ann, typed(LINE))

    (advice,) = page.errors[""]
    assert "Change your profile first" in advice


# Lines --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [[], [{}], [LINE | dict.fromkeys(LINE, "")]])
def test_an_invoice_without_a_line_is_rejected_at_the_first_line(
    client: Client, ann: User, lines: list[dict[str, str]]
) -> None:
    page = refused(client, ann, typed(*lines))

    assert page.errors["lines-0-description"] == ["An invoice needs at least one line."]
    assert page.value("lines-TOTAL_FORMS") == "1"


@pytest.mark.parametrize("count", [None, "", "x", "1e3", "９９９９９", "99999999999999999999999"])
def test_lines_without_their_count_are_rejected_and_shown_again(
    client: Client, ann: User, count: str | None
) -> None:
    form = typed(LINE, LINE) | {"lines-TOTAL_FORMS": count}
    form = {name: text for name, text in form.items() if text is not None}

    page = refused(client, ann, form)

    assert page.errors[""]
    assert page.value("lines-1-description") == "Work"


@pytest.mark.parametrize("name", ["lines-TOTAL_FORMS", "lines-INITIAL_FORMS"])
@pytest.mark.parametrize("count", ["-1", "0", "1", "5"])
def test_a_wrong_count_of_lines_breaks_nothing(
    client: Client, ann: User, name: str, count: str
) -> None:
    assert client.post(NEW, typed(LINE) | {name: count}).status_code in {200, 302}


@pytest.mark.parametrize("count", ["-1", "1", "2"])
def test_every_line_that_was_sent_is_issued(client: Client, ann: User, count: str) -> None:
    client.post(NEW, typed(LINE, LINE) | {"lines-TOTAL_FORMS": count})

    assert len(the_invoice(ann).lines) == 2


def test_two_hundred_lines_of_a_thousand_characters_are_issued_and_shown(
    client: Client, ann: User
) -> None:
    response = client.post(NEW, typed(*[LINE | {"description": "x" * 1000}] * 200))

    invoice = the_invoice(ann)
    assert len(invoice.lines) == 200
    assert invoice.totals.gross == 200 * 11900
    assert client.get(response["Location"]).content.count(b"x" * 1000) == 200
    assert client.get(f"/invoices/{label(1)}.pdf").content.startswith(b"%PDF-")
    one_more = Page(client.post(NEW, typed(*[LINE] * 200, add_line="1")))
    assert one_more.value("lines-TOTAL_FORMS") == "200"


@pytest.mark.parametrize("count", [201, 240])
def test_more_than_two_hundred_lines_are_rejected_and_kept(
    client: Client, ann: User, count: int
) -> None:
    page = refused(client, ann, typed(*[LINE] * count))

    assert page.errors[""] == ["An invoice has at most 200 lines."]
    assert page.value(f"lines-{count - 1}-description") == "Work"


def test_an_invoice_over_400_kb_is_rejected_with_advice_and_kept(client: Client, ann: User) -> None:
    page = refused(client, ann, typed(*[LINE | {"description": "字" * 1000}] * 200))

    (advice,) = page.errors[""]
    assert "The invoice is too long: 597 KB, and " in advice
    assert page.value("lines-199-description") == "字" * 1000


@pytest.mark.parametrize("button", ["add_line", "enter"])
def test_a_line_is_added_without_a_script_and_nothing_is_lost(
    client: Client, ann: User, button: str
) -> None:
    form = typed(LINE, LINE | {"description": " <b> ", "quantity": "x"}, note="a note", currency="")

    page = Page(client.post(NEW, {**form, button: "1"}))

    kept = [name for name in form if name not in {"lines-TOTAL_FORMS", "currency"}]
    assert {name: page.value(name) for name in kept} == {
        name: form[name].replace("\r\n", "\n") for name in kept
    }
    assert page.value("lines-TOTAL_FORMS") == "3"
    assert page.value("lines-2-vat_rate") == "19"
    assert page.autofocused() == ["lines-2-description"]
    assert page.errors == {}
    assert_nothing_is_stored(ann)


@pytest.mark.parametrize(
    ("lines", "at", "left"),
    [("abc", "1", ["a", "c"]), ("a", "0", [""])]
    + [("ab", at, ["a", "b"]) for at in ("7", "-1", "x", "９", "1e9")],
)
def test_a_line_is_removed_without_a_script(
    client: Client, ann: User, lines: str, at: str, left: list[str]
) -> None:
    page = Page(
        client.post(NEW, typed(*[LINE | {"description": name} for name in lines], remove_line=at))
    )

    assert page.value("lines-TOTAL_FORMS") == str(len(left))
    assert [page.value(f"lines-{at}-description") for at in range(len(left))] == left
    assert page.autofocused()[0].endswith("-description")


# Sent twice ---------------------------------------------------------------------------------------


def test_the_same_form_sent_twice_leads_to_the_same_invoice(client: Client, ann: User) -> None:
    form = typed(LINE)

    first, second = client.post(NEW, form), client.post(NEW, form)

    assert (first["Location"], second["Location"]) == (page_of(1), page_of(1))
    assert second.status_code == 302
    assert the_invoice(ann).number == 1


def test_after_no_answer_the_form_is_shown_again_and_issues_one_invoice(
    proxy: FaultProxy, client: Client, ann: User, impatient: float
) -> None:
    proxy.plan("TransactWriteItems", DropReply(), times=1_000)
    form = typed(LINE)

    response = client.post(NEW, form)

    proxy.forget()
    assert response.status_code == 503
    assert (response["Retry-After"], response["Cache-Control"]) == ("5", "private, no-store")
    page = Page(response)
    (advice,) = page.errors[""]
    assert "may have been issued" in advice
    shown = {name: page.value(name) for name in form if name != "currency"}
    assert shown["request_id"] == form["request_id"]
    again = client.post(NEW, shown | {"currency": "EUR"})
    assert (again.status_code, again["Location"]) == (302, page_of(1))
    assert the_invoice(ann).number == 1


def test_the_same_form_with_other_contents_is_rejected_and_then_issues_another_invoice(
    client: Client, ann: User
) -> None:
    form = typed(LINE)
    client.post(NEW, form)
    other = form | {"lines-0-quantity": "3"}

    page = Page(client.post(NEW, other))

    (advice,) = page.errors[""]
    assert label(1) in advice
    assert "send the form again" in advice
    assert page.value("lines-0-quantity") == "3"
    assert the_invoice(ann).number == 1
    again = client.post(NEW, other | {"request_id": page.value("request_id")})
    assert again["Location"] == page_of(2)


def drawn(ago: timedelta) -> str:
    """The request id of a form that has been open for so long."""
    drawn_at = signing.time.time() - ago.total_seconds()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signing.time, "time", lambda: drawn_at)
        return InvoiceForm.new_request_id()


def test_a_form_that_was_open_for_almost_a_day_is_issued(client: Client, ann: User) -> None:
    form = typed(LINE, request_id=drawn(timedelta(hours=23, minutes=59)))

    assert client.post(NEW, form).status_code == 302


@pytest.mark.parametrize(
    "request_id",
    [
        "",
        "x",
        "a:b:c",
        "5b0a5ddc-36a9-4b58-8ce5-3e6c1a2d3c4f",
        pytest.param(drawn(timedelta(hours=24, minutes=1)), id="too old"),
        pytest.param(signing.TimestampSigner(salt="accounts.signup").sign("x"), id="another's"),
        "\x00",
    ],
)
def test_a_request_id_that_is_forged_or_too_old_is_rejected_and_renewed(
    client: Client, ann: User, request_id: str
) -> None:
    form = typed(LINE, request_id=request_id)

    page = refused(client, ann, form)

    assert page.errors["request_id"]
    again = client.post(NEW, form | {"request_id": page.value("request_id")})
    assert again["Location"] == page_of(1)


# What issuing refuses -----------------------------------------------------------------------------


def test_a_series_with_a_later_date_is_an_error_with_that_date(client: Client, ann: User) -> None:
    last = TODAY.replace(month=12, day=31)
    issued(ann, issued_on=last)
    if last == TODAY:
        pytest.skip("no day of this year is left")

    response = client.post(NEW, typed(LINE))

    (advice,) = Page(response).errors[""]
    assert "Dec. 31" in advice
    assert len(stored(ann)) == 1


def test_a_damaged_series_is_shown_and_logged(
    client: Client, ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    series = issued(ann).series
    remove_counter(InvoiceItem, series)

    response = client.post(NEW, typed(LINE))

    (advice,) = Page(response).errors[""]
    assert "nothing was issued" in advice
    assert series in caplog.text
    assert len(stored(ann)) == 1


# Issue again --------------------------------------------------------------------------------------


@pytest.mark.parametrize("voided", [False, True])
def test_issuing_again_fills_a_new_form_from_an_invoice(
    client: Client, ann: User, voided: bool
) -> None:
    lines = [LINE | {"description": "b", "quantity": "-1.50"}, LINE]
    client.post(NEW, typed(*lines, currency="JPY", note="a note"))
    if voided:
        client.post(f"{page_of(1)}void/", {"reason": "wrong"})

    shown = client.get(f"{NEW}?from={label(1)}").content.decode()
    assert re.search(r'<option value="JPY"\s+selected>', shown)
    form = form_values(client, f"{NEW}?from={label(1)}", currency="JPY")
    response = client.post(f"{NEW}?from={label(1)}", form)

    assert response["Location"] == page_of(2)
    first, second = stored(ann)
    assert (second.customer, second.lines, second.note) == (first.customer, first.lines, first.note)
    assert (second.totals, second.status) == (first.totals, "issued")


# Showing ------------------------------------------------------------------------------------------


def test_an_invoice_costs_one_read_besides_session_and_account(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    issued(ann)
    for url, read in {
        page_of(1): "TransactGetItems",
        f"/invoices/{label(1)}.pdf": "GetItem",
    }.items():
        requests_sent.clear()
        assert client.get(url).status_code == 200
        assert requests_sent.operations == [*OF_EVERY_PAGE, read]


def test_hostile_text_is_shown_as_text(client: Client, ann: User) -> None:
    hostile = "<script>alert(1)</script>\"'&{{ 7|add:7 }}"
    edit_profile(ann, business_name=hostile)
    form = typed(LINE | {"description": hostile}, customer_name=hostile, note=hostile)
    form["customer_address"] = hostile
    client.post(NEW, form)
    client.post(f"{page_of(1)}void/", {"reason": hostile})
    refusal = client.post(NEW, form | {"lines-0-quantity": hostile, "currency": hostile})

    pages = [refusal] + [
        client.get(url)
        for url in (page_of(1), LIST, f"{LIST}?customer={hostile[:8]}", f"{NEW}?from={label(1)}")
    ]
    for response in pages:
        assert response.status_code == 200
        assert b"<script>alert" not in response.content
        assert hostile[:8] in Page(response).text + str(Page(response).fields)


def test_the_browser_shows_the_pdf_and_reads_it_again_only_if_it_changed(
    client: Client, ann: User
) -> None:
    issued(ann)
    url = f"/invoices/{label(1)}.pdf"

    response = client.get(url)

    assert response.content.startswith(b"%PDF-")
    assert response["Content-Type"] == "application/pdf"
    assert response["Content-Disposition"] == f'inline; filename="{label(1)}.pdf"'
    assert response["Cache-Control"] == "private, no-store"
    known = {"If-None-Match": response["ETag"]}
    assert client.get(url, headers=known).status_code == 304
    client.post(f"{page_of(1)}void/", {"reason": "wrong"})
    assert client.get(url, headers=known).status_code == 200


# Voiding ------------------------------------------------------------------------------------------


def test_an_invoice_is_voided_with_a_reason_and_shows_it(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    issued(ann)
    assert "cannot be undone" in Page(client.get(f"{page_of(1)}void/")).text
    requests_sent.clear()

    response = client.post(f"{page_of(1)}void/", {"reason": " Wrong customer. "})

    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactWriteItems"]
    assert (response.status_code, response["Location"]) == (302, page_of(1))
    invoice = the_invoice(ann)
    assert (invoice.status, invoice.void_reason) == ("voided", "Wrong customer.")
    assert invoice.voided_at is not None
    shown = Page(client.get(page_of(1))).text
    assert "Wrong customer." in shown
    assert "Voided on" in shown
    assert "Voided" in Page(client.get(LIST)).text
    assert f"{page_of(1)}void/" not in client.get(page_of(1)).content.decode()


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, "a\nb", "😀", "\x00", "\u2060"])
def test_a_reason_that_is_not_allowed_is_rejected_at_its_field(
    client: Client, ann: User, reason: str
) -> None:
    before = issued(ann)

    response = client.post(f"{page_of(1)}void/", {"reason": reason})

    assert response.status_code == 200
    assert list(Page(response).errors) == ["reason"]
    assert the_invoice(ann) == before


def test_an_invoice_is_voided_once(client: Client, ann: User) -> None:
    issued(ann)
    client.post(f"{page_of(1)}void/", {"reason": "first"})
    before = the_invoice(ann)

    response = client.post(f"{page_of(1)}void/", {"reason": "second"})

    assert response.status_code == 200
    assert Page(response).errors == {"reason": ["The invoice was already voided: first"]}
    assert the_invoice(ann) == before
    assert the_invoice(ann).voided_at == before.voided_at
    assert client.get(f"{page_of(1)}void/")["Location"] == page_of(1)


# The list -----------------------------------------------------------------------------------------


def numbers(client: Client, query: str = "") -> list[int]:
    """The numbers that the list shows, in its order."""
    shown = client.get(LIST + query).content.decode()
    return [int(number) for number in re.findall(r'href="/invoices/\d{4}-(\d{6})/"', shown)]


def test_the_list_shows_this_years_invoices_newest_first_in_two_queries(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    for _ in range(3):
        issued(ann)
    requests_sent.clear()

    assert numbers(client) == [3, 2, 1]
    assert requests_sent.operations == [*OF_EVERY_PAGE, "Query", "Query"]


def test_older_invoices_are_a_link_away(client: Client, ann: User) -> None:
    for _ in range(53):
        issued(ann)

    assert numbers(client) == list(range(53, 3, -1))
    (older,) = re.findall(
        r'rel="next" href="([^"]*before[^"]*)"', client.get(LIST).content.decode()
    )
    assert numbers(client, older.replace("&amp;", "&")) == [3, 2, 1]
    assert numbers(client, f"?year={YEAR}&before=3") == [2, 1]


@pytest.mark.parametrize("step", [-1, 1])
def test_the_years_before_and_after_are_a_link_away(client: Client, ann: User, step: int) -> None:
    year = YEAR + step
    issued(ann, issued_on=TODAY.replace(year=year, day=1))

    assert numbers(client) == []
    assert f'href="?year={year}"' in client.get(LIST).content.decode()
    assert numbers(client, f"?year={year}") == [1]
    other = client.get(f"{LIST}?year={year}").content.decode()
    assert f'href="?year={YEAR}"' in other
    assert f"year={YEAR + 2}" not in other


def test_a_search_without_a_match_continues_where_it_stopped(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SEARCH_PAGE_SIZE", 2)
    monkeypatch.setattr(lists, "MAX_REQUESTS", 3)
    for customer in ("Zoe", *"abcde"):
        issued(ann, customer)

    assert numbers(client, "?customer=C") == [4]
    first = client.get(f"{LIST}?customer=zoe").content.decode()

    assert "in the last 4 invoices" in " ".join(first.split())
    (older,) = re.findall(r'rel="next" href="([^"]*before[^"]*)">Search older invoices<', first)
    assert numbers(client, older.replace("&amp;", "&")) == [1]


@pytest.mark.parametrize(
    "query",
    [
        *("year=x", "year=0", "year=99999", "year=-1", "year=2026.5", "customer=%00"),
        *("before=x", "before=0", "before=1e9", "before=9999999999999999999999"),
    ],
)
def test_a_list_with_an_invalid_query_is_not_found(client: Client, ann: User, query: str) -> None:
    assert client.get(f"{LIST}?{query}").status_code == 404


# The year as a file -------------------------------------------------------------------------------


def test_the_year_is_downloaded_as_a_table_and_as_pdfs(client: Client, ann: User) -> None:
    for customer in ("Bob", "Eve"):
        issued(ann, customer)
    files = {}
    for ending in ("csv", "zip"):
        response = client.get(f"/invoices/{YEAR}.{ending}")
        name = f"invoices-{YEAR}.{ending}"
        assert response["Content-Disposition"] == f'attachment; filename="{name}"'
        files[ending] = b"".join(response.streaming_content)  # type: ignore[attr-defined]

    table = files["csv"].decode()
    assert table.index("Bob") < table.index("Eve")
    with zipfile.ZipFile(io.BytesIO(files["zip"])) as archive:
        assert archive.namelist() == [f"{label(1)}.pdf", f"{label(2)}.pdf"]
        assert archive.read(f"{label(1)}.pdf") == client.get(f"/invoices/{label(1)}.pdf").content


# Other accounts -----------------------------------------------------------------------------------

OWN = [
    f"/invoices/{label(1)}/",
    f"/invoices/{label(1)}.pdf",
    f"/invoices/{label(1)}/void/",
    f"/invoices/new/?from={label(1)}",
    f"/invoices/{YEAR}.csv",
    f"/invoices/{YEAR}.zip",
]


@pytest.mark.parametrize("url", OWN)
def test_another_accounts_invoice_is_not_found(ann: User, stranger: Client, url: str) -> None:
    before = issued(ann)

    assert stranger.get(url).status_code == 404
    if "void" in url:
        assert stranger.post(url, {"reason": "mine now"}).status_code == 404
        assert stranger.post(url, {"reason": ""}).status_code == 404
    assert the_invoice(ann) == before
    assert numbers(stranger) == []


@pytest.mark.parametrize(
    "name",
    [
        *(label(2), "2026-000000", "2026-42", "2026-0000001", "26-000001", "x", "2026-000001x"),
        *("２０２６-000001", "2026-1e5", "2026-9999999999999999", "-000001"),
    ],
)
def test_a_number_that_is_not_valid_is_not_found(client: Client, ann: User, name: str) -> None:
    issued(ann)

    for url in (f"/invoices/{name}/", f"/invoices/{name}.pdf", f"/invoices/{name}/void/"):
        assert client.get(url).status_code == 404
    assert client.get(NEW, {"from": name}).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_other_methods_are_not_allowed(client: Client, ann: User, method: str) -> None:
    before = issued(ann)

    for url in (LIST, NEW, page_of(1), f"{page_of(1)}void/"):
        assert client.generic(method, url, "reason=x").status_code == 405
    assert the_invoice(ann) == before


def test_the_pages_are_linked_from_everywhere(client: Client, ann: User) -> None:
    assert f'href="{LIST}"' in client.get("/").content.decode()
    assert f'href="{LIST}"' not in Client().get("/").content.decode()
    issued(ann)
    assert f'href="{NEW}"' in client.get(LIST).content.decode()
    assert f'href="{NEW}?from={label(1)}"' in client.get(page_of(1)).content.decode()
