"""Rate limits over HTTP: on passwords, sign-ups and mails; the pages that refuse, the ways back."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.http import HttpRequest
from django.test import Client

from accounts.conf import LIMITS
from accounts.exceptions import TooManyAttempts
from accounts.limits.middleware import in_words
from accounts.models import User
from dynamo.auth import passwords
from dynamo.cache.items import CacheItem
from tests.conftest import PATIENCE_SECONDS
from tests.factories import PASSWORD, make_user, stored_items
from tests.faults.kinds import Answer, DropReply
from tests.faults.proxy import FaultProxy
from tests.items import put_item
from tests.mailbox import link
from tests.pages import (
    REMINDER,
    RESET,
    SIGN_IN,
    Page,
    sign_up,
    signed_in_as,
    stored_counts,
    stored_sessions,
)
from tests.requests import Requests

REAUTHENTICATE = "/accounts/reauthenticate/"
WRONG = "wrong password"
NEW = {"new_password1": "quite another one", "new_password2": "quite another one"}
#: Attempts of an account and of a session; ten unless the settings say otherwise.
TRIES = 3


@pytest.fixture(autouse=True)
def _few_attempts(settings: Any) -> None:
    assert LIMITS["sign_in"] == LIMITS["reauthentication"] == "10/15m"
    few = dict.fromkeys(("sign_in", "reauthentication"), (TRIES, 900))
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | few


def attempt(who: str, password: str = WRONG, **headers: str) -> Any:
    return Client().post(SIGN_IN, {"username": who, "password": password}, headers=headers)


def statuses(*who: str, **headers: str) -> list[int]:
    """The answers to a wrong password for each of these names."""
    return [attempt(item, **headers).status_code for item in who]


def lock(who: str = "ann") -> None:
    """Use up the attempts."""
    assert statuses(*[who] * TRIES) == [200] * TRIES


def re_enter(client: Client, password: str) -> int:
    return int(client.post(REAUTHENTICATE, {"password": password}).status_code)


def let_pass(seconds: int) -> None:
    """Move the beginning of every window into the past by `seconds`."""
    for item in stored_counts():
        item["expiresAt"]["N"] = str(int(item["expiresAt"]["N"]) - seconds * 1000)
        put_item(CacheItem.table(), **item)


def assert_too_many(response: Any) -> Page:
    assert response.status_code == 429
    assert int(response["Retry-After"]) > 0
    assert response["Cache-Control"] == "private, no-store"
    page = Page(response)
    assert "Too many attempts" in page.text
    assert "sessionid" not in response.cookies
    return page


# The limit of an account --------------------------------------------------------------------------


def test_after_some_failures_even_the_right_password_is_refused_for_15_minutes(
    ann: User, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    lock()
    caplog.clear()

    response = attempt("ann", PASSWORD)

    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.getMessage() == "Too many attempts (sign_in)."
    page = assert_too_many(response)
    assert 14 * 60 < int(response["Retry-After"]) <= 15 * 60
    assert "You can try again in 15\xa0minutes." in page.text
    assert f'href="{RESET}"' in response.content.decode()
    assert stored_sessions() == []
    assert User.get(ann.pk).last_login is None
    assert attempt(make_user().username, PASSWORD).status_code == 302

    let_pass(901)
    client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})
    assert signed_in_as(client) == "ann"


def test_all_spellings_of_a_known_or_unknown_name_count_together(ann: User) -> None:
    odd = ("a@b@c", "x@[", "@", "é@\u0301.example", "8ec436a8-97e6-4e72-aec2", "a\tb")
    for names in (
        ["ann", "ＡＮＮ", "ann@example.org", "ANN@EXAMPLE.ORG"],
        ["nobody", " nobody ", "ＮＯＢＯＤＹ", "nobody"],
        *([who] * 4 for who in odd),
    ):
        assert statuses(*names) == [200] * TRIES + [429], names


def test_a_success_resets_the_counter_which_is_not_that_of_the_primary_key(ann: User) -> None:
    lock(ann.pk)
    assert statuses(*["ann"] * (TRIES - 1)) == [200] * (TRIES - 1)

    assert attempt("ann", PASSWORD).status_code == 302

    lock()
    assert statuses("ann") == [429]


def test_a_refusal_costs_the_same_for_known_and_unknown_names(
    ann: User, requests_sent: Requests
) -> None:
    """Apart from the account's read: it is left out if a thread begins it after the refusal."""
    costs = []
    for who in ("ann", "nobody"):
        lock(who)
    for who in ("ann", "nobody"):
        requests_sent.clear()
        attempt(who, PASSWORD)
        reads = requests_sent.operations.count("GetItem")
        assert reads in {1, 2}
        costs.append(sorted(requests_sent.operations)[reads:])

    assert costs == [["PutItem"] * 2 + ["UpdateItem"] * 2] * 2


# Attempts at once ---------------------------------------------------------------------------------


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hashes of a slow machine take their time."""
    monkeypatch.setattr(passwords, "WAIT_SECONDS", PATIENCE_SECONDS)


#: The limits of wrong passwords.
OF_FAILURES = ("sign_in", "sign_in_client", "reauthentication")


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("name", OF_FAILURES)
def test_right_passwords_at_once_are_all_accepted_and_of_wrong_ones_as_many_as_the_limit_checked(
    ann: User,
    client: Client,
    limits: dict[str, Any],
    at_once: Callable[..., list[int]],
    hashings: list[str],
    name: str,
) -> None:
    limits[name] = (TRIES, 900)
    client.force_login(ann)
    session = client.cookies["sessionid"].value

    def answers(password: str) -> list[int]:
        def answer(_number: int) -> int:
            if name == "reauthentication":
                return re_enter(Client(headers={"Cookie": f"sessionid={session}"}), password)
            return int(attempt("ann", password).status_code)

        return sorted(at_once(answer, 3 * TRIES))

    assert answers(PASSWORD) == [302] * 3 * TRIES
    hashings.clear()
    assert answers(WRONG) == [200] * TRIES + [429] * 2 * TRIES
    assert hashings == [WRONG] * TRIES


# The limits of a client ---------------------------------------------------------------------------


def test_a_client_that_tries_many_accounts_is_refused_and_a_success_does_not_reset_it(
    ann: User, limits: dict[str, Any]
) -> None:
    limits["sign_in_client"] = (4, 900)
    assert statuses("a", "b", "c") == [200] * 3

    for _success in range(3):
        assert attempt("ann", PASSWORD).status_code == 302

    assert statuses("d", "e") == [200, 429]
    assert attempt("ann", PASSWORD).status_code == 429


def test_a_refused_client_does_not_use_up_the_attempts_of_an_account(
    ann: User, settings: Any
) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"sign_in_client": (1, 900)}

    assert statuses(*["ann"] * 5) == [200] + [429] * 4

    assert authenticate(username="ann", password=PASSWORD) == ann


def test_a_call_without_a_request_is_not_counted_for_a_client(
    ann: User, limits: dict[str, Any]
) -> None:
    limits |= {"sign_in_client": (1, 900), "sign_in": (2, 900)}

    for request in (None, HttpRequest()):
        assert authenticate(request, username="ann", password=WRONG) is None
    with pytest.raises(TooManyAttempts):
        authenticate(username="ann", password=PASSWORD)


def test_successful_sign_ins_of_a_client_are_limited(ann: User, limits: dict[str, Any]) -> None:
    limits |= {"sign_in_success_client": (3, 900), "sign_in_client": (2, 900)}

    def signing_in(client: str) -> Any:
        return Client(REMOTE_ADDR=client).post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert [signing_in("192.0.2.1").status_code for _time in range(3)] == [302] * 3
    before = len(stored_sessions())
    assert [signing_in("192.0.2.1").status_code for _time in range(2)] == [429] * 2

    # From here on the password is not even checked.
    response = assert_too_many(signing_in("192.0.2.1"))
    assert "even the correct password is refused" in response.text
    assert len(stored_sessions()) == before
    assert signing_in("192.0.2.2").status_code == 302

    let_pass(901)
    assert signing_in("192.0.2.1").status_code == 302


def test_the_owner_of_a_locked_account_sets_a_new_password_and_signs_in(
    ann: User, client: Client
) -> None:
    lock()
    client.post(RESET, {"email": "ann@example.org"})
    form = client.get(link())

    assert client.post(form["Location"], NEW).status_code == 302

    assert attempt("ann").status_code == 200
    assert attempt("ann", "quite another one").status_code == 302


@pytest.mark.parametrize(
    ("url", "typed", "field"),
    [
        ("/accounts/username/", {"username": "anna"}, "password"),
        ("/accounts/password_change/", NEW, "old_password"),
    ],
    ids=["username", "password_change"],
)
def test_wrong_passwords_in_a_form_stop_only_this_session(
    ann: User, client: Client, url: str, typed: dict[str, str], field: str
) -> None:
    client.force_login(ann)
    other = Client()
    other.force_login(User.get(ann.pk))
    before = stored_items()
    wrong = [client.post(url, typed | {field: WRONG}) for _attempt in range(TRIES)]
    assert [response.status_code for response in wrong] == [200] * TRIES
    assert Page(wrong[0]).errors[field]

    page = assert_too_many(client.post(url, typed | {field: PASSWORD}))

    assert stored_items() == before
    assert "set a new password" in page.text
    assert re_enter(client, PASSWORD) == 429
    assert attempt("ann", PASSWORD).status_code == 302
    # Failed sign-ins do not stop a session either.
    lock()
    assert re_enter(other, PASSWORD) == 302
    let_pass(901)
    assert client.post(url, typed | {field: PASSWORD}).status_code == 302


def test_a_sign_in_costs_the_limits_five_requests_or_seven_after_others_and_a_form_two(
    ann: User, client: Client, requests_sent: Requests
) -> None:
    attempt("ann", PASSWORD)
    _others, of_limits = requests_sent.apart()
    assert sorted(of_limits) == ["DeleteItem", "PutItem", "PutItem", "PutItem", "UpdateItem"]
    requests_sent.clear()

    attempt("ann", PASSWORD)
    _others, of_limits = requests_sent.apart()
    again = ["PutItem", "UpdateItem"]
    assert sorted(of_limits) == sorted([*again, "PutItem", "DeleteItem", "UpdateItem", *again])

    client.force_login(ann)
    requests_sent.clear()
    client.post("/accounts/username/", {"username": "anna", "password": PASSWORD})
    _others, of_limits = requests_sent.apart()
    assert of_limits == ["PutItem", "DeleteItem"]


@pytest.mark.parametrize(
    ("operation", "fault", "updates"),
    [("UpdateItem", DropReply(), 2), ("PutItem", Answer(400, "ThrottlingException"), 0)],
)
def test_a_password_is_not_checked_if_it_cannot_be_counted(
    ann: User,
    client: Client,
    proxy: FaultProxy,
    settings: Any,
    operation: str,
    fault: Any,
    updates: int,
) -> None:
    attempt("ann")
    proxy.forget()
    settings.DYNAMODB_PAGE_SECONDS = 0.2 if operation == "PutItem" else 60
    proxy.plan(operation, fault, times=1_000)

    response = client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert response.status_code == 503
    assert stored_sessions() == []
    assert proxy.count("UpdateItem") == updates


def test_the_time_to_wait_is_rounded_up() -> None:
    waits = {
        59: "1 minute",
        60: "1 minute",
        61: "2 minutes",
        7140: "1 hour, 59 minutes",
        7141: "2 hours",
        86400: "1 day",
    }
    shown = {seconds: in_words(seconds).replace("\N{NO-BREAK SPACE}", " ") for seconds in waits}
    assert shown == waits


# Sign-ups and mails -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "other", "spellings"),
    [
        (RESET, REMINDER, ["ann@example.org", "ANN@EXAMPLE.org"]),
        (
            REMINDER,
            RESET,
            ['"xy"@bücher.example', r'"x\y"@xn--bcher-kva.example', "XY+1@BÜCHER.example"],
        ),
    ],
    ids=["known", "unknown"],
)
def test_a_mailbox_gets_five_mails_of_a_kind_an_hour_in_any_spelling_of_its_address(
    ann: User, client: Client, url: str, other: str, spellings: list[str]
) -> None:
    for email in (spellings * 3)[:5]:
        assert client.post(url, {"email": email}).status_code == 302

    page = assert_too_many(client.post(url, {"email": spellings[-1]}))

    assert "You can try again in 1\xa0hour." in page.text
    assert "password" not in page.text
    assert len(mail.outbox) == 5
    assert client.post(url, {"email": "another@example.org"}).status_code == 302
    # So reminders do not prevent a password reset.
    assert client.post(other, {"email": spellings[0]}).status_code == 302
    let_pass(3601)
    assert client.post(url, {"email": spellings[0]}).status_code == 302


def test_a_client_over_its_limit_of_mails_uses_up_none_of_an_address(
    ann: User, client: Client, limits: dict[str, Any]
) -> None:
    limits |= {"mail_client": (2, 3600), "mail": (2, 3600)}
    for number in range(2):
        assert client.post(RESET, {"email": f"x{number}@example.org"}).status_code == 302
    counted = len(stored_counts())

    assert client.post(REMINDER, {"email": "ann@example.org"}).status_code == 429

    assert len(stored_counts()) == counted


@pytest.mark.parametrize(
    ("url", "typed"),
    [
        ("/accounts/confirm/send/", {}),
        ("/accounts/email/", {"email": "new@example.org", "password": PASSWORD}),
    ],
)
def test_a_mail_over_the_limit_is_not_sent_and_nothing_changes(
    ann: User, client: Client, limits: dict[str, Any], url: str, typed: dict[str, str]
) -> None:
    limits["mail"] = (1, 3600)
    client.force_login(ann)
    assert client.post(url, typed).status_code == 302
    before = stored_items()
    sent = len(mail.outbox)

    response = client.post(url, typed | {"email": "NEW@example.org"})

    assert response.status_code == 429
    assert (stored_items(), len(mail.outbox)) == (before, sent)


def test_sign_ups_of_a_client_are_limited_and_then_use_up_no_mails_of_an_address(
    ann: User, client: Client, limits: dict[str, Any]
) -> None:
    limits |= {"sign_up_client": (1, 3600), "mail": (2, 3600)}
    assert sign_up(Client(), username="first", email="first@example.org").status_code == 302
    before = stored_items()
    sent = len(mail.outbox)

    for email in ("ann@example.org", *["new@example.org"] * 4):
        assert sign_up(Client(), username="another", email=email).status_code == 429

    assert (stored_items(), len(mail.outbox)) == (before, sent)
    limits["sign_up_client"] = (100, 3600)
    assert sign_up(client, username="bob", email="new@example.org").status_code == 302


def test_pending_sign_ups_send_an_address_five_mails_an_hour(ann: User, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True
    for number in range(5):
        assert sign_up(Client(), username=f"user{number}x", email=ann.email).status_code == 302
    held = stored_sessions()

    assert sign_up(Client(), username="another", email=ann.email.upper()).status_code == 429

    assert len(mail.outbox) == 5
    assert stored_sessions() == held


def test_a_refused_sign_up_does_not_count_as_a_mail(ann: User, client: Client) -> None:
    for _attempt in range(7):
        assert "username" in Page(sign_up(client, username="ANN", email="new@example.org")).errors

    assert sign_up(client, username="bob", email="new@example.org").status_code == 302
