"""Issuing: number, invoice and guard in one transaction; 1, 2, 3 … and each request once."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from invoices.models import InvoiceItem
from sequences.exceptions import DamagedSeries
from tests import numbered
from tests.invoice_factories import assert_whole, issued, new_account, series, stored_numbers

# Numbers ------------------------------------------------------------------------------------------


def test_the_numbers_of_each_account_and_each_year_start_at_one(account: str) -> None:
    labels = [
        issued(account, request_id="a").label,
        issued(new_account(), request_id="a", customer="Eve").label,
        issued(account, day=date(2027, 1, 1)).label,
        issued(account, day=date(2026, 12, 31)).label,
    ]

    assert labels == ["2026-000001", "2026-000001", "2027-000001", "2026-000002"]


@pytest.mark.parametrize(("zone", "year"), [("UTC", 2026), ("Asia/Tokyo", 2027)])
def test_the_year_is_that_of_today_in_the_configured_time_zone(
    account: str, zone: str, year: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TIME_ZONE = zone
    now = datetime(2026, 12, 31, 23, 30, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)

    with timezone.override("Pacific/Kiritimati"):  # as a page might set it for its visitor
        invoice = issued(account, day=None)

    assert invoice.series == series(account, year)


def test_midnight_between_reading_the_clock_and_the_commit_is_not_an_error(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued(account, day=date(2026, 3, 15))
    days = iter([date(2026, 3, 14), date(2026, 3, 15), date(2026, 3, 15)])
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: next(days))

    assert issued(account, day=None).issued_at == date(2026, 3, 15)
    assert_whole(account, 2)


# One request, one invoice -------------------------------------------------------------------------


def test_the_same_request_for_today_returns_its_invoice_in_the_next_year(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_day = date(2026, 12, 31)
    due: dict[str, Any] = {"day": None, "due_date": last_day}
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: last_day)
    first = issued(account, request_id="a", day=None)
    first_due = issued(account, request_id="b", **due)
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: date(2027, 1, 1))

    assert issued(account, request_id="a", day=None) == first
    assert issued(account, request_id="b", **due) == first_due
    for request_id, note in (("b", "other"), ("c", "")):
        with pytest.raises(ValidationError, match="date of the invoice"):
            issued(account, request_id=request_id, note=note, **due)
    assert_whole(account, 2)
    assert_whole(account, 0, year=2027)


# Damaged series -----------------------------------------------------------------------------------


@pytest.mark.parametrize("last_date", ["yesterday", {"N": "20260101"}])
def test_a_counter_without_a_date_stops_the_series(account: str, last_date: Any) -> None:
    numbered.put_counter(InvoiceItem, series(account), 0, last_date)
    before = numbered.stored_counter(InvoiceItem, series(account))

    with pytest.raises(DamagedSeries):
        issued(account)

    assert numbered.stored_counter(InvoiceItem, series(account)) == before
    assert stored_numbers(account) == []
