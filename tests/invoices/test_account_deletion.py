"""Deleting an account: its invoices stay, and its page offers their downloads first."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django.test import Client

from invoices.store.issuing import today
from invoices.store.records import find_invoice
from tests.accounts.test_unavailable_pages import unanswered
from tests.factories import PASSWORD, make_user
from tests.invoice_factories import issued
from tests.pages import Page
from tests.requests import Requests

URL = "/accounts/delete/"


@pytest.fixture
def years() -> list[int]:
    """Years with invoices: this one, the oldest that is offered, and the next."""
    this_year = today().year
    return [this_year - 9, this_year, this_year + 1]


def let_in(years: list[int]) -> tuple[Client, Any]:
    user, client = make_user(username="ann"), Client()
    for year in years:
        issued(user.pk, day=date(year, 1, 1))
    client.force_login(user)
    return client, user


@pytest.mark.usefixtures("engine")
def test_the_downloads_of_each_year_are_offered_first(
    years: list[int], requests_sent: Requests
) -> None:
    client, _user = let_in([*years, years[0] - 1])
    requests_sent.clear()

    answer = client.get(URL)

    assert requests_sent.operations == ["GetItem", "GetItem", "TransactGetItems"]
    shown = answer.content.decode()
    assert "Invoices that you issued stay stored" in shown
    for year in years:
        for ending in ("zip", "csv"):
            path = f"/invoices/{year}.{ending}"
            assert f'href="{path}"' in shown
            download = client.get(path)
            assert (download.status_code, bool(download.getvalue())) == (200, True)  # type: ignore[attr-defined]  # streamed
    assert f"/invoices/{years[0] - 1}.zip" not in shown


@pytest.mark.usefixtures("engine")
def test_an_account_without_invoices_is_offered_none() -> None:
    client, _user = let_in([])

    shown = client.get(URL).content.decode()

    assert ".zip" not in shown
    assert "Download my data" in shown


@pytest.mark.usefixtures("engine")
def test_the_invoices_stay_after_the_deletion(years: list[int]) -> None:
    client, user = let_in(years)

    assert client.post(URL, {"password": "wrong password"}).status_code == 200
    assert client.post(URL, {"password": PASSWORD}).status_code == 302

    for year in years:
        assert find_invoice(user.pk, f"{year}-000001").label == f"{year}-000001"


def test_without_an_answer_the_page_does_not_look_for_invoices(
    engine: str, requests_sent: Requests
) -> None:
    client, _user = let_in([today().year])
    requests_sent.clear()

    with unanswered(engine, "TransactWriteItems"):
        answer = client.post(URL, {"password": PASSWORD})

    assert answer.status_code == 503
    assert "Send the form again" in Page(answer).text
    assert "TransactGetItems" not in requests_sent.operations
