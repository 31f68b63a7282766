"""Issuing: number, invoice and guard in one transaction; 1, 2, 3 … and each request once."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import User
from invoices.store.records import find_invoice
from invoices.store.settlement import void
from sequences.exceptions import DamagedSeries
from tests.commands import run
from tests.invoice_factories import (
    SELLER,
    assert_whole,
    issued,
    new_account,
    put_counter,
    series,
    stored_counter,
    stored_numbers,
)
from tests.invoices.test_pdf import text_of

# Numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "pt-BR", "zh-Hant-TW"])
def test_an_invoice_is_stored_as_returned(account: str, language: str) -> None:
    invoice = issued(account, request_id="a", note="Thank you", language=language)

    assert find_invoice(account, invoice.label) == invoice
    assert (invoice.seller, invoice.language) == (SELLER, language)
    assert (invoice.totals.net, invoice.totals.gross) == (10_000, 11_900)
    assert stored_counter(account) == {
        "counterName": {"S": f"invoices#{series(account)}"},
        "currentValue": {"N": "1"},
        "lastDate": {"S": "2026-03-14"},
    }


def test_each_account_and_each_year_starts_at_one_also_with_the_same_request_id(
    account: str,
) -> None:
    labels = [
        issued(account, request_id="a").label,
        issued(new_account(), request_id="a", customer="Eve").label,
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


def test_midnight_between_reading_the_clock_and_the_commit_is_not_an_error(
    account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued(account, day=date(2026, 3, 15))
    days = iter([date(2026, 3, 14), date(2026, 3, 15), date(2026, 3, 15)])
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: next(days))

    assert issued(account, day=None).issued_at == date(2026, 3, 15)
    assert_whole(account, 2)


# One request, one invoice -------------------------------------------------------------------------


@pytest.mark.parametrize("due", [False, True])
def test_the_same_request_for_today_returns_its_invoice_in_the_next_year(
    account: str, due: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_day = date(2026, 12, 31)
    asked: dict[str, Any] = {"day": None, "due_date": last_day if due else None}
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: last_day)
    first = issued(account, request_id="a", **asked)
    monkeypatch.setattr("invoices.store.issuing.today", lambda _zone: date(2027, 1, 1))

    assert issued(account, request_id="a", **asked) == first
    if due:
        for request_id, note in (("a", "other"), ("b", "")):
            with pytest.raises(ValidationError, match="date of the invoice"):
                issued(account, request_id=request_id, note=note, **asked)
    assert_whole(account, 1)
    assert_whole(account, 0, year=2027)


# Damaged series -----------------------------------------------------------------------------------


def test_a_counter_without_a_date_stops_the_series(account: str) -> None:
    for last_date in ("yesterday", {"N": "20260101"}, {"B": b"2026-01-01"}):
        put_counter(account, 0, last_date)
        before = stored_counter(account)

        with pytest.raises(DamagedSeries):
            issued(account)

        assert stored_counter(account) == before
        assert stored_numbers(account) == []


def test_a_counter_far_ahead_continues_exactly(account: str) -> None:
    put_counter(account, 10**14)

    invoice = issued(account)

    assert invoice.number == 10**14 + 1
    assert find_invoice(account, "2026-100000000000001") == invoice


# At every moment these two have different days.
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_without_use_tz_invoices_are_issued_and_voided_today_in_the_configured_time_zone(
    zone: str, settings: Any, client: Client, ann: User
) -> None:
    settings.USE_TZ, settings.TIME_ZONE = False, zone
    before = datetime.now(ZoneInfo(zone)).date()

    invoice = issued(ann.pk, day=None)

    assert before <= invoice.issued_at <= datetime.now(ZoneInfo(zone)).date()
    assert find_invoice(ann.pk, invoice.label) == invoice
    assert invoice.label in run("listinvoices", "--user", ann.pk)[0]
    assert invoice.label in client.get("/invoices/").content.decode()

    void(ann.pk, invoice.label, "typo")

    invoice = find_invoice(ann.pk, invoice.label)
    assert invoice.voided_at is not None
    day = invoice.voided_at.astimezone(ZoneInfo(zone)).date()
    shown = client.get(f"/invoices/{invoice.label}/").content.decode()
    assert f"Voided on {date_format(day)}" in shown
    assert f"voided on {day}" in text_of(invoice)
