"""The start page: what a visitor gets, and what an account has to look at."""

import re
from datetime import timedelta
from functools import partial

import pytest
from django.test import Client

from accounts.models import User
from invoices.pages import views
from invoices.store import lists
from invoices.store.issuing import today
from invoices.store.settlement import mark_paid, void
from tests.invoice_factories import DAY, issued, sell_as
from tests.pages import Page, arrive
from tests.requests import OF_EVERY_PAGE, Requests

pytestmark = pytest.mark.usefixtures("engine")


def text_of(client: Client) -> str:
    return re.sub(r"\s+", " ", Page(client.get("/")).text)


def test_a_visitor_sees_one_button_a_picture_of_the_pdf_and_the_way_to_how_it_works(
    client: Client,
) -> None:
    page = client.get("/").content.decode()
    main = page[page.index("<main") : page.index("</main")]

    assert re.findall(r'class="button[^>]*href="([^"]+)"', main) == ["/accounts/signup/"]
    assert "invoices/sample-en.png" in main
    assert "guard item" not in main
    assert 'href="/how-it-works/"' in main
    assert "guard item" in client.get("/how-it-works/").content.decode()
    japanese = client.get("/", headers={"accept-language": "ja"}).content.decode()
    assert "invoices/sample-ja.png" in japanese


def test_the_first_steps_are_shown_until_all_are_done(client: Client, ann: User) -> None:
    assert "table" not in Page(client.get("/")).tags
    steps = ["Confirm your email address", "Add your business details", "Write your first invoice"]

    def open_steps() -> list[str]:
        page = client.get("/").content.decode()
        return [step for step in steps if f">{step}</a>" in page]

    assert open_steps() == steps
    sell_as(ann, name="Ann Ltd", address="London")
    assert open_steps() == [steps[0], steps[2]]
    issued(ann.pk, issued_on=today())
    assert open_steps() == steps[:1]
    user = User.get(ann.pk)
    user.change(email_confirmed_at=user.date_joined)
    assert "First steps" not in text_of(client)


def test_what_is_open_and_overdue_is_summed_by_currency_and_what_is_recent_is_listed(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    day = today()
    last_year = day.replace(year=day.year - 1, month=12, day=1)
    # Each has a gross total of 119.00.
    issued(ann.pk, customer="Late Ltd", issued_on=last_year, due_date=last_year)
    assert f'?year={last_year.year}">All invoices' in client.get("/").content.decode()
    mark_paid(ann.pk, issued(ann.pk, issued_on=day).label, day)
    for number in range(4):
        issued(ann.pk, customer=f"Customer {number}", issued_on=day)
    issued(ann.pk, issued_on=day, currency="USD")
    void(ann.pk, issued(ann.pk, issued_on=day).label, "Wrong")
    arrive(client, ann)
    requests_sent.clear()

    text = text_of(client)

    # The seller is read until the address is confirmed, for the first steps.
    assert sorted(requests_sent.operations) == sorted([*OF_EVERY_PAGE, *["Query"] * 4, "GetItem"])
    for shown in (
        *("Open €595.00$119.00 6 invoices", "Overdue €119.00 1 invoice", "Late Ltd Overdue"),
        f"since Jan. 1, {day.year - 1}",
    ):
        assert shown in text
    assert [f"Customer {number}" in text for number in range(4)] == [False, *[True] * 3]


@pytest.mark.parametrize("ages", [(2, 1, 1, 0, 0), (0, 0, 0, 0, 0)])
def test_the_sums_are_complete_from_the_day_that_the_page_names(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch, ages: tuple[int, ...]
) -> None:
    monkeypatch.setattr(lists, "list_invoices", partial(lists.list_invoices, limit=3))
    for age in ages:
        issued(ann.pk, issued_on=DAY - timedelta(days=age))

    found, since = lists.latest_invoices(ann.pk, DAY)

    assert (len(found), since) == (3, DAY if any(ages) else None)
    if since is None:
        monkeypatch.setattr(views, "today", lambda _zone: DAY)
        assert "Of your 3 newest invoices." in text_of(client)
        assert "Open €357.00 3 invoices" in text_of(client)
