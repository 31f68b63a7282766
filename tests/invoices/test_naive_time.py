"""A project of one's own may have `USE_TZ = False`: invoices and their pages are the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils.formats import date_format

from invoices.documents import Invoice
from invoices.issuing import issue, today
from invoices.records import find_invoice, void
from tests.commands import run
from tests.factories import make_user
from tests.invoice_factories import SELLER, draft
from tests.invoices.test_pdf import text_of

pytestmark = pytest.mark.usefixtures("engine", "naive_time")


@pytest.fixture
def naive_time(settings: Any) -> None:
    """Django's times have no zone, as a project says that keeps none."""
    settings.USE_TZ = False


def issued_today(account: str) -> Invoice:
    return issue(draft(day=None), account=account, seller=SELLER)


# At every moment these two have different days.
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_an_invoice_is_of_today_in_the_configured_time_zone(zone: str, settings: Any) -> None:
    settings.TIME_ZONE = zone
    before = datetime.now(ZoneInfo(zone)).date()

    invoice = issued_today("ann")

    assert before <= invoice.issued_at <= datetime.now(ZoneInfo(zone)).date()
    assert find_invoice("ann", invoice.label) == invoice


def test_the_pages_and_the_pdf_show_it_also_once_it_is_voided(client: Client) -> None:
    user = make_user(username="ann")
    client.force_login(user)
    invoice = issued_today(user.pk)
    void(user.pk, invoice.label, "typo")

    listed = client.get("/invoices/")
    shown = client.get(f"/invoices/{invoice.label}/")
    printed = client.get(f"/invoices/{invoice.label}.pdf")

    assert invoice.label in listed.content.decode()
    assert "typo" in shown.content.decode()
    assert b"".join(printed).startswith(b"%PDF")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_the_page_and_the_pdf_say_the_same_day_of_voiding(
    zone: str, settings: Any, client: Client
) -> None:
    settings.TIME_ZONE = zone
    user = make_user()
    client.force_login(user)
    invoice = void(user.pk, issued_today(user.pk).label, "typo")

    shown = client.get(f"/invoices/{invoice.label}/").content.decode()

    assert invoice.voided_at is not None
    day = invoice.voided_at.astimezone(ZoneInfo(zone)).date()
    assert f"Voided on {date_format(day)}" in shown
    assert f"voided on {day}" in text_of(invoice)


def test_the_commands_list_it_and_export_the_account() -> None:
    user = make_user(username="ann")
    invoice = issued_today(user.pk)

    out, _err, code = run("listinvoices", "--user", "ann", "--year", str(today().year))

    assert code == 0
    assert out.startswith(f"{invoice.label}  {invoice.issued_at}  ")
