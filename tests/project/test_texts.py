"""Texts that depend on the situation, and the mark of the current page in the navigation."""

import re

import pytest
from django.test import Client

from accounts.services import edit_profile
from tests.accounts.test_unavailable_pages import outage
from tests.factories import make_user
from tests.invoice_factories import DAY, issued
from tests.pages import Page, arrive

pytestmark = pytest.mark.usefixtures("engine")


def test_only_the_503_page_of_a_sent_form_mentions_what_was_typed(client: Client) -> None:
    arrive(client, make_user(username="ann"))
    with outage():
        asked = client.get("/invoices/")
        sent = client.post("/accounts/password_change/", {"old_password": "x"})

    assert (asked.status_code, sent.status_code) == (503, 503)
    assert "What you typed" not in Page(asked).text
    assert "What you typed may not have been stored." in Page(sent).text


def test_what_the_law_requires_is_not_called_optional(client: Client) -> None:
    ann = make_user()
    arrive(client, ann)

    def optional() -> bool:
        page = client.get("/invoices/new/").content.decode()
        label = re.search(r'<label for="id_customer_address">(.*?)</label>', page)
        assert label
        return "(optional)" in label[1]

    assert optional()
    edit_profile(ann, country="DE")
    assert not optional()


PLACES = {
    "/": None,
    "/invoices/": ("page", "/invoices/"),
    "/invoices/new/": ("true", "/invoices/"),
    f"/invoices/{DAY.year}-000001/": ("true", "/invoices/"),
    "/invoices/customers/": ("page", "/invoices/customers/"),
    "/invoices/customers/new/": ("true", "/invoices/customers/"),
    "/accounts/profile/": ("page", "/accounts/profile/"),
}


def test_the_navigation_marks_the_current_page(client: Client) -> None:
    def marked(visitor: Client, path: str) -> list[tuple[str, str]]:
        nav = visitor.get(path).content.decode().partition("</nav>")[0].partition("<nav")[2]
        found = re.findall(r'href="([^"]+)"[^>]* aria-current="(\w+)"', nav)
        return [(current, href) for href, current in found]

    ann = make_user()
    arrive(client, ann)
    issued(ann.pk)

    assert {path: marked(client, path) for path in PLACES} == {
        path: [mark] if mark else [] for path, mark in PLACES.items()
    }
    assert marked(Client(), "/accounts/login/") == [("page", "/accounts/login/")]
