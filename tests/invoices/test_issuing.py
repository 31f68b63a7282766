"""Issuing: number, invoice and guard in one transaction; 1, 2, 3 … and each request once."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.services import delete
from dynamo.models import ITEM_MAX_BYTES
from invoices.exceptions import (
    AlreadyVoided,
    DateTooEarly,
    RequestIdReused,
    UnknownInvoice,
)
from invoices.issuing import issue
from invoices.models import InvoiceItem
from invoices.records import find_invoice, void
from sequences.exceptions import DamagedSeries, ItemTooLarge
from tests.factories import make_user
from tests.invoice_factories import (
    DAY,
    SELLER,
    assert_whole,
    draft,
    issued,
    new_account,
    put_counter,
    remove_invoice,
    series,
    stored_counter,
    stored_numbers,
)
from tests.numbered import behind, stored_guard
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def account() -> str:
    """An account that nobody has used."""
    return new_account()


# Numbers -----------------------------------------------------------------------------------------


def test_invoices_are_numbered_from_one_without_a_gap(account: str) -> None:
    invoices = [issued(account) for _ in range(3)]

    assert [invoice.label for invoice in invoices] == ["2026-000001", "2026-000002", "2026-000003"]
    assert_whole(account, 3)


def test_what_is_stored_is_what_was_answered(account: str) -> None:
    invoice = issued(account, request_id="a", note="Thank you")

    assert find_invoice(account, invoice.label) == invoice
    assert invoice.seller == SELLER
    assert (invoice.totals.net, invoice.totals.gross) == (10_000, 11_900)
    assert stored_counter(account) == {
        "counterName": {"S": f"invoices#{series(account)}"},
        "currentValue": {"N": "1"},
        "lastDate": {"S": "2026-03-14"},
    }


def test_each_account_and_each_year_begins_at_one(account: str) -> None:
    other = new_account()

    labels = [
        issued(account).label,
        issued(other).label,
        issued(account, day=date(2027, 1, 1)).label,
        issued(account, day=date(2026, 12, 31)).label,
    ]

    assert labels == ["2026-000001", "2026-000001", "2027-000001", "2026-000002"]


@pytest.mark.parametrize(
    ("zone", "year"), [("UTC", 2026), ("Asia/Tokyo", 2027), ("America/New_York", 2026)]
)
def test_the_year_is_that_of_today_in_the_configured_time_zone(
    account: str, zone: str, year: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIME_ZONE = zone
    now = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)

    with timezone.override("Pacific/Kiritimati"):  # as a page might set it for its visitor
        invoice = issued(account, day=None)

    assert invoice.series == series(account, year)
    assert stored_numbers(account, year) == [1]


def test_a_date_before_the_last_one_is_refused_and_burns_no_number(account: str) -> None:
    issued(account)

    with pytest.raises(DateTooEarly) as refused:
        issued(account, day=date(2026, 3, 13))

    assert (refused.value.issued_on, refused.value.last) == (date(2026, 3, 13), DAY)
    assert issued(account).number == 2
    assert_whole(account, 2)


def test_a_group_is_numbered_by_its_dates(account: str) -> None:
    first = partial(issued, account, day=date(2026, 3, 10))
    with behind(InvoiceItem, series(account), first) as then:
        later = then(lambda: issued(account, day=date(2026, 3, 12)))
        earlier = then(lambda: issued(account, day=date(2026, 3, 11)))

    assert (earlier.result().number, later.result().number) == (2, 3)
    assert_whole(account, 3)


def test_midnight_between_the_look_at_the_clock_and_the_commit_is_no_early_date(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued(account, day=date(2026, 3, 15))
    days = iter([date(2026, 3, 14), date(2026, 3, 15), date(2026, 3, 15)])
    monkeypatch.setattr("invoices.issuing.today", lambda: next(days))

    assert issued(account, day=None).issued_at == date(2026, 3, 15)
    assert_whole(account, 2)


# One request, one invoice ------------------------------------------------------------------------


def test_the_same_request_for_today_gets_it_in_the_next_year(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invoices.issuing.today", lambda: date(2026, 12, 31))
    first = issued(account, request_id="a", day=None)
    monkeypatch.setattr("invoices.issuing.today", lambda: date(2027, 1, 1))

    assert issued(account, request_id="a", day=None) == first
    assert_whole(account, 1)
    assert_whole(account, 0, year=2027)


def test_the_same_request_gets_the_invoice_as_it_is_by_now(account: str) -> None:
    first = issued(account, request_id="a")
    void(account, first.label, "typo")

    assert issued(account, request_id="a").is_voided


@pytest.mark.parametrize(
    "other",
    [
        {"customer": "Eve"},
        {"description": "Other work"},
        {"note": "other"},
        {"currency": "USD"},
        {"day": date(2026, 3, 15)},
        {"day": None},
    ],
)
def test_the_same_request_id_with_other_contents_is_refused_and_burns_no_number(
    account: str, other: dict[str, Any]
) -> None:
    first = issued(account, request_id="a")

    with pytest.raises(RequestIdReused) as refused:
        issued(account, request_id="a", **other)

    assert (refused.value.request_id, refused.value.number) == ("a", first.label)
    assert issued(account).number == 2
    assert_whole(account, 2)


def test_a_request_id_of_another_account_means_nothing(account: str) -> None:
    first = issued(account, request_id="a")

    other = issued(new_account(), request_id="a", customer="Eve")

    assert (first.number, other.number) == (1, 1)
    assert first.series != other.series


@pytest.mark.parametrize("request_id", [None, "a", uuid.uuid4()], ids=["drawn", "text", "uuid"])
def test_every_issued_invoice_has_its_guard(
    account: str, request_id: str | uuid.UUID | None
) -> None:
    invoice = issued(account, request_id=request_id)

    stored = stored_guard(InvoiceItem, series(account), invoice.request_id)
    assert stored is not None
    assert stored["owner"] == {"S": f"{series(account)}#1"}
    assert issued(account, request_id=invoice.request_id) == invoice


# What it costs -----------------------------------------------------------------------------------


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
def test_issuing_costs_one_request_and_six_units(account: str, requests_sent: Requests) -> None:
    issued(account)
    requests_sent.clear()

    issued(account)

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == 6


# Sizes -------------------------------------------------------------------------------------------


def of_size(size_bytes: int) -> dict[str, Any]:
    """Changes of a draft that make its item about so large."""
    return {"note": "x" * (size_bytes - 400)}


@pytest.mark.fault_of("moto", "takes at most 405,000 bytes an item")
def test_the_largest_invoice_can_be_issued_and_voided(account: str) -> None:
    invoice = issued(account, **of_size(ITEM_MAX_BYTES - InvoiceItem.reserved_bytes - 100))

    void(account, invoice.label, "𠮷" * 500)

    assert find_invoice(account, invoice.label).is_voided
    remove_invoice(series(account), 1)


def test_an_item_over_400_kb_is_refused_before_anything_is_sent(
    account: str, requests_sent: Requests
) -> None:
    with pytest.raises(ItemTooLarge) as refused:
        issued(account, **of_size(ITEM_MAX_BYTES + 500))

    assert refused.value.size_bytes > refused.value.limit_bytes
    assert requests_sent.operations == []


# Damaged series ----------------------------------------------------------------------------------


@pytest.mark.parametrize("last_date", ["yesterday", {"N": "20260101"}, {"B": b"2026-01-01"}])
def test_a_counter_without_a_date_stops_the_series(account: str, last_date: Any) -> None:
    put_counter(account, 0, last_date)
    before = stored_counter(account)

    with pytest.raises(DamagedSeries):
        issued(account)

    assert stored_counter(account) == before
    assert stored_numbers(account) == []


def test_a_counter_put_far_ahead_goes_on_exactly(account: str) -> None:
    put_counter(account, 10**14)

    invoice = issued(account)

    assert invoice.number == 10**14 + 1
    assert find_invoice(account, "2026-100000000000001") == invoice


# Voiding, and what stays -------------------------------------------------------------------------


def test_voiding_keeps_number_and_contents_and_says_why(account: str) -> None:
    invoice = issued(account)

    voided = void(account, invoice.label, " typo ")

    assert (voided.status, voided.void_reason) == ("voided", "typo")
    assert voided.voided_at is not None
    assert find_invoice(account, invoice.label) == voided
    assert_whole(account, 1)


@pytest.mark.parametrize("reason", ["other", "typo"])
def test_voiding_twice_is_refused(account: str, reason: str) -> None:
    invoice = issued(account)
    voided = void(account, invoice.label, "typo")

    with pytest.raises(AlreadyVoided) as refused:
        void(account, invoice.label, reason)

    assert refused.value.reason == "typo"
    assert find_invoice(account, invoice.label) == voided


def test_voiding_without_a_reason_is_refused(account: str) -> None:
    invoice = issued(account)

    with pytest.raises(ValueError, match="reason"):
        void(account, invoice.label, "  ")

    assert not find_invoice(account, invoice.label).is_voided


@pytest.mark.parametrize("label", ["2026-000002", "2025-000001", "2026-1", "nonsense", ""])
def test_voiding_what_is_not_there_is_refused_and_makes_nothing(account: str, label: str) -> None:
    issued(account)

    with pytest.raises(UnknownInvoice):
        void(account, label, "typo")

    assert stored_numbers(account) == [1]


def test_an_invoice_of_another_account_cannot_be_voided(account: str) -> None:
    invoice = issued(account)

    with pytest.raises(UnknownInvoice):
        void(new_account(), invoice.label, "typo")

    assert not find_invoice(account, invoice.label).is_voided


@pytest.mark.fault_of("moto", "reports other capacity")
def test_voiding_costs_one_request(account: str, requests_sent: Requests) -> None:
    invoice = issued(account)
    requests_sent.clear()

    void(account, invoice.label, "typo")

    assert (requests_sent.operations, requests_sent.units) == (["UpdateItem"], 1)


def test_invoices_of_a_deleted_account_stay() -> None:
    user = make_user()
    invoice = issue(draft(), account=user.pk, seller=SELLER)

    delete(user)

    assert find_invoice(user.pk, invoice.label) == invoice
    assert_whole(user.pk, 1)
