"""Mails that tell an owner what was done with the account, when, from where, and what to do."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings as project_settings
from django.core import mail, signing
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.emails import links
from accounts.emails.links import request_change
from accounts.models import User
from accounts.pages import notices
from accounts.services import edit_profile
from outbox.models import TaskItem
from tests.factories import PASSWORD, make_user
from tests.mailbox import link
from tests.pages import ANN, RESET, sign_in, sign_up
from tests.registration import RunTasks
from tests.requests import Requests
from tests.session_maps import begun

pytestmark = pytest.mark.usefixtures("engine")

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
KNOWN = project_settings.ACCOUNTS_BROWSER_COOKIE_NAME
NEW_PASSWORD = "quite another password"


def browser(agent: str = CHROME, address: str = "192.0.2.7") -> Client:
    return Client(REMOTE_ADDR=address, HTTP_USER_AGENT=agent)


@pytest.fixture
def owner() -> User:
    user = make_user(username="ann", email="ann@example.org", email_confirmed=True)
    edit_profile(user, time_zone="Asia/Tokyo")
    return user


CHANGES = {
    "password": (
        "/accounts/password_change/",
        {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD},
        "The password of your account at testserver was changed.",
    ),
    "username": (
        "/accounts/username/",
        {"username": "anna", "password": PASSWORD},
        "The username of your account at testserver was changed.",
    ),
    "deletion": (
        "/accounts/delete/",
        {"password": PASSWORD},
        "Your account at testserver was deleted.",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_owner_is_told_of_a_change_and_when_and_from_where(
    owner: User, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, typed, expected = CHANGES[change]
    client = browser()
    sign_in(client, owner)
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 23, 20, 30, tzinfo=UTC))

    assert client.post(url, typed).status_code == 302

    [told] = mail.outbox
    assert told.to == ["ann@example.org"]
    body = told.body
    assert expected in body
    assert "When: Nov. 24, 2026, 5:30 a.m. JST\nFrom: Chrome on Linux, 192.0.2.7" in body
    assert "If it was not you" in body


def test_both_addresses_are_told_of_a_change_of_address(owner: User) -> None:
    client = browser()
    sign_in(client, owner)
    client.post("/accounts/email/", {"email": "ann@new.example", "password": PASSWORD})
    [asked] = mail.outbox

    assert client.post(link(asked)).status_code == 302
    # A second time changes nothing, so nobody is told.
    assert client.post(link(asked)).status_code == 302

    _asked, former, new = mail.outbox
    assert (former.to, new.to) == (["ann@example.org"], ["ann@new.example"])
    assert "This address no longer belongs to it." in former.body
    assert "This is now the email address of your account" in new.body
    for item in (former, new):
        assert "From: Chrome on Linux, 192.0.2.7" in item.body


@pytest.mark.parametrize("act", [*CHANGES, "sign-in", "link", "reset"])
def test_a_notice_is_stored_by_the_transaction_of_what_it_tells(
    owner: User, act: str, worker: RunTasks, requests_sent: Requests
) -> None:
    client = browser(address="198.51.100.9")
    if act in CHANGES:
        sign_in(client, owner)
        url, typed, _expected = CHANGES[act]
    elif act == "sign-in":
        begun(owner)
        url, typed = "/accounts/login/", {"username": "ann", "password": PASSWORD}
    elif act == "link":
        request_change(User.get(owner.pk), "ann@new.example")
        token = links.change_token(User.get(owner.pk))
        url, typed = reverse("email_change_confirm", args=[token]), {}
    else:
        client.post(RESET, {"email": owner.email})
        worker()
        url = client.get(link()).headers["Location"]
        typed = {"new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    requests_sent.clear()

    assert client.post(url, typed).status_code == 302

    written = [
        [table_of(part) for part in request["TransactItems"]]
        for request in requests_sent.of("TransactWriteItems")
    ]
    [whole] = [tables for tables in written if TaskItem.table() in tables]
    assert User.table() in whole
    assert TaskItem.table() not in [item["TableName"] for item in requests_sent.of("PutItem")]
    mail.outbox.clear()
    worker()
    assert len(mail.outbox) == (2 if act == "link" else 1)


def table_of(part: dict[str, Any]) -> str:
    [write] = part.values()
    return str(write["TableName"])


def test_an_address_that_was_never_confirmed_gets_no_notice(settings: Any) -> None:
    bob = make_user(username="bob", email="stranger@example.org")
    client = browser()
    sign_in(client, bob)

    for name in ("bobby", "bob"):
        typed = {"username": name, "password": PASSWORD}
        assert client.post("/accounts/username/", typed).status_code == 302
    assert mail.outbox == []
    client.post("/accounts/email/", {"email": "bob@example.org", "password": PASSWORD})
    client.post(link())
    assert [message.to for message in mail.outbox[1:]] == [["bob@example.org"]]
    settings.ACCOUNTS_EMAIL_CHANGE = "immediate"
    for address in ("second@example.org", "third@example.org"):
        client.post("/accounts/email/", {"email": address, "password": PASSWORD})

    # Bob confirmed the first address, and not the second.
    told = [message.to for message in mail.outbox[2:] if "no longer" in message.body]
    assert told == [["bob@example.org"]]


def test_only_a_sign_in_from_an_unknown_browser_is_told(
    owner: User, requests_sent: Requests
) -> None:
    first = browser()
    second = browser(agent="curl/8.0", address="198.51.100.9")

    # This is the first sign-in to the account.
    assert sign_in(first, owner).status_code == 302
    assert mail.outbox == []
    known = browser(address="203.0.113.5")
    known.cookies[KNOWN] = first.cookies[KNOWN].value
    requests_sent.clear()
    assert sign_in(known, owner).status_code == 302
    of_known = sorted(requests_sent.operations)
    assert mail.outbox == []

    requests_sent.clear()
    assert sign_in(second, owner).status_code == 302
    assert sorted(requests_sent.operations) == of_known
    [told] = mail.outbox
    assert told.subject == "New sign-in at Dynamo Ledger"
    assert "From: curl, 198.51.100.9" in told.body
    second.post("/accounts/logout/")
    sign_in(second, owner)
    assert len(mail.outbox) == 1
    # This browser has no cookie, but the kind and the address of a session that is alive.
    sign_in(browser(), owner)
    assert len(mail.outbox) == 1
    forged = browser(f"{CHROME} {'x' * 300}\t", "198.51.100.1")
    named = signing.loads(first.cookies[KNOWN].value, salt=notices._SALT)
    forged.cookies[KNOWN] = signing.dumps(named, key="another", salt=notices._SALT)
    sign_in(forged, owner)
    assert len(mail.outbox) == 2
    sign_in(browser(f"{CHROME} {'x' * 300}\t", "198.51.100.1"), owner)
    assert len(mail.outbox) == 2


def test_another_password_makes_known_browsers_unknown_except_that_of_the_change(
    owner: User,
) -> None:
    first = browser()
    second = browser(address="198.51.100.9")
    for item in (first, second):
        sign_in(item, owner)
    url, typed, _expected = CHANGES["password"]
    second.post(url, typed)
    mail.outbox.clear()

    for client, told in ((second, 0), (first, 1)):
        again = browser(address="203.0.113.5")
        again.cookies[KNOWN] = client.cookies[KNOWN].value
        sign_in(again, owner, NEW_PASSWORD)
        again.post("/accounts/logout/")
        assert len(mail.outbox) == told


def test_a_new_account_knows_its_browser_and_a_wrong_password_tells_nobody(client: Client) -> None:
    sign_up(client)
    client.post("/accounts/logout/")
    owner = User.named(ANN["username"])
    mail.outbox.clear()

    sign_in(browser(), owner, "wrong")
    sign_in(client, owner, ANN["password1"])

    assert mail.outbox == []


def test_a_notice_has_the_language_of_the_account(owner: User, settings: Any) -> None:
    edit_profile(User.get(owner.pk), language="ja")
    sign_in(browser(), owner)

    sign_in(browser(address="198.51.100.9"), owner)

    [told] = mail.outbox
    assert told.subject.startswith("【Dynamo Ledger】")
    assert "Linux" in told.body
    assert re.search(r"\d日 ?\d", told.body)
    assert "When" not in told.body
