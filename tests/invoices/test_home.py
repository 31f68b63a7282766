"""The start page: what a visitor gets, and what an account has to look at."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from accounts.services import edit_profile
from invoices.pages import views
from invoices.store import lists
from invoices.store.issuing import today
from invoices.store.settlement import mark_paid, void
from tests.factories import make_user
from tests.invoice_factories import DAY, issued
from tests.pages import Page

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


def test_the_first_steps_are_shown_until_all_are_done(client: Client) -> None:
    user = make_user()
    client.force_login(user)  # type: ignore[arg-type]  # the stubs want a model
    assert "table" not in Page(client.get("/")).tags
    steps = ["Confirm your email address", "Add your business details", "Write your first invoice"]

    def open_steps() -> list[str]:
        page = client.get("/").content.decode()
        return [step for step in steps if f">{step}</a>" in page]

    assert open_steps() == steps
    edit_profile(User.get(user.pk), business_name="Ann Ltd", business_address="London")
    assert open_steps() == [steps[0], steps[2]]
    issued(user.pk, issued_on=today())
    assert open_steps() == steps[:1]
    user = User.get(user.pk)
    user.change(email_confirmed_at=user.date_joined)
    assert "First steps" not in text_of(client)


def test_what_is_open_and_overdue_is_summed_by_currency(client: Client) -> None:
    user = make_user()
    client.force_login(user)  # type: ignore[arg-type]  # as above
    day = today()
    late: dict[str, Any] = {
        "issued_on": day - timedelta(days=9),
        "due_date": day - timedelta(days=2),
    }
    # Each has a gross total of 119.00.
    issued(user.pk, **late)
    mark_paid(user.pk, issued(user.pk, **late).label, day)
    issued(user.pk, issued_on=day)
    issued(user.pk, issued_on=day, currency="USD")
    void(user.pk, issued(user.pk, issued_on=day).label, "Wrong")

    text = text_of(client)

    assert "Open €238.00$119.00 3 invoices" in text
    assert "Overdue €119.00 1 invoice" in text
    assert f"since Jan. 1, {day.year - 1}" in text


@pytest.mark.parametrize("ages", [(2, 1, 1, 0, 0), (0, 0, 0, 0, 0)])
def test_what_is_summed_is_whole_from_the_day_that_is_named(
    client: Client, monkeypatch: pytest.MonkeyPatch, ages: tuple[int, ...]
) -> None:
    user = make_user()
    client.force_login(user)  # type: ignore[arg-type]  # as above
    monkeypatch.setattr(lists, "list_invoices", partial(lists.list_invoices, limit=3))
    for age in ages:
        issued(user.pk, issued_on=DAY - timedelta(days=age))

    found, since = lists.latest_invoices(user.pk, DAY)

    assert len(found) == 3
    assert since == (DAY if any(ages) else None)
    if since is None:
        monkeypatch.setattr(views, "today", lambda _zone: DAY)
        assert "Of your 3 newest invoices." in text_of(client)
        assert "Open €357.00 3 invoices" in text_of(client)
