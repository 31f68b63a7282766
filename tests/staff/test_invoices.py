"""Staff reads the invoices of an account. Each opening is in the audit log."""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from accounts.services import delete
from invoices.models import InvoiceItem
from invoices.store.settlement import void
from tests.factories import make_user
from tests.invoice_factories import DAY, issued, stored_invoices
from tests.items import put_item
from tests.pages import Page, meanwhile
from tests.requests import OF_EVERY_PAGE, Requests
from tests.staff.scenes import below, let_in, make_staff, page_of, stored_entries, take_rights

pytestmark = pytest.mark.usefixtures("engine")

LABEL = f"{DAY.year}-000001"
#: The page below that of the account, and the request that reads what it shows.
PAGES = {
    f"invoices/?year={DAY.year}": ["Query", "Query"],
    f"invoices/{LABEL}/": ["GetItem"],
    f"invoices/{LABEL}.pdf": ["GetItem"],
}

each_page = pytest.mark.parametrize("under", PAGES)


@pytest.fixture
def staff(engine: str) -> User:
    return make_staff(username="grace")


@pytest.fixture
def client(staff: User) -> Any:
    return let_in(staff)


@pytest.fixture
def bob(engine: str) -> User:
    """An account with two invoices, of which the second one is void."""
    bob = make_user(username="Bob", email="bob@example.com")
    for customer in ("Carl", "Dora"):
        issued(bob.pk, customer=customer)
    void(bob.pk, f"{DAY.year}-000002", "Wrong price")
    return bob


def opened() -> list[tuple[str, str]]:
    """What the audit log says that was opened: of which account, and what."""
    entries = [entry for entry in stored_entries() if entry["journal"]["S"].startswith("on#")]
    assert {entry["action"]["S"] for entry in entries} <= {"openInvoices"}
    assert 2 * len(entries) == len(stored_entries())
    return [(entry["onPk"]["S"], entry["what"]["S"]) for entry in entries]


@each_page
def test_opening_invoices_is_recorded_and_costs_two_requests_more_than_the_page(
    client: Any, bob: User, under: str, requests_sent: Requests
) -> None:
    before = stored_invoices(bob.pk)
    requests_sent.clear()

    response = client.get(below(bob) + under)

    assert response.status_code == 200
    of_page = ["GetItem", *PAGES[under], "TransactWriteItems"]
    assert sorted(requests_sent.operations) == sorted([*OF_EVERY_PAGE, *of_page])
    assert requests_sent.operations[-1] == "TransactWriteItems"
    assert opened() == [(bob.pk, str(DAY.year) if "?" in under else LABEL)]
    assert stored_invoices(bob.pk) == before


def test_the_pages_lead_to_each_other_and_change_nothing(client: Any, bob: User) -> None:
    book = f"{below(bob)}invoices/"
    assert f'href="{book}"' in client.get(page_of(bob)).content.decode()

    listed = client.get(book, {"year": DAY.year})
    assert {"Carl", "Dora", "Voided"} <= set(Page(listed).text.split())
    assert f'href="{book}{LABEL}/"' in listed.content.decode()

    text = client.get(f"{book}{LABEL}/").content.decode()
    for shown in ("Carl", f"{book}{LABEL}.pdf"):
        assert shown in text
    for action in ("void/", "/invoices/new/", "<textarea"):
        assert action not in text
    for under in PAGES:
        assert client.post(below(bob) + under).status_code == 405
    assert "no-store" in client.get(f"{book}{LABEL}.pdf")["Cache-Control"]


@pytest.mark.parametrize("change", [delete, lambda bob: bob.change(is_staff=True)])
def test_the_invoices_of_a_deleted_account_and_of_other_staff_can_be_opened(
    client: Any, bob: User, change: Callable[[User], object]
) -> None:
    change(bob)

    for under in PAGES:
        assert client.get(below(bob) + under).status_code == 200

    assert [what for _pk, what in opened()] == [str(DAY.year), LABEL, LABEL]
    assert bob.pk in client.get("/admin/record/").content.decode()
    assert client.get(f"{below(bob)}history/").status_code == 200


def test_what_does_not_exist_is_not_recorded(client: Any, bob: User) -> None:
    for under in (f"{DAY.year}-000003/", f"{DAY.year}-1/", "x.pdf", "?year=x", "?before=0"):
        assert client.get(f"{below(bob)}invoices/{under}").status_code == 404
    assert "no invoices of 1999" in Page(client.get(f"{below(bob)}invoices/?year=1999")).text

    assert opened() == []


def test_a_list_has_further_pages_and_names_damaged_invoices(client: Any, bob: User) -> None:
    [first, _second] = stored_invoices(bob.pk)
    book = f"{below(bob)}invoices/"
    older = Page(client.get(book, {"year": DAY.year, "before": 2})).text
    assert ("Carl" in older, "Dora" in older) == (True, False)
    put_item(InvoiceItem.table(), **first | {"currency": 1})

    listed = client.get(book, {"year": DAY.year})

    assert f"cannot be shown: {LABEL}" in Page(listed).text
    assert client.get(f"{book}{LABEL}/").status_code == 404


@each_page
def test_without_rights_for_the_entry_nothing_is_shown(
    engine: str, client: Any, staff: User, bob: User, under: str
) -> None:
    with meanwhile(engine, "TransactWriteItems", lambda: take_rights(staff)):
        answer = client.get(below(bob) + under)

    assert answer.status_code == 404
    assert b"Carl" not in answer.content
    assert opened() == []
