"""The list of invoices: its years, its pages, its searches; damaged invoices."""

from __future__ import annotations

import csv
import html
import re
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from invoices.store import lists
from invoices.store.settlement import credit, mark_paid, void
from tests.clocks import hold_the_day
from tests.invoice_factories import issued, put_invoice, stored_invoices
from tests.invoices.forms import listed
from tests.pages import Page, arrive
from tests.requests import OF_EVERY_PAGE, Requests

LIST = "/invoices/"
TODAY = date(2026, 11, 20)
YESTERDAY = TODAY - timedelta(days=1)
YEAR = TODAY.year


@pytest.fixture(autouse=True)
def _it_stays_today(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_the_day(TODAY, monkeypatch)


def labels(*numbers: int, year: int = YEAR) -> list[str]:
    return [f"{year}-{number:06}" for number in numbers]


def next_page(client: Client, query: str = "") -> str:
    """The query of the link to older invoices, empty if there is none."""
    page = client.get(LIST + query).content.decode()
    found = re.search(r'rel="next" href="(\?[^"]*)">(?:Search older|Older)', page)
    return html.unescape(found[1]) if found else ""


def test_older_invoices_are_a_link_away(client: Client, ann: User) -> None:
    for _ in range(53):
        issued(ann.pk, day=TODAY)

    assert listed(client) == labels(*range(53, 3, -1))
    assert listed(client, next_page(client)) == labels(3, 2, 1)
    assert listed(client, f"?year={YEAR}&before=3") == labels(2, 1)


@pytest.mark.parametrize("step", [-1, 1])
def test_the_years_before_and_after_are_a_link_away(client: Client, ann: User, step: int) -> None:
    year = YEAR + step
    issued(ann.pk, day=TODAY.replace(year=year, day=1))

    assert listed(client) == []
    assert f'href="?year={year}"' in client.get(LIST).content.decode()
    assert listed(client, f"?year={year}") == labels(1, year=year)
    other = client.get(f"{LIST}?year={year}").content.decode()
    assert f'href="?year={YEAR}"' in other
    assert f"year={YEAR + 2}" not in other


def test_a_search_without_a_match_continues_where_it_stopped(
    client: Client, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "SEARCH_PAGE_SIZE", 2)
    monkeypatch.setattr(lists, "MAX_REQUESTS", 3)
    for customer in ("Zoe", *"abcde"):
        issued(ann.pk, customer=customer, day=TODAY)

    assert listed(client, "?customer=C") == labels(4)
    first = client.get(f"{LIST}?customer=zoe")
    assert "in the last 4 invoices" in " ".join(Page(first).text.split())
    assert listed(client, next_page(client, "?customer=zoe")) == labels(1)


def test_a_search_goes_on_in_earlier_years_and_leads_to_more(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    arrive(client, ann)
    for years_ago, customer in ((4, "Café Noir"), (2, "Bob"), (1, "Café Blanc")):
        day = TODAY.replace(year=YEAR - years_ago, month=3, day=1)
        issued(ann.pk, customer=customer, day=day, due_date=day)

    def found(query: str) -> list[str]:
        requests_sent.clear()
        shown = listed(client, query)
        assert len(requests_sent.operations) - len(OF_EVERY_PAGE) <= lists.MAX_REQUESTS
        return shown

    [last], [old] = labels(1, year=YEAR - 1), labels(1, year=YEAR - 4)
    for query in ("?state=overdue", "?customer=cafe", "?customer=CAFE&state=open"):
        assert found(query) == [last]
        more = next_page(client, query)
        assert found(more)[-1] == old
        assert not next_page(client, more)
    assert (found(f"?customer={old}"), next_page(client, f"?customer={old}")) == ([old], "")
    for nothing in (f"{YEAR - 4}-000002", f"{YEAR - 2}-"):
        assert found(f"?customer={nothing}") == []
    assert found(f"?customer=0001&year={YEAR - 2}") == [*labels(1, year=YEAR - 2), old]


@pytest.fixture
def one_of_each(client: Client, ann: User) -> None:
    """Open, overdue, paid, credited, voided, paid and credited; 7 and 8 are the credit notes."""
    arrive(client, ann)
    for number in range(1, 7):
        due = YESTERDAY if number in {2, 3} else TODAY
        issued(ann.pk, customer=f"Customer {number}", day=YESTERDAY, due_date=due)
    third, fourth, fifth, sixth = labels(3, 4, 5, 6)
    for label in (third, sixth):
        mark_paid(ann.pk, label, TODAY)
    void(ann.pk, fifth, "Wrong")
    for label in (fourth, sixth):
        credit(ann.pk, label, "Returned")


@pytest.mark.usefixtures("one_of_each")
def test_the_list_shows_the_documents_of_a_state(client: Client, requests_sent: Requests) -> None:
    for query, numbers in {
        "": [8, 7, 6, 5, 4, 3, 2, 1],
        "state=open": [2, 1],
        "state=overdue": [2],
        "state=paid": [3],
        "state=credited": [6, 4],
        "state=credit_note": [8, 7],
        "state=voided": [5],
        "state=credited&customer=customer+6": [6],
        "state=open&customer=customer+6": [],
    }.items():
        requests_sent.clear()

        assert listed(client, f"?{query}") == labels(*numbers), query

        # A search also asks for the earlier years.
        years = ["TransactGetItems"] if query else []
        assert requests_sent.operations == [*OF_EVERY_PAGE, "Query", "Query", *years]
    nothing = " ".join(Page(client.get(f"{LIST}?{query}")).text.split())
    assert f"Nothing matches in the invoices up to {YEAR}." in nothing
    assert "All invoices" in nothing


@pytest.mark.usefixtures("one_of_each")
def test_the_table_of_a_year_has_the_state_of_each_invoice(client: Client) -> None:
    answer: Any = client.get(f"{LIST}{YEAR}.csv")
    assert answer["Content-Disposition"] == f'attachment; filename="invoices-{YEAR}.csv"'
    text = b"".join(answer.streaming_content).decode("utf-8-sig")

    names = ("state", "paid on", "due date")
    assert [[row[name] for name in names] for row in csv.DictReader(text.splitlines())] == [
        ["open", "", f"{TODAY}"],
        ["overdue", "", f"{YESTERDAY}"],
        ["paid", f"{TODAY}", f"{YESTERDAY}"],
        ["credited", "", f"{TODAY}"],
        ["voided", "", f"{TODAY}"],
        ["credited", f"{TODAY}", f"{TODAY}"],
        ["credit_note", "", ""],
        ["credit_note", "", ""],
    ]


def test_the_list_shows_the_others_and_names_the_damaged_invoice(client: Client, ann: User) -> None:
    for _ in range(3):
        issued(ann.pk, customer="Zoe", day=TODAY)
    put_invoice(stored_invoices(ann.pk, YEAR)[1], customerName={"N": "1"})

    for query in ("", "?customer=zoe"):
        assert listed(client, query) == labels(3, 1)
        told = Page(client.get(LIST + query)).text
        assert f"are damaged and cannot be shown: {YEAR}-000002." in " ".join(told.split())
