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
def test_a_search_stops_after_some_requests_and_tells_where(
    account: str, requests_sent: Requests
) -> None:
    for customer in ("Zoe", *"abcdefg"):
        issued(account, customer=customer)
    requests_sent.clear()

    first, second = pages_of(account, customer="zoe")

    assert requests_sent.operations == ["Query"] * (3 + 2)
    assert (first.invoices, first.before, first.searched) == ([], 3, 6)
    assert (numbers_of([second]), second.searched) == ([1], 2)


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
        for each in requests_sent.requests
        for name in each["ExpressionAttributeNames"].values()
    }
    assert {"customerName", "gross", "paidOn"} <= asked
    assert asked.isdisjoint({"lines", "sellerName", "note", "sendings"})
    assert all(each["ProjectionExpression"] for each in requests_sent.requests)


def test_a_search_ignores_case_width_and_composition(account: str) -> None:
    typed = {
        "Große Straße 1": "STRASSE",
        "Zoe\u0308 & Söhne": "zoë & s",
        "Zoë": "ZOE\u0308",
        "ΟΔΥΣΣΕΥΣ": "Οδυσσεύς".replace("ύ", "υ"),
        "ﾔﾏﾀﾞ商店": "ヤマダ",
        "ＡＢＣ": "abc",
        "Café Noir": "CAFE N",
        "Cafe": "café",
        "がらくた商店": "がらくた",
    }
    for name in ("からくた", *typed):
        issued(account, customer=name)

    also = {"Zoë": ["Zoe\u0308 & Söhne"], "Cafe": ["Café Noir"]}
    for name, text in typed.items():
        page = list_invoices(account, DAY.year, customer=text)
        found = [invoice.customer_name for invoice in page.invoices]
        assert sorted(found) == sorted([name, *also.get(name, [])]), text


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


# Damaged invoices ---------------------------------------------------------------------------------

NO_LINES = {"lines": {"S": "many"}}


def damage(account: str, number: int, changes: dict[str, Any] = NO_LINES) -> None:
    """Change the stored item of an invoice."""
    put_invoice(stored_invoices(account)[number - 1], **changes)


@pytest.mark.parametrize(
    "changes",
    [
        NO_LINES,
        {"lines": {"L": [{"S": "Work"}]}},
        {"issuedAt": {"S": "yesterday"}},
        {"issuedAt": {"S": "1999-12-31"}},
        {"net": {"N": "0.5"}},
        {"gross": {"S": "much"}, "vat": {"N": "19"}},
        {"voidedAt": {"S": "later"}},
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


def test_the_pages_of_the_list_leave_out_only_damaged_invoices(account: str) -> None:
    for _ in range(7):
        issued(account)
    for number in (2, 4, 6):
        damage(account, number, {"customerName": {"N": "1"}})

    found = pages_of(account, limit=2)

    assert numbers_of(found) == [7, 5, 3, 1]
    assert {label for page in found for label in page.damaged} == {
        f"2026-00000{number}" for number in (2, 4, 6)
    }


def test_listinvoices_lists_the_others_and_names_at_most_ten_damaged_invoices(ann: User) -> None:
    def printed(*more: str) -> tuple[list[str], str]:
        """The numbers that `listinvoices` prints, and the line with which it ends."""
        out, err, _code = run("listinvoices", "--user", "ann", "--json", *more)
        numbers = [json.loads(line)["number"] for line in out.splitlines()]
        return numbers, err.removeprefix("CommandError: ").rstrip("\n")

    labels = [issued(ann.pk).label for _ in range(13)]
    damage(ann.pk, 1)
    error = f"1 damaged invoice could not be read: {series(ann.pk)}#1."
    assert printed() == (labels[:0:-1], error)

    for number in range(2, 13):
        damage(ann.pk, number)
    numbers, error = printed()

    assert numbers == labels[-1:]
    assert error.startswith(f"12 damaged invoices could not be read: {series(ann.pk)}#12, ")
    assert error.endswith(f"{series(ann.pk)}#3 and 2 more.")
    assert printed("--limit", "1") == (labels[-1:], "")


def test_a_command_on_a_damaged_invoice_names_it_in_one_line(ann: User) -> None:
    issued(ann.pk)
    damage(ann.pk, 1)

    for command in ("showinvoice", "voidinvoice --reason=x", "invoicepdf -o -"):
        _out, err, code = run(*command.split(), "2026-000001", "--user", "ann")
        assert (code, err.count("\n")) == (1, 1)
        assert err.startswith(f"CommandError: The item '{series(ann.pk)}#1' of ")


@pytest.mark.parametrize("damaged", ["x", "{account}#26", "{account}#twenty"])
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
