"""Invoices and their pages are the same in a project with `USE_TZ = False`."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils.formats import date_format

from accounts.models import User
from invoices.store.records import find_invoice
from invoices.store.settlement import void
from tests.commands import run
from tests.invoice_factories import issued
from tests.invoices.test_pdf import text_of


# At every moment these two have different days.
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_invoices_are_issued_and_voided_today_in_the_configured_time_zone(
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
