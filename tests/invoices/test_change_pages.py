"""The pages that void and credit an invoice and mark it as paid."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from invoices.document.invoice import Invoice
from invoices.store.records import find_invoice, find_record
from invoices.store.settlement import credit, mark_paid, void
from tests.commands import run
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import assert_whole, issued, put_sendings
from tests.invoices.forms import TODAY
from tests.pages import Page, arrive, form_values
from tests.requests import OF_EVERY_PAGE, Requests

pytestmark = pytest.mark.usefixtures("engine", "held_day")

YESTERDAY = TODAY - timedelta(days=1)
FIRST, SECOND = (f"{TODAY.year}-{number:06}" for number in (1, 2))
PAGE = f"/invoices/{FIRST}/"
NOTE = f"/invoices/{SECOND}/"


@pytest.fixture(autouse=True)
def invoice(client: Client, ann: User) -> Invoice:
    """Ann's invoice `FIRST` over 119 euros. Her browser has opened a page."""
    arrive(client, ann)
    return issued(ann.pk, day=TODAY)


def words(response: Any) -> str:
    """The text of a page, with single spaces."""
    return " ".join(Page(response).text.split())


# All forms ----------------------------------------------------------------------------------------


def test_a_value_that_is_not_allowed_changes_nothing_and_is_an_error_at_its_field(
    client: Client, ann: User
) -> None:
    for change, field, texts in (
        ("credit", "reason", (" ", "x" * 501)),
        ("void", "reason", ("a\nb", "😀", "\x00", "\u2060")),
        ("paid", "paid_on", ("", "soon", str(TODAY + timedelta(days=1)), "1969-12-31")),
    ):
        for text in texts:
            page = Page(client.post(f"{PAGE}{change}/", {field: text}))
            assert list(page.errors) == page.autofocused() == [field]

    assert find_record(ann.pk, FIRST).standing == "open"
    assert_whole(ann.pk, 1, TODAY.year)


def test_a_refusal_is_an_error_at_the_field_and_a_form_without_a_chance_is_not_shown(
    client: Client, ann: User
) -> None:
    void(ann.pk, FIRST, "Wrong")
    credit(ann.pk, issued(ann.pk, day=TODAY).label, "Returned")
    paid = issued(ann.pk, day=TODAY).label
    mark_paid(ann.pk, paid, TODAY)
    third = f"{TODAY.year}-000003"

    for change, label, field, error in (
        ("void", FIRST, "reason", "was already voided: Wrong"),
        ("credit", FIRST, "reason", "was already voided: Wrong"),
        ("void", SECOND, "reason", "already credited"),
        ("paid", SECOND, "paid_on", "already credited"),
        *(
            (change, third, "reason", "is a credit note. It cannot be")
            for change in ("void", "credit")
        ),
        ("paid", third, "paid_on", "is a credit note. It cannot be"),
        ("void", paid, "reason", "already marked as paid on Nov. 20, 2026"),
        ("paid", paid, "paid_on", "already marked as paid on Nov. 20, 2026"),
    ):
        url = f"/invoices/{label}/{change}/"
        assert error in Page(client.post(url, {field: str(YESTERDAY)})).errors[field][0], url
        assert client.get(url)["Location"] == f"/invoices/{label}/"


def test_a_lost_answer_keeps_the_form_and_sending_it_again_does_nothing_more(
    client: Client, ann: User, proxy: FaultProxy, impatient: float
) -> None:
    form = form_values(client, f"{PAGE}credit/", reason="Returned", csrfmiddlewaretoken="t")
    proxy.plan("TransactWriteItems", DropReply(), times=1_000)
    unanswered = client.post(f"{PAGE}credit/", form)
    proxy.forget()

    assert unanswered.status_code == 503
    page = Page(unanswered)
    assert page.value("reason") == "Returned"
    assert "This page keeps what you sent" in page.text
    assert_whole(ann.pk, 2, TODAY.year)
    client.post(f"{PAGE}credit/", form)
    assert_whole(ann.pk, 2, TODAY.year)


# Each form ----------------------------------------------------------------------------------------


def test_an_invoice_is_voided_with_a_reason_and_shows_it(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    assert "cannot be undone" in words(client.get(f"{PAGE}void/"))
    requests_sent.clear()

    assert client.post(f"{PAGE}void/", {"reason": " Wrong customer. "})["Location"] == PAGE

    writes = ["TransactGetItems", "TransactWriteItems"]
    assert requests_sent.operations == [*OF_EVERY_PAGE, *writes]
    assert find_invoice(ann.pk, FIRST).void_reason == "Wrong customer."
    shown = client.get(PAGE)
    for text in ("Voided on", "Wrong customer."):
        assert text in words(shown)
    assert f"{PAGE}void/" not in shown.content.decode()
    assert "Bob Voided" in words(client.get("/invoices/"))


@pytest.mark.parametrize(
    ("outcome", "is_offered"),
    [("sent", False), ("unknown", False), ("refused", True), ("failed", True)],
)
def test_an_invoice_that_a_mail_may_have_brought_is_credited_and_not_voided(
    client: Client, ann: User, outcome: str, is_offered: bool
) -> None:
    shown = form_values(client, f"{PAGE}void/", reason="Wrong")
    entry = {"to": "bob@example.org", "at": "2026-11-20T10:00:00+00:00", "outcome": outcome}
    put_sendings(ann.pk, FIRST, {"r": entry})

    assert (f"{PAGE}void/" in client.get(PAGE).text) == is_offered
    assert f"{PAGE}credit/" in client.get(PAGE).text
    assert client.get(f"{PAGE}void/").status_code == (200 if is_offered else 302)
    refused = client.post(f"{PAGE}void/", shown)
    assert find_invoice(ann.pk, FIRST).is_voided == is_offered
    if not is_offered:
        [error] = Page(refused).errors["reason"]
        assert error.endswith("was sent by email, or may have been. Credit it instead.")


@pytest.mark.parametrize("by", ["page", "command"])
def test_an_invoice_is_voided_in_the_time_zone_of_its_account(
    by: str, client: Client, ann: User
) -> None:
    ann.change(time_zone="Pacific/Kiritimati")

    if by == "page":
        client.post(f"{PAGE}void/", {"reason": "Wrong"})
    else:
        run("voidinvoice", "--user", "ann", FIRST, "--reason", "Wrong")

    voided = find_invoice(ann.pk, FIRST)
    assert voided.voided_at is not None
    assert voided.voided_at.utcoffset() == timedelta(hours=14)


def test_a_site_without_voiding_hides_it_and_refuses_it(
    client: Client, ann: User, settings: Any
) -> None:
    settings.INVOICES_ALLOW_VOID = False

    assert f"{PAGE}void/" not in client.get(PAGE).content.decode()
    assert client.get(f"{PAGE}void/").status_code == 404
    assert client.post(f"{PAGE}void/", {"reason": "Wrong"}).status_code == 404
    _out, err, code = run("voidinvoice", "--user", "ann", FIRST, "--reason", "Wrong")
    assert (err, code) == ("CommandError: INVOICES_ALLOW_VOID is off. Use creditinvoice.\n", 1)

    assert not find_invoice(ann.pk, FIRST).is_voided
    assert client.post(f"{PAGE}credit/", {"reason": "Returned"})["Location"] == NOTE


def test_crediting_leads_to_the_credit_note_and_both_pages_name_each_other(
    client: Client, ann: User
) -> None:
    assert "A credit note for \u200e−\u2060€119.00 is issued" in words(client.get(f"{PAGE}credit/"))

    for reason in ("Returned <b>", "once more"):
        assert client.post(f"{PAGE}credit/", {"reason": reason})["Location"] == NOTE

    note = client.get(NOTE)
    original = client.get(PAGE)
    assert f'<a href="{PAGE}">invoice {FIRST}</a>' in note.content.decode()
    assert f'<a href="{NOTE}">credit note {SECOND}</a>' in original.content.decode()
    for page in (note, original):
        assert not re.search("/(credit|void|paid)/", page.content.decode())
    for text, response in (
        *((f"Credit note {SECOND}", note), ("Returned <b>", note)),
        *((text, client.get("/invoices/")) for text in ("Bob Credit note", "Bob Credited")),
    ):
        assert text in words(response)
    assert_whole(ann.pk, 2, TODAY.year)


def test_an_invoice_is_marked_as_paid_today_unless_another_day_is_typed_and_undone(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    assert form_values(client, f"{PAGE}paid/") == {"paid_on": str(TODAY)}
    requests_sent.clear()

    assert client.post(f"{PAGE}paid/", {"paid_on": str(YESTERDAY)})["Location"] == PAGE

    assert requests_sent.operations == [*OF_EVERY_PAGE, "TransactWriteItems"]
    page = client.get(PAGE)
    assert "Paid on" in words(page)
    assert Page(page).value("paid_on") == str(YESTERDAY)
    # A page that shows another payment changes nothing.
    for typed in (str(TODAY), ""):
        kept = client.post(f"{PAGE}unpaid/", {"paid_on": typed}, follow=True)
        assert "changed meanwhile" in Page(kept).messages[0]
    assert find_record(ann.pk, FIRST).state.paid_on == YESTERDAY

    undone = client.post(f"{PAGE}unpaid/", {"paid_on": str(YESTERDAY)}, follow=True)

    assert "no longer marked as paid" in Page(undone).messages[0]
    assert find_record(ann.pk, FIRST).standing == "open"


def test_a_payment_undone_after_the_session_ended_leads_to_the_invoice(client: Client) -> None:
    asked = Client().post(f"{PAGE}unpaid/", {"paid_on": str(TODAY)})

    next_page = asked["Location"].partition("?next=")[2]

    assert client.get(next_page)["Location"] == PAGE
