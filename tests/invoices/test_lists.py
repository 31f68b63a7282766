"""Listing and searching many invoices with a bounded number of requests, also damaged ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from accounts.models import User
from dynamo.exceptions import DamagedItem
from invoices.models import InvoiceItem
from invoices.store import lists
from invoices.store.lists import Page, list_invoices
from invoices.store.records import from_item, to_item
from sequences.exceptions import DamagedSeries
from tests.commands import run
from tests.invoice_factories import DAY, issued, put_invoice, series, stored_invoices
from tests.invoices.samples import an_invoice
from tests.numbered import stored_guard
from tests.requests import Requests


def pages_of(account: str, **query: Any) -> list[Page]:
    """All pages of the list of a year."""
    pages = [list_invoices(account, DAY.year, **query)]
    while pages[-1].before is not None:
        pages.append(list_invoices(account, DAY.year, before=pages[-1].before, **query))
    return pages


def numbers_of(pages: list[Page]) -> list[int]:
    return [invoice.number for page in pages for invoice in page.invoices]


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

    pages = pages_of(account, customer="bob", limit=2)

    assert numbers_of(pages) == [number for number in range(14, 0, -1) if (number - 1) % 3]
    assert max(len(page.invoices) for page in pages) == 2


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

    pages = pages_of(account, limit=2)

    assert numbers_of(pages) == [7, 5, 3, 1]
    assert {label for page in pages for label in page.damaged} == {
        f"2026-00000{number}" for number in (2, 4, 6)
    }


def test_listinvoices_lists_the_others_and_names_at_most_ten_damaged_invoices(ann: User) -> None:
    def listed(*more: str) -> tuple[list[str], str]:
        """The numbers that `listinvoices` prints, and the line with which it ends."""
        out, err, _code = run("listinvoices", "--user", "ann", "--json", *more)
        numbers = [json.loads(line)["number"] for line in out.splitlines()]
        return numbers, err.removeprefix("CommandError: ").rstrip("\n")

    labels = [issued(ann.pk).label for _ in range(13)]
    damage(ann.pk, 1)
    error = f"1 damaged invoice could not be read: {series(ann.pk)}#1."
    assert listed() == (labels[:0:-1], error)

    for number in range(2, 13):
        damage(ann.pk, number)
    numbers, error = listed()

    assert numbers == labels[-1:]
    assert error.startswith(f"12 damaged invoices could not be read: {series(ann.pk)}#12, ")
    assert error.endswith(f"{series(ann.pk)}#3 and 2 more.")
    assert listed("--limit", "1") == (labels[-1:], "")


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
