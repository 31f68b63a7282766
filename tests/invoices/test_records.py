"""Listing and searching many invoices with a bounded number of requests."""

from __future__ import annotations

from typing import Any

import pytest

from invoices.store import lists
from invoices.store.lists import list_invoices
from tests.invoice_factories import DAY, issued
from tests.requests import Requests


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

    page = list_invoices(account, DAY.year, customer="zoe")

    assert requests_sent.operations == ["Query"] * 3
    assert (page.invoices, page.before, page.searched) == ([], 3, 6)
    rest = list_invoices(account, DAY.year, customer="zoe", before=page.before)
    assert [invoice.number for invoice in rest.invoices] == [1]
    assert (rest.before, rest.searched) == (None, 2)


def test_a_list_is_sent_only_what_it_shows(account: str, requests_sent: Requests) -> None:
    issued(account)
    requests_sent.clear()

    list_invoices(account, DAY.year)

    asked = {name for each in requests_sent.requests for name in names_of(each)}
    assert {"customerName", "gross", "paidOn"} <= asked
    assert asked.isdisjoint({"lines", "sellerName", "note", "sendings"})


def names_of(request: dict[str, Any]) -> set[str]:
    return {
        request["ExpressionAttributeNames"][each.strip()]
        for each in request["ProjectionExpression"].split(",")
    }


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

    for name, text in typed.items():
        page = list_invoices(account, DAY.year, customer=text)
        found = [invoice.customer_name for invoice in page.invoices]
        also = {"Zoë": ["Zoe\u0308 & Söhne"], "Cafe": ["Café Noir"]}
        assert sorted(found) == sorted([name, *also.get(name, [])]), text


@pytest.mark.usefixtures("small_pages")
def test_the_pages_of_a_search_have_every_match_once(account: str) -> None:
    for at in range(14):
        issued(account, customer="Bob" if at % 3 else "Eve")
    found: list[int] = []
    before: int | None = None
    while True:
        page = list_invoices(account, DAY.year, customer="bob", before=before, limit=2)
        found += [invoice.number for invoice in page.invoices]
        assert len(page.invoices) <= 2
        before = page.before
        if before is None:
            break

    assert found == [number for number in range(14, 0, -1) if (number - 1) % 3]


def test_a_page_of_large_invoices_is_short_and_another_follows(
    account: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(lists, "MAX_REQUESTS", 2)
    for _ in range(5):
        issued(account, description="x" * 300_000)
    requests_sent.clear()

    page = list_invoices(account, DAY.year)
    rest = list_invoices(account, DAY.year, before=page.before)

    assert requests_sent.operations == ["Query"] * 4
    assert 1 <= len(page.invoices) < 5
    assert [invoice.number for invoice in page.invoices + rest.invoices] == [5, 4, 3, 2, 1]
    assert rest.before is None
