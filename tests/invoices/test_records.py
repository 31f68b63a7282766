"""Stored invoices: voiding one twice, and listing and searching many with bounded effort."""

from __future__ import annotations

import pytest

from dynamo.exceptions import Unavailable
from invoices import records
from invoices.exceptions import AlreadyVoided, UnknownInvoice
from invoices.records import find_invoice, list_invoices, void
from tests.faults.kinds import DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.invoice_factories import DAY, issued, new_account
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def account() -> str:
    return new_account()


def test_who_asks_again_after_a_lasting_lost_reply_learns_that_it_is_voided_and_why(
    account: str, proxy: FaultProxy, impatient: float
) -> None:
    invoice = issued(account)
    proxy.plan("UpdateItem", DropReply(), times=1_000)
    with pytest.raises(Unavailable) as unavailable:
        void(account, invoice.label, "typo")
    assert unavailable.value.maybe_written
    proxy.forget()

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, "typo")

    assert refused.value.reason == "typo"
    assert find_invoice(account, invoice.label).is_voided


def test_an_invoice_that_is_issued_while_it_is_to_be_voided_was_not_there(
    account: str, proxy: FaultProxy
) -> None:
    proxy.plan("GetItem", Meanwhile(lambda: issued(account)))

    with pytest.raises(UnknownInvoice):
        void(account, f"{DAY.year}-000001", "typo")

    assert not find_invoice(account, f"{DAY.year}-000001").is_voided


@pytest.mark.parametrize("reason", ["", " ", " \u2060 ", "x" * 2_001, "𠮷" * 501])
def test_a_reason_that_says_nothing_or_has_no_room_is_refused_before_any_request(
    account: str, requests_sent: Requests, reason: str
) -> None:
    invoice = issued(account)
    requests_sent.clear()

    with pytest.raises(ValueError, match="reason"):
        void(account, invoice.label, reason)

    assert requests_sent.operations == []


@pytest.fixture
def short_of_breath(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that reads at most 2 times 3 invoices."""
    monkeypatch.setattr(records, "SEARCH_PAGE_SIZE", 3)
    monkeypatch.setattr(records, "MAX_REQUESTS", 2)


@pytest.mark.usefixtures("short_of_breath")
def test_a_search_reads_so_many_and_says_where_it_stopped(
    account: str, requests_sent: Requests
) -> None:
    for customer in ("Zoe", *"abcdefg"):
        issued(account, customer=customer)
    requests_sent.clear()

    page = list_invoices(account, DAY.year, customer="zoe")

    assert requests_sent.operations == ["Query"] * 2
    assert (page.invoices, page.before, page.searched) == ([], 3, 6)
    rest = list_invoices(account, DAY.year, customer="zoe", before=page.before)
    assert [invoice.number for invoice in rest.invoices] == [1]
    assert (rest.before, rest.searched) == (None, 2)


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("Große Straße 1", "STRASSE"),
        ("Zoe\u0308 & Söhne", "zoë"),
        ("Zoë", "ZOE\u0308"),
        ("ΟΔΥΣΣΕΥΣ", "Οδυσσεύς".replace("ύ", "υ")),
        ("ﾔﾏﾀﾞ商店", "ヤマダ"),
        ("ＡＢＣ", "abc"),
    ],
)
def test_a_search_finds_a_name_however_its_letters_are_written(
    account: str, name: str, typed: str
) -> None:
    issued(account, customer=name)
    issued(account, customer="Bob")

    page = list_invoices(account, DAY.year, customer=typed)

    assert [invoice.customer.name for invoice in page.invoices] == [name]


@pytest.mark.usefixtures("short_of_breath")
def test_a_search_gone_through_page_by_page_finds_every_hit_once(account: str) -> None:
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


def test_a_page_of_large_invoices_is_short_and_goes_on(
    account: str, monkeypatch: pytest.MonkeyPatch, requests_sent: Requests
) -> None:
    monkeypatch.setattr(records, "MAX_REQUESTS", 1)
    for _ in range(5):
        issued(account, description="x" * 300_000)
    requests_sent.clear()

    page = list_invoices(account, DAY.year)
    rest = list_invoices(account, DAY.year, before=page.before)

    assert requests_sent.operations == ["Query"] * 2
    assert 1 <= len(page.invoices) < 5
    assert [invoice.number for invoice in page.invoices + rest.invoices] == [5, 4, 3, 2, 1]
    assert rest.before is None
