"""Invoices and their pages are the same in a project with `USE_TZ = False`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils.formats import date_format

from invoices.document.invoice import Invoice
from invoices.store.issuing import issue_invoice
from invoices.store.records import find_invoice
from invoices.store.settlement import void
from tests.commands import run
from tests.factories import make_user
from tests.invoice_factories import SELLER, draft
from tests.invoices.test_pdf import text_of

pytestmark = pytest.mark.usefixtures("engine", "naive_time")


@pytest.fixture
def naive_time(settings: Any) -> None:
    settings.USE_TZ = False


ACCOUNT = str(UUID(int=7))


def issued_today(account: str) -> Invoice:
    return issue_invoice(draft(day=None), account=account, seller=SELLER)


# At every moment these two have different days.
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_an_invoice_is_of_today_in_the_configured_time_zone(zone: str, settings: Any) -> None:
    settings.TIME_ZONE = zone
    before = datetime.now(ZoneInfo(zone)).date()

    invoice = issued_today(ACCOUNT)

    assert before <= invoice.issued_at <= datetime.now(ZoneInfo(zone)).date()
    assert find_invoice(ACCOUNT, invoice.label) == invoice
    assert invoice.label in run("listinvoices", "--user", ACCOUNT)[0]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_the_pages_and_the_pdf_show_the_same_day_of_voiding(
    zone: str, settings: Any, client: Client
) -> None:
    settings.TIME_ZONE = zone
    user = make_user()
    client.force_login(user)
    invoice = issued_today(user.pk)
    void(user.pk, invoice.label, "typo")
    invoice = find_invoice(user.pk, invoice.label)

    assert invoice.label in client.get("/invoices/").content.decode()
    shown = client.get(f"/invoices/{invoice.label}/").content.decode()

    assert invoice.voided_at is not None
    day = invoice.voided_at.astimezone(ZoneInfo(zone)).date()
    assert f"Voided on {date_format(day)}" in shown
    assert f"voided on {day}" in text_of(invoice)
