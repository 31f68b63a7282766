"""What a confirmed address is demanded for, and the command that confirms one."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.emails.confirmation import mark_confirmed
from accounts.models import User
from accounts.services import edit_profile
from tests.accounts.test_commands import assert_fails
from tests.clocks import hold_the_day
from tests.commands import run
from tests.factories import changes_of, make_user, stored_items, stored_user
from tests.faults.kinds import DropReply
from tests.faults.proxy import FaultProxy
from tests.invoices.test_invoice_pages import LINE, NEW, TODAY, issued, label, stored, typed
from tests.pages import Page, meanwhile, sign_in
from tests.requests import Requests

DEMANDED = "Confirm your email address before you issue an invoice."
REFUSED = "Confirm your email address first. Open your profile to get the link."
ISSUE = ["issueinvoice", "--user=ann", "--customer=Bob", "--line=Work;1;100;19"]


@pytest.fixture
def ann(engine: str, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch) -> User:
    """An account that must confirm its address, and whose owner is signed in as `client`."""
    hold_the_day(TODAY, monkeypatch)
    settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL = True
    user = make_user(username="ann", email="ann@example.org")
    sign_in(client, user)
    return user


def confirmed(user: User) -> User:
    mark_confirmed(User.get(user.pk))
    return user


# Invoices ----------------------------------------------------------------------------------------


def test_the_form_says_so_before_anything_is_typed(client: Client, ann: User) -> None:
    response = client.get(NEW)

    assert DEMANDED in Page(response).text
    assert '<a href="/accounts/profile/">Get the link in your profile</a>' in (
        response.content.decode()
    )


def test_the_form_says_so_however_often_it_is_shown(client: Client, ann: User) -> None:
    for extra, told in (({"add_line": "1"}, DEMANDED), ({"lines-0-quantity": "many"}, REFUSED)):
        response = client.post(NEW, typed(LINE) | extra)

        assert told in Page(response).text


def test_the_form_is_refused_at_its_top_and_keeps_all_that_was_typed(
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
    assert stored(ann) == []


def test_the_same_form_is_issued_once_the_address_is_confirmed(client: Client, ann: User) -> None:
    values = typed(LINE)
    client.post(NEW, values)
    confirmed(ann)

    assert client.post(NEW, values)["Location"] == f"/invoices/{label(1)}/"


def test_a_confirmed_account_is_told_nothing(client: Client, ann: User) -> None:
    confirmed(ann)

    assert DEMANDED not in Page(client.get(NEW)).text


def test_nothing_is_demanded_where_the_site_does_not(
    client: Client, ann: User, settings: Any
) -> None:
    settings.ACCOUNTS_REQUIRE_CONFIRMED_EMAIL = False

    assert DEMANDED not in Page(client.get(NEW)).text
    assert client.post(NEW, typed(LINE)).status_code == 302


def test_an_invoice_can_be_seen_and_voided_all_the_same(client: Client, ann: User) -> None:
    issued(ann)

    assert client.get(f"/invoices/{label(1)}/").status_code == 200
    client.post(f"/invoices/{label(1)}/void/", {"reason": "Wrong customer"})

    [invoice] = stored(ann)
    assert invoice.is_voided


def test_the_command_refuses_in_one_line(ann: User) -> None:
    assert_fails(run(*ISSUE), REFUSED)
    assert stored(ann) == []


def test_the_command_issues_for_a_confirmed_account(ann: User) -> None:
    confirmed(ann)

    _out, err, code = run(*ISSUE)

    assert (err, code, len(stored(ann))) == ("", 0, 1)


# verifyemail --------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["ann", "ANN@example.org", "pk"])
def test_an_operator_confirms_an_address(ann: User, who: str) -> None:
    assert run("verifyemail", ann.pk if who == "pk" else who) == (
        "ann@example.org is confirmed.\n",
        "",
        0,
    )
    assert User.get(ann.pk).is_confirmed


def test_what_is_confirmed_is_said_once_more_and_not_written(
    ann: User, requests_sent: Requests
) -> None:
    run("verifyemail", "ann")
    before = stored_user(ann.pk)
    requests_sent.clear()

    assert run("verifyemail", "ann") == ("ann@example.org is confirmed.\n", "", 0)

    assert requests_sent.operations == ["GetItem", "GetItem"]
    assert stored_user(ann.pk) == before


def test_nobody_s_address_is_not_confirmed(ann: User) -> None:
    before = stored_items()

    assert_fails(
        run("verifyemail", "bob"),
        "No account has the username, email address or primary key 'bob'.",
    )

    assert stored_items() == before


def test_an_account_that_changes_meanwhile_is_left_as_it_is(engine: str, ann: User) -> None:
    with meanwhile(engine, "UpdateItem", lambda: edit_profile(User.get(ann.pk), full_name="Ann")):
        assert_fails(run("verifyemail", "ann"), "changed meanwhile. Nothing was written.")

    assert not User.get(ann.pk).is_confirmed


def test_a_confirmation_by_an_operator_survives_a_lost_reply(proxy: FaultProxy) -> None:
    user = make_user(username="ann")
    proxy.plan("UpdateItem", DropReply())

    assert run("verifyemail", "ann")[1:] == ("", 0)

    assert changes_of(user) == 1
