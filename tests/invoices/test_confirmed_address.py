"""`ACCOUNTS_REQUIRE_CONFIRMED_EMAIL`: invoices are issued only with a confirmed email address."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.emails.confirmation import mark_confirmed
from accounts.models import User
from tests.clocks import hold_the_day
from tests.commands import run
from tests.factories import make_user
from tests.invoices.test_invoice_pages import LINE, NEW, TODAY, issued, label, stored, typed
from tests.pages import Page, sign_in

DEMANDED = "Confirm your email address before you issue an invoice."
REFUSED = "Confirm your email address first. Open your profile to get the link."
ISSUE = ["issueinvoice", "--user=ann", "--customer=Bob", "--line=Work;1;100;19"]


@pytest.fixture
def ann(engine: str, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch) -> User:
    """An account that must confirm its address, whose owner is signed in as `client`."""
    hold_the_day(TODAY, monkeypatch)
    settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL = True
    user = make_user(username="ann", email="ann@example.org")
    sign_in(client, user)
    return user


def test_the_form_says_so_before_anything_is_typed(client: Client, ann: User) -> None:
    response = client.get(NEW)

    assert DEMANDED in Page(response).text
    assert Page(response).text.count("Get the link in your profile") == 1
    assert DEMANDED in Page(client.post(NEW, typed(LINE) | {"add_line": "1"})).text


def test_a_refused_form_keeps_what_was_typed_and_is_accepted_after_the_confirmation(
    client: Client, ann: User
) -> None:
    values = typed(LINE, LINE | {"description": "More work"}, note="Thanks")

    response = client.post(NEW, values)

    assert response.status_code == 200
    page = Page(response)
    assert REFUSED in page.text
    assert "Open your profile" in page.text
    assert DEMANDED not in page.text
    kept = {name: page.value(name) for name in values if name in page.fields}
    assert kept == {name: values[name].replace("\r\n", "\n") for name in kept}
    assert kept.keys() >= {"customer_name", "note", "lines-1-description", "request_id"}
    assert REFUSED in Page(client.post(NEW, values | {"lines-0-quantity": "many"})).text
    assert stored(ann) == []

    mark_confirmed(User.get(ann.pk))

    assert DEMANDED not in Page(client.get(NEW)).text
    assert client.post(NEW, values)["Location"] == f"/invoices/{label(1)}/"


def test_without_the_setting_an_unconfirmed_address_is_enough(
    client: Client, ann: User, settings: Any
) -> None:
    settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL = False

    assert DEMANDED not in Page(client.get(NEW)).text
    assert client.post(NEW, typed(LINE)).status_code == 302


def test_invoices_can_be_shown_and_voided_without_a_confirmed_address(
    client: Client, ann: User
) -> None:
    issued(ann)

    assert client.get(f"/invoices/{label(1)}/").status_code == 200
    client.post(f"/invoices/{label(1)}/void/", {"reason": "Wrong customer"})

    [invoice] = stored(ann)
    assert invoice.is_voided


def test_issueinvoice_refuses_an_unconfirmed_address_in_one_line(ann: User) -> None:
    out, err, code = run(*ISSUE)
    assert (out, err.count("\n"), code) == ("", 1, 1)
    assert REFUSED in err
    assert stored(ann) == []

    mark_confirmed(User.get(ann.pk))
    _out, err, code = run(*ISSUE)

    assert (err, code, len(stored(ann))) == ("", 0, 1)
