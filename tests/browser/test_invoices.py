"""An invoice in a real browser, with the page's script and without."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Dialog, Page, Route, expect

from accounts.models import User
from invoices.document.invoice import Customer, Invoice
from invoices.document.money import readable_amount
from invoices.store.issuing import issue_invoice
from invoices.store.lists import all_invoices
from invoices.store.settlement import mark_paid
from tests.clocks import hold_the_day
from tests.factories import make_user
from tests.invoice_factories import SELLER, draft, sell_as

pytestmark = pytest.mark.browser

TODAY = timezone.localdate()
YEAR = TODAY.year
FIRST = re.compile(rf"/invoices/{YEAR}-000001/$")

LINES = [
    ("Design", "1", "1200", "19"),
    ("Printing", "250", "0.125", "7"),
    ("Rebate", "-1", "50,0050", "19.0 %"),
]


@pytest.fixture(autouse=True)
def _it_stays_today(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_day(TODAY, monkeypatch)


@pytest.fixture
def ann(engine: str) -> User:
    user = make_user(username="ann")
    sell_as(user, name="Ann Ltd", address="1 High Street\nLondon")
    return user


@pytest.fixture
def page(open_page: Callable[..., Page], browser: Browser, ann: User) -> Page:
    """Ann's browser. An error in a script fails the test."""
    page = open_page(browser, ann)
    page.on("pageerror", _raise)
    return page


def _raise(error: Exception) -> None:
    raise error


def the_invoice(user: User) -> Invoice:
    (invoice,) = all_invoices(user.pk, YEAR)
    return invoice


def fill_line(page: Page, at: int, line: tuple[str, str, str, str]) -> None:
    group = page.get_by_role("group", name=f"Line {at + 1}", exact=True)
    for label, text in zip(("Description", "Quantity", "Unit price", "VAT %"), line, strict=True):
        group.get_by_label(label).fill(text)


def write(page: Page, lines: list[tuple[str, str, str, str]] = LINES) -> None:
    """Fill in the form of a new invoice."""
    page.goto("/invoices/new/")
    page.get_by_label("Customer’s name").fill("Bob & Söhne")
    for at, line in enumerate(lines):
        if at:
            page.get_by_role("button", name="Add a line").click()
        fill_line(page, at, line)


def send(page: Page) -> None:
    page.get_by_role("button", name="Issue the invoice").click()


def totals(page: Page) -> list[str]:
    """The totals that the page shows: net, VAT by rate, gross."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    return [amount.inner_text() for amount in page.locator(".totals dd").all()]


def stored_totals(invoice: Invoice) -> list[str]:
    sums = invoice.totals
    amounts = [sums.net, *(share.vat for share in sums.shares), sums.gross]
    return [readable_amount(amount, invoice.currency) for amount in amounts]


def test_an_invoice_is_written_issued_printed_voided_and_issued_again(
    page: Page, ann: User
) -> None:
    page.goto("/")
    page.get_by_role("link", name="Invoices", exact=True).click()
    page.get_by_role("link", name="New invoice").first.click()
    write(page)
    promised = totals(page)
    send(page)

    expect(page).to_have_url(FIRST)
    expect(page.get_by_role("status")).to_contain_text("was issued")
    invoice = the_invoice(ann)
    assert len(invoice.lines) == 3
    assert promised == stored_totals(invoice) == totals(page)

    pdf = page.request.get(f"/invoices/{invoice.label}.pdf")
    assert pdf.body().startswith(b"%PDF-")

    page.get_by_role("link", name="Void…").click()
    page.get_by_label("Reason").fill("Wrong price")
    page.get_by_role("button", name="Void the invoice").click()
    expect(page.get_by_role("main")).to_contain_text("Wrong price")

    page.get_by_role("link", name="Copy as new…").click()
    expect(page.get_by_label("Customer’s name")).to_have_value("Bob & Söhne")
    assert totals(page) == promised
    fill_line(page, 2, ("Rebate", "-1", "60", "19"))
    send(page)
    expect(page).to_have_url(re.compile(rf"/invoices/{YEAR}-000002/$"))

    page.get_by_role("link", name=f"All invoices of {YEAR}").click()
    expect(page.get_by_role("link", name=re.compile(rf"{YEAR}-\d+"))).to_have_count(2)
    page.get_by_label("Customer").fill("SÖHNE")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("row", name=re.compile("Voided"))).to_have_count(1)
    page.get_by_label("Customer").fill("nobody")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("main")).to_contain_text("Nothing matches")


def test_totals_are_those_of_the_last_answer_and_unknown_without_one(page: Page, ann: User) -> None:
    sell_as(ann, country="DE")
    page.goto("/invoices/new/")
    expect(page.get_by_label("Due date")).to_be_hidden()
    page.get_by_role("link", name="The date of supply").click()
    expect(page.get_by_label("Due date")).to_be_visible()
    fill_line(page, 0, ("Design", "1", "100,00", ""))
    assert totals(page) == ["€100.00", "€100.00"]
    # A small amount needs less.
    expect(page.get_by_role("link", name="The date of supply")).to_be_hidden()
    fill_line(page, 0, ("Design", "1", "100", "0"))
    page.locator("[data-checks]").get_by_role("link", name="Tax category").click()
    expect(page.get_by_label("Tax category")).to_be_focused()

    fill_line(page, 0, ("Design", "1", "100", "19"))
    assert totals(page)[-1] == "€119.00"
    held: list[Route] = []
    page.route("**/invoices/preview/", lambda route: held.append(route), times=1)
    with page.expect_request("**/invoices/preview/"):
        page.get_by_label("Quantity").fill("2")

    page.get_by_label("Quantity").fill("3")
    assert totals(page)[-1] == "€357.00"
    with page.expect_response("**/invoices/preview/"):
        held[0].continue_()
    # After another answer, the script has seen this one, too.
    page.evaluate("fetch('/livez').then((answer) => answer.text())")
    assert totals(page)[-1] == "€357.00"

    page.route("**/invoices/preview/", lambda route: route.abort())
    page.get_by_label("Quantity").fill("2")
    assert totals(page) == ["–", "–"]
    page.unroute("**/invoices/preview/")
    page.get_by_label("Quantity").fill("4")
    assert totals(page)[-1] == "€476.00"


def test_enter_adds_a_line_removing_one_moves_the_others_up_and_a_double_click_issues_once(
    page: Page, ann: User
) -> None:
    write(page)
    page.get_by_role("button", name="Remove line 2").click()
    second = page.get_by_role("group", name="Line 2", exact=True)
    expect(second.get_by_label("Description")).to_have_value("Rebate")

    second.get_by_label("VAT %").press("Enter")
    third = page.get_by_role("group", name="Line 3", exact=True)
    expect(third.get_by_label("Description")).to_be_focused()
    expect(third.get_by_label("VAT %")).to_have_value("19.0 %")
    assert list(all_invoices(ann.pk, YEAR)) == []

    page.get_by_role("button", name="Issue the invoice").dblclick()
    expect(page).to_have_url(FIRST)
    assert [line.description for line in the_invoice(ann).lines] == ["Design", "Rebate"]


def test_a_refused_form_keeps_what_was_typed_and_moves_the_focus_to_the_error(
    page: Page, ann: User
) -> None:
    write(page)
    fill_line(page, 1, ("Printing", "1,500", "0.125", "7"))
    assert set(totals(page)) == {"–"}
    send(page)

    wrong = page.get_by_role("group", name="Line 2", exact=True).get_by_label("Quantity")
    expect(wrong).to_be_focused()
    expect(wrong).to_have_value("1,500")
    expect(page.get_by_text("Enter 1500 or 1.5000: “1,500” can be either.")).to_be_visible()
    wrong.fill("1.5")
    send(page)
    expect(page).to_have_url(FIRST)
    assert len(the_invoice(ann).lines) == 3


def test_the_form_works_without_a_script(
    open_page: Callable[..., Page], browser: Browser, ann: User
) -> None:
    page = open_page(browser, ann, java_script_enabled=False)
    write(page, LINES)
    page.get_by_label("Customer’s name").press("Enter")
    fill_line(page, 3, ("Too much", "1", "1", "19"))
    page.get_by_role("button", name="Remove line 4").click()
    expect(page.get_by_role("group", name=re.compile("Line"))).to_have_count(3)
    send(page)

    expect(page).to_have_url(FIRST)
    assert totals(page) == stored_totals(the_invoice(ann))
    assert [line.description for line in the_invoice(ann).lines] == ["Design", "Printing", "Rebate"]


def test_long_numbers_and_the_error_of_their_line_are_fully_visible_and_leave_room(
    page: Page, ann: User
) -> None:
    write(page, [("Design of the archive", "x", "123456789.50", "19")])
    send(page)
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        price = page.get_by_label("Unit price")
        assert price.evaluate("field => field.scrollWidth <= field.clientWidth")
        error = page.get_by_text("Enter a number such as 12.50.")
        assert error.bounding_box()["height"] < 40  # type: ignore[index]  # it is seen: one row of text

    fill_line(page, 0, ("Design of the archive", "999.123456", "999999999.123456", "8.125"))
    page.get_by_label("Customer’s name").fill("Donaudampfschiff" * 6)
    send(page)
    expect(page).to_have_url(FIRST)
    cell = page.get_by_role("cell", name="Design of the archive").bounding_box()
    assert cell is not None
    assert cell["width"] >= 200
    page.goto("/invoices/")
    assert page.locator(".scroll").evaluate("it => it.scrollWidth <= it.clientWidth")


def test_what_is_typed_is_not_lost_without_a_question(page: Page) -> None:
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    write(page, LINES[:1])
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_label("Customer’s name")).to_have_value("Bob & Söhne")
    assert asked == ["beforeunload"]

    page.get_by_role("button", name="Change in your profile").click()
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text("It was not sent yet.")).to_be_visible()
    page.get_by_role("button", name="日本語").click()
    expect(page.get_by_role("button", name="請求書を発行")).to_be_visible()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_label("Unit price")).to_have_value("1200")
    page.get_by_label("Customer’s name").press("Enter")
    expect(page.get_by_text("No customer matches")).to_be_visible()
    expect(page.get_by_label("Unit price")).to_have_count(1)
    assert asked == ["beforeunload"]


def test_back_to_the_form_restores_the_lines_that_a_script_added_and_removed(page: Page) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    write(page, [("Removed", "1", "1", "19"), *LINES])
    page.get_by_role("button", name="Remove line 1").click()
    promised = totals(page)
    page.get_by_role("link", name="Cancel").click()
    expect(page).to_have_url(re.compile("/invoices/$"))

    page.go_back()

    for at, (description, quantity, *_others) in enumerate(LINES):
        line = page.get_by_role("group", name=f"Line {at + 1}", exact=True)
        expect(line.get_by_label("Description")).to_have_value(description)
        expect(line.get_by_label("Quantity")).to_have_value(quantity)
    expect(page.get_by_role("group", name=re.compile("Line"))).to_have_count(3)
    assert totals(page) == promised
    expect(page.get_by_label("Customer’s name")).to_have_value("Bob & Söhne")


def test_a_printed_page_has_what_is_printed_and_an_arabic_address_stays_in_its_column(
    page: Page, ann: User
) -> None:
    customer = Customer("Bob", "شارع الملك\nالرياض")
    contents = draft(day=TODAY, due_date=TODAY, exemption_reason="§ 4 UStG")
    issue_invoice(replace(contents, customer=customer), account=ann.pk, seller=SELLER)
    mark_paid(ann.pk, f"{YEAR}-000001", TODAY)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"/invoices/{YEAR}-000001/")
    name = page.get_by_text("Bob", exact=True).bounding_box()
    address = page.get_by_text("شارع الملك").bounding_box()
    assert name
    assert address
    assert abs(address["x"] - name["x"]) < 1
    assert address["width"] < 200
    remark = page.get_by_text("§ 4 UStG").locator("xpath=ancestor::ul").bounding_box()
    sums = page.locator(".totals").bounding_box()
    assert remark
    assert sums
    assert (remark["x"], remark["width"]) == (sums["x"], sums["width"])

    page.emulate_media(media="print")
    expect(page.get_by_text("Bob", exact=True)).to_be_visible()
    for hidden in ("nav", "footer", "button", ".actions", ".unprinted"):
        expect(page.locator(f"{hidden} >> visible=true")).to_have_count(0)
    page.goto("/invoices/")
    for hidden in ("input", "select", "nav"):
        expect(page.locator(f"{hidden} >> visible=true")).to_have_count(0)


def test_the_header_stays_where_it_is(page: Page, ann: User) -> None:
    issue_invoice(draft(day=TODAY), account=ann.pk, seller=SELLER)
    page.set_viewport_size({"width": 1280, "height": 700})
    places = set()
    for path in ("/", "/invoices/", f"/invoices/{YEAR}-000001/", "/invoices/new/"):
        page.goto(path)
        boxes = [page.locator(text).bounding_box() for text in (".brand", ".site-nav")]
        places.add(tuple((box["x"], box["y"]) for box in boxes if box))
    assert len(places) == 1


@pytest.mark.parametrize("scripted", [True, False])
def test_back_reload_and_menu_keep_what_a_preview_shows_and_lead_to_the_issued_invoice(
    open_page: Callable[..., Page], browser: Browser, ann: User, scripted: bool
) -> None:
    page = open_page(browser, ann, java_script_enabled=scripted)
    name = page.get_by_label("Customer’s name")
    for name_typed in ("Bob", "Carl"):
        page.goto(f"/invoices/new/?tab={name_typed}")
        name.fill(name_typed)
        page.get_by_label("Currency").select_option("EUR")
        fill_line(page, 0, LINES[0])
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    page.reload()
    expect(page.get_by_role("main")).to_contain_text("Carl")
    page.go_back()
    expect(name).to_have_value("Carl")
    page.go_forward()
    page.get_by_role("link", name="Invoices", exact=True).click()
    page.get_by_role("link", name="New invoice").first.click()
    expect(name).to_have_value("Carl")
    page.go_back()
    expect(page).to_have_url(re.compile("/invoices/$"))
    page.go_back()
    page.get_by_role("link", name="Change").click()
    expect(name).to_have_value("Carl")
    page.get_by_role("button", name="Preview").click()

    send(page)

    expect(page).to_have_url(FIRST)
    page.go_back()
    expect(page).to_have_url(FIRST)
    expect(page.get_by_role("status")).to_contain_text("has issued invoice")
    assert the_invoice(ann).customer.name == "Carl"


def test_back_to_a_form_with_errors_shows_what_was_typed_and_sends_nothing(
    page: Page, ann: User
) -> None:
    page.goto("/invoices/customers/new/")
    name, email = page.get_by_label("Customer’s name"), page.get_by_label("email")
    name.fill("Bob & Söhne")
    email.fill("bob@@example.org")
    page.locator("main form").evaluate("form => { form.noValidate = true }")
    page.get_by_role("button", name="Save").click()
    expect(email).to_be_focused()
    # A script of the page prepares the way back.
    page.wait_for_load_state("load")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))

    page.get_by_role("link", name="Invoices", exact=True).click()
    expect(page).to_have_url(re.compile("/invoices/$"))
    page.go_back()

    expect(name).to_have_value("Bob & Söhne")
    expect(email).to_have_value("bob@@example.org")
    assert "POST" not in sent
