"""The list of invoices: listing and searching with few requests, its pages, damaged invoices."""

import csv
import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from dynamo.exceptions import DamagedItem
from dynamo.management.base import unreadable
from invoices.models import InvoiceItem
from invoices.store import lists
from invoices.store.lists import list_invoices
from invoices.store.records import from_item, to_item
from invoices.store.settlement import credit, mark_paid, void
from sequences.exceptions import DamagedSeries
from tests.commands import run
from tests.invoice_factories import DAY, issued, put_invoice, series, stored_invoices
from tests.invoices.forms import LIST, TODAY, listed
from tests.invoices.samples import an_invoice
from tests.numbered import stored_guard
from tests.pages import Page, arrive
from tests.requests import OF_EVERY_PAGE, Requests

pytestmark = pytest.mark.usefixtures("held_day")

YESTERDAY = TODAY - timedelta(days=1)
YEAR = TODAY.year


def pages_of(account: str, **query: Any) -> list[lists.Page]:
    """All pages of the list of a year."""
    found = [list_invoices(account, DAY.year, **query)]
    while found[-1].before is not None:
        found.append(list_invoices(account, DAY.year, before=found[-1].before, **query))
    return found


def numbers_of(found: list[lists.Page]) -> list[int]:
    return [invoice.number for page in found for invoice in page.invoices]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that reads at most 2 times 3 invoices."""
    monkeypatch.setattr(lists, "SEARCH_PAGE_SIZE", 3)
    monkeypatch.setattr(lists, "MAX_REQUESTS", 3)


@pytest.mark.usefixtures("small_pages")
def test_a_search_stops_after_some_requests_and_continues_where_it_stopped(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    for customer in ("Zoe", *"abcdefg"):
        issued(ann.pk, customer=customer, day=TODAY)
    arrive(client, ann)
    requests_sent.clear()

    first = client.get(f"{LIST}?customer=zoe")

    assert requests_sent.operations == [*OF_EVERY_PAGE, *["Query"] * 3]
    assert "in the last 6 invoices" in " ".join(Page(first).text.split())
    assert listed(client, next_page(client, "?customer=zoe")) == labels(1)


@pytest.mark.usefixtures("small_pages")
def test_a_search_whose_requests_end_with_a_year_continues_in_the_year_before(
    client: Client, ann: User
) -> None:
    for _ in range(5):
        issued(ann.pk, day=TODAY)

    assert f"year={YEAR - 1}" in next_page(client, "?customer=nobody")


@pytest.mark.usefixtures("small_pages")
def test_the_pages_of_a_search_have_every_match_once(account: str) -> None:
    for at in range(14):
        issued(account, customer="Bob" if at % 3 else "Eve")

    found = pages_of(account, customer="bob", limit=2)

    assert numbers_of(found) == [number for number in range(14, 0, -1) if (number - 1) % 3]
    assert max(len(page.invoices) for page in found) == 2


def test_a_list_is_sent_only_what_it_shows(account: str, requests_sent: Requests) -> None:
    list_invoices(account, DAY.year)

    asked = {
        name
        for request in requests_sent.requests
        for name in request["ExpressionAttributeNames"].values()
    }
    assert {"customerName", "gross", "paidOn"} <= asked
    assert asked.isdisjoint({"lines", "sellerName", "note", "sendings"})
    assert all(request["ProjectionExpression"] for request in requests_sent.requests)


def test_a_search_ignores_case_width_accents_and_composition(account: str) -> None:
    typed = {
        "Große Straße 1": "STRASSE",
        "Zoe\u0308 & Söhne": "zoë & s",
        "ΟΔΥΣΣΕΥΣ": "Οδυσσεύς".replace("ύ", "υ"),
        "ﾔﾏﾀﾞ商店": "ヤマダ",
        "ＡＢＣ": "abc",
        "Café Noir": "CAFE N",
        "がらくた商店": "がらくた",
    }
    for name in ("からくた", *typed):
        issued(account, customer=name)

    for name, text in typed.items():
        page = list_invoices(account, DAY.year, customer=text)
        assert [invoice.customer_name for invoice in page.invoices] == [name], text


def test_a_page_of_large_invoices_is_short_and_another_follows(
    account: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(lists, "MAX_REQUESTS", 2)
    for _ in range(5):
        issued(account, description="x" * 300_000)
    requests_sent.clear()

    first, second = pages_of(account)

    assert requests_sent.operations == ["Query"] * 4
    assert 1 <= len(first.invoices) < 5
    assert numbers_of([first, second]) == [5, 4, 3, 2, 1]


# The page -----------------------------------------------------------------------------------------


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

    assert f'href="?year={year}"' in client.get(LIST).content.decode()
    assert listed(client, f"?year={year}") == labels(1, year=year)
    other = client.get(f"{LIST}?year={year}").content.decode()
    assert f'href="?year={YEAR}"' in other
    assert f"year={YEAR + 2}" not in other


def test_a_search_continues_in_earlier_years_and_links_to_more(
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

    [last] = labels(1, year=YEAR - 1)
    [old] = labels(1, year=YEAR - 4)
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


def test_list_and_table_of_a_year_have_the_state_of_each_invoice(
    client: Client, one_of_each: None, requests_sent: Requests
) -> None:
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

    table: Any = client.get(f"{LIST}{YEAR}.csv")
    assert table["Content-Disposition"] == f'attachment; filename="invoices-{YEAR}.csv"'
    rows = csv.DictReader(b"".join(table.streaming_content).decode().splitlines())
    assert [f"{row['state']} {row['paid on']} {row['due date']}" for row in rows] == [
        *(f"open  {TODAY}", f"overdue  {YESTERDAY}", f"paid {TODAY} {YESTERDAY}"),
        *(f"credited  {TODAY}", f"voided  {TODAY}", f"credited {TODAY} {TODAY}"),
        *["credit_note  "] * 2,
    ]


def test_the_list_shows_the_others_and_names_the_damaged_invoice(client: Client, ann: User) -> None:
    for _ in range(3):
        issued(ann.pk, customer="Zoe", day=TODAY)
    put_invoice(stored_invoices(ann.pk, YEAR)[1], customerName={"N": "1"})

    for query in ("", "?customer=zoe"):
        assert listed(client, query) == labels(3, 1)
        told = Page(client.get(LIST + query)).text
        assert f"are damaged and cannot be shown: {YEAR}-000002." in " ".join(told.split())


# Damaged invoices ---------------------------------------------------------------------------------

NO_LINES = {"lines": {"S": "many"}}


def damage(account: str, number: int, changes: dict[str, Any] = NO_LINES) -> None:
    """Change the stored item of an invoice."""
    put_invoice(stored_invoices(account)[number - 1], **changes)


@pytest.mark.parametrize(
    "changes",
    [
        NO_LINES,
        {"issuedAt": {"S": "yesterday"}},
        {"issuedAt": {"S": "1999-12-31"}},
        {"gross": {"S": "much"}, "vat": {"N": "19"}},
        {"currency": {}},
        {"customerName": {"N": "5"}},
    ],
    ids=str,
)
def test_an_item_that_is_not_an_invoice_is_an_error_that_names_it(changes: dict[str, Any]) -> None:
    item = {name: value for name, value in (to_item(an_invoice()) | changes).items() if value}

    with pytest.raises(DamagedItem) as damaged:
        from_item(item)

    assert damaged.value.key == "account-1#2026#42"
    assert damaged.value.problem.startswith("not an invoice (")


def test_listinvoices_lists_the_others_and_names_at_most_ten_damaged_invoices(ann: User) -> None:
    labels = [issued(ann.pk).label for _ in range(3)]
    for number in (1, 2):
        damage(ann.pk, number)

    for limit, error in {
        "1": "",
        "9": f"2 damaged invoices could not be read: {series(ann.pk)}#2, {series(ann.pk)}#1.",
    }.items():
        out, err, _code = run("listinvoices", "--user", "ann", "--json", "--limit", limit)
        assert [json.loads(line)["number"] for line in out.splitlines()] == labels[-1:]
        assert err.removeprefix("CommandError: ").rstrip("\n") == error
    assert str(unreadable("invoice", list("abcdefghijkl"))).endswith(", j and 2 more.")


@pytest.mark.parametrize("damaged", ["x", "{account}#twenty"])
def test_a_guard_that_does_not_name_an_invoice_stops_only_its_request(
    account: str, damaged: str
) -> None:
    issued(account, request_id="r")
    elsewhere = damaged.format(account=account)
    damage(account, 1, {"series": {"S": elsewhere}})
    guard = stored_guard(InvoiceItem, series(account), "r")
    assert guard is not None
    put_invoice(guard, owner={"S": f"{elsewhere}#1"})

    with pytest.raises(DamagedSeries):
        issued(account, request_id="r", note="other")

    assert issued(account).number == 2


def test_a_repeated_request_of_a_damaged_invoice_is_an_error_and_issues_nothing(
    account: str,
) -> None:
    issued(account, request_id="r")
    damage(account, 1)

    with pytest.raises(DamagedItem):
        issued(account, request_id="r")

    assert len(stored_invoices(account)) == 1
    assert issued(account).number == 2
