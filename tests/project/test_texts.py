"""Texts that depend on the situation, and the mark of the current page in the navigation."""

import re

import pytest
from django.test import Client

from invoices.store.issuing import today
from invoices.store.records import STANDINGS
from invoices.store.settlement import credit, mark_paid, void
from tests.accounts.test_unavailable_pages import outage
from tests.factories import PASSWORD, make_user
from tests.invoice_factories import DAY, issued, sell_as
from tests.mailbox import link
from tests.pages import RESET, SIGN_UP, Page, arrive, form_values, new_account

pytestmark = pytest.mark.usefixtures("engine")

FIRST = f"{DAY.year}-000001"


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
    sell_as(ann, country="DE")
    assert not optional()


#: What pages say: the page, a pattern that its HTML has, and one that it does not have.
SAYINGS = {
    "how an invoice is made and paid": (
        "/?signed-out",
        "Write</strong>.*Check</strong>.*Send</strong>.*Get paid</strong>",
        "counter",
    ),
    "what the law requires is not optional": (
        "/invoices/seller/",
        "With a country, an invoice is checked for what its law requires",
        r"[Oo]ptional",
    ),
    "the mail before it is sent": (
        f"/invoices/{FIRST}/send/",
        rf'value="Invoice {FIRST}: .*<textarea[^>]*name="message"[^>]*>\s*Hello,',
        r"[Oo]ptional",
    ),
    "a search leads to no other year": ("/invoices/?customer=Bob", FIRST, 'rel="(prev|next)"'),
    "nor does a filter": ("/invoices/?state=paid", "Nothing matches", 'rel="(prev|next)"'),
    **{
        f"one label for the current password: {path}": (
            path,
            r"<label [^>]*>\s*Current password:?\s*</label>",
            r"<label [^>]*>\s*(Old password|Your password|Password now)",
        )
        for path in (
            *("/accounts/username/", "/accounts/email/", "/accounts/delete/"),
            *("/accounts/password_change/", "/accounts/reauthenticate/"),
            "/admin/accounts/user/{pk}/action/deactivate/",
        )
    },
}


@pytest.mark.parametrize("saying", SAYINGS)
def test_pages_say_it(client: Client, saying: str) -> None:
    path, there, absent = SAYINGS[saying]
    ann = make_user(is_staff=True, is_superuser=True, email_confirmed=True)
    issued(ann.pk)
    if path != "/?signed-out":
        arrive(client, ann)

    response = client.get(path.format(pk=make_user(username="bea", email="bea@example.org").pk))

    html = response.content.decode().partition("<footer")[0]
    assert response.status_code == 200
    assert re.search(there, html, re.DOTALL)
    assert not re.search(absent, html)


def test_a_weak_password_is_an_error_of_the_field_password(client: Client) -> None:
    ann = make_user(email="ann@example.org")
    reset = Client()
    arrive(client, ann)
    client.post(RESET, {"email": "ann@example.org"})
    of_link = reset.get(link())["Location"]
    for visitor, path, fields in (
        (Client(), SIGN_UP, ("password1", "password2")),
        (client, "/accounts/password_change/", ("new_password1", "new_password2")),
        (reset, of_link, ("new_password1", "new_password2")),
    ):
        typed = form_values(visitor, path, **new_account("bea"), old_password=PASSWORD)
        page = Page(visitor.post(path, typed | dict.fromkeys(fields, "12345678")))
        assert page.errors.keys() == {fields[0]}, path


def test_the_list_shows_each_status_as_a_badge(client: Client) -> None:
    ann = make_user()
    day = today()
    arrive(client, ann)
    labels = [issued(ann.pk, day=day).label for _number in range(4)]
    void(ann.pk, labels[0], "Wrong")
    credit(ann.pk, labels[1], "Returned")
    mark_paid(ann.pk, labels[2], day)

    html = client.get("/invoices/").content.decode()

    states = re.findall(r'<td class="state">(.*?)</td>', html, re.DOTALL)
    badges = [re.fullmatch(r'<span class="status [\w ]*">(.+)</span>', state) for state in states]
    assert {badge[1] for badge in badges if badge} == {*map(str, STANDINGS.values())} - {"Overdue"}
    assert all(badges)


PLACES = {
    "/": None,
    "/invoices/": ("page", "/invoices/"),
    "/invoices/new/": ("true", "/invoices/"),
    f"/invoices/{DAY.year}-000001/": ("true", "/invoices/"),
    "/invoices/customers/": ("page", "/invoices/customers/"),
    "/invoices/customers/new/": ("true", "/invoices/customers/"),
    "/accounts/profile/": ("page", "/accounts/profile/"),
    "/invoices/seller/": ("true", "/accounts/profile/"),
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
