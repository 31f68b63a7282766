"""The limits as visitors meet them: a page that says when to try again, and ways around a lock."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.http import HttpRequest
from django.test import Client

from accounts.exceptions import TooManyAttempts
from accounts.limits.middleware import in_words
from accounts.models import User
from accounts.services import deactivate, grant_staff
from tests.factories import PASSWORD, make_user, stored_items
from tests.faults.kinds import Answer, DropReply
from tests.faults.proxy import FaultProxy
from tests.limited import assert_too_many, let_pass
from tests.pages import Page, signed_in_as, stored_sessions
from tests.requests import Requests

SIGN_IN = "/accounts/login/"
RESET = "/accounts/password_reset/"
REMINDER = "/accounts/username_reminder/"
WRONG = "wrong password"


@pytest.fixture
def ann(engine: str) -> User:
    return make_user(username="Ann", email="Ann@Example.org")


def attempt(who: str, password: str = WRONG, **headers: str) -> Any:
    return Client().post(SIGN_IN, {"username": who, "password": password}, headers=headers)


def statuses(*who: str, **headers: str) -> list[int]:
    """What so many wrong passwords are answered with."""
    return [attempt(each, **headers).status_code for each in who]


def lock(who: str = "ann") -> None:
    assert statuses(*[who] * 10) == [200] * 10


# Signing in ---------------------------------------------------------------------------------------


def test_guesses_from_ever_new_ipv6_networks_end_with_the_count_of_their_site(
    ann: User, limits: dict[str, Any], settings: Any
) -> None:
    settings.ACCOUNTS_TRUSTED_HOPS = 1
    limits["sign_in_client"] = (1, 900)
    guesses = [
        attempt(f"user{number}", **{"x-forwarded-for": f"2001:db8:0:{number:x}::1"}).status_code
        for number in range(12)
    ]

    assert guesses == [200] * 10 + [429] * 2
    assert attempt("ann", PASSWORD, **{"x-forwarded-for": "2001:db8:1::1"}).status_code == 302


def test_a_sign_in_over_ipv6_costs_three_requests_more(
    ann: User, settings: Any, requests_sent: Requests
) -> None:
    settings.ACCOUNTS_TRUSTED_HOPS = 1
    costs = []
    for address in ("203.0.113.7", "2001:db8::1"):
        requests_sent.clear()
        assert attempt("ann", PASSWORD, **{"x-forwarded-for": address}).status_code == 302
        costs.append(len(requests_sent.operations))

    assert costs[1] - costs[0] == 3


def test_after_ten_failures_the_page_says_when_to_try_again(ann: User) -> None:
    lock()

    response = attempt("ann")

    page = assert_too_many(response)
    assert 14 * 60 < int(response["Retry-After"]) <= 15 * 60
    assert "You can try again in 15 minutes." in page.text
    assert f'href="{RESET}"' in response.content.decode()


def test_a_right_password_is_refused_while_the_account_is_locked(ann: User) -> None:
    lock()

    assert_too_many(attempt("ann", PASSWORD))

    assert stored_sessions() == []
    assert User.get(ann.pk).last_login is None


def test_user_name_and_address_in_any_spelling_count_together(ann: User) -> None:
    names = ["ann", "Ann", "ＡＮＮ", "ann@example.org", "ANN@EXAMPLE.ORG"]

    assert statuses(*names * 2) == [200] * 10
    assert statuses(*names, " Ann ") == [429] * 6


def test_the_window_passes_by_itself(ann: User, client: Client) -> None:
    lock()
    let_pass(901)

    client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert signed_in_as(client) == "Ann"


def test_a_success_forgets_the_failures(ann: User) -> None:
    assert statuses(*["ann"] * 9) == [200] * 9

    assert attempt("ann", PASSWORD).status_code == 302

    lock()
    assert_too_many(attempt("ann"))


def test_nobody_else_is_locked(ann: User) -> None:
    bob = make_user()
    lock()

    assert attempt(bob.username, PASSWORD).status_code == 302


def test_unknown_names_are_locked_alike(engine: str) -> None:
    names = ["nobody", "NOBODY", " nobody ", "ＮＯＢＯＤＹ", "nobody"]

    assert statuses(*names * 2) == [200] * 10
    response = attempt("nobody")
    assert_too_many(response)
    assert f'href="{RESET}"' in response.content.decode()


@pytest.mark.parametrize(
    "who", ["a@b@c", "x@[", "@", "é@\u0301.example", "8ec436a8-97e6-4e72-aec2-b47668e96a94", "a\tb"]
)
def test_what_goes_by_no_name_is_locked_alike(engine: str, who: str) -> None:
    lock(who)

    assert_too_many(attempt(who))


def test_a_primary_key_typed_as_a_name_locks_no_account(ann: User) -> None:
    lock(str(ann.pk))

    assert attempt("ann", PASSWORD).status_code == 302


def test_a_deactivated_account_is_locked_alike(ann: User) -> None:
    deactivate(ann)
    assert [attempt("ann", PASSWORD).status_code for _attempt in range(10)] == [200] * 10

    assert_too_many(attempt("ann", PASSWORD))


def test_a_failure_and_a_refusal_cost_no_more_for_the_known_than_for_the_unknown(
    ann: User, requests_sent: Requests
) -> None:
    for who in ("ann", "nobody"):
        lock(who)
    requests_sent.clear()

    attempt("ann", PASSWORD)
    known = requests_sent.operations
    requests_sent.clear()
    attempt("nobody", PASSWORD)

    assert known == requests_sent.operations
    assert known == ["GetItem", "GetItem"] + ["PutItem", "UpdateItem"] * 2


# The client's address -----------------------------------------------------------------------------


def test_a_client_that_guesses_at_many_accounts_is_locked(
    ann: User, limits: dict[str, Any]
) -> None:
    limits["sign_in_client"] = (4, 900)

    assert statuses("a", "b", "c", "d", "e") == [200] * 4 + [429]
    assert_too_many(attempt("ann", PASSWORD))


def test_ones_own_success_does_not_clear_the_count_of_ones_address(
    ann: User, limits: dict[str, Any]
) -> None:
    limits["sign_in_client"] = (4, 900)
    assert statuses("a", "b", "c") == [200] * 3

    for _success in range(3):
        assert attempt("ann", PASSWORD).status_code == 302

    assert statuses("d", "e") == [200, 429]


def test_a_client_that_is_locked_uses_up_nobodys_slots(ann: User, settings: Any) -> None:
    settings.ACCOUNTS_LIMITS = settings.ACCOUNTS_LIMITS | {"sign_in_client": (1, 900)}

    assert statuses(*["ann"] * 12) == [200] + [429] * 11

    assert authenticate(username="ann", password=PASSWORD) == ann


def test_a_call_without_a_request_counts_no_client(ann: User, limits: dict[str, Any]) -> None:
    limits["sign_in_client"] = (1, 900)
    limits["sign_in"] = (2, 900)

    assert authenticate(username="ann", password=WRONG) is None
    assert authenticate(username="ann", password=WRONG) is None
    with pytest.raises(TooManyAttempts):
        authenticate(username="ann", password=PASSWORD)


def test_a_forged_header_makes_nobody_another_client(
    ann: User, limits: dict[str, Any], settings: Any
) -> None:
    limits["sign_in_client"] = (2, 900)

    def forged(number: int) -> int:
        headers = {"x-forwarded-for": f"203.0.113.{number}"}
        return int(attempt("a", **headers).status_code)

    assert [forged(number) for number in range(4)] == [200, 200, 429, 429]


def test_behind_a_proxy_clients_count_apart_and_forged_entries_do_not(
    ann: User, limits: dict[str, Any], settings: Any
) -> None:
    limits["sign_in_client"] = (2, 900)
    settings.ACCOUNTS_TRUSTED_HOPS = 1

    def through_proxy(forged: str, client: str) -> int:
        headers = {"x-forwarded-for": f"{forged}, {client}"}
        return int(attempt("a", **headers).status_code)

    one = [through_proxy(f"198.51.100.{number}", "203.0.113.7") for number in range(4)]
    other = through_proxy("203.0.113.7", "203.0.113.8")

    assert (one, other) == ([200, 200, 429, 429], 200)


# Ways back ----------------------------------------------------------------------------------------


def test_the_owner_of_a_locked_account_sets_a_new_password_and_signs_in(
    ann: User, client: Client
) -> None:
    lock()
    client.post(RESET, {"email": "ann@example.org"})
    link = re.search(r"http://testserver(/\S+)", str(mail.outbox[0].body))
    assert link
    form = client.get(link[1])
    new = {"new_password1": "quite another one", "new_password2": "quite another one"}

    assert client.post(form["Location"], new).status_code == 302

    assert attempt("ann").status_code == 200
    assert attempt("ann", "quite another one").status_code == 302


def test_reminders_do_not_keep_a_reset_from_its_owner(ann: User, limits: dict[str, Any]) -> None:
    limits["mail"] = (2, 3600)
    for _mail in range(2):
        assert Client().post(REMINDER, {"email": "ann@example.org"}).status_code == 302
    assert_too_many(Client().post(REMINDER, {"email": "ann@example.org"}))

    assert Client().post(RESET, {"email": "ann@example.org"}).status_code == 302
    assert len(mail.outbox) == 3


# Pages that ask for the password ------------------------------------------------------------------


NEW = {"new_password1": "quite another one", "new_password2": "quite another one"}
each_form = pytest.mark.parametrize(
    ("url", "typed", "field"),
    [
        ("/accounts/username/", {"username": "anna"}, "password"),
        ("/accounts/email/", {"email": "anna@example.org"}, "password"),
        ("/accounts/delete/", {}, "password"),
        ("/accounts/reauthenticate/", {}, "password"),
        ("/accounts/password_change/", NEW, "old_password"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


@each_form
def test_failed_sign_ins_do_not_stop_who_is_signed_in(
    ann: User, client: Client, url: str, typed: dict[str, str], field: str
) -> None:
    client.force_login(ann)
    lock()
    assert_too_many(attempt("ann", PASSWORD))

    assert client.post(url, typed | {field: PASSWORD}).status_code == 302


def test_failed_sign_ins_do_not_stop_staff_from_acting(ann: User, client: Client) -> None:
    grant_staff(ann)
    bob = make_user()
    client.force_login(ann)
    lock()

    typed = {"reason": "Spam", "password": PASSWORD}
    assert client.post(f"/staff/accounts/{bob.pk}/deactivate/", typed).status_code == 302

    assert not User.get(bob.pk).is_active


@each_form
def test_wrong_passwords_in_a_form_are_limited_and_stop_neither_sign_ins_nor_other_sessions(
    ann: User, client: Client, url: str, typed: dict[str, str], field: str
) -> None:
    client.force_login(ann)
    other = Client()
    other.force_login(User.get(ann.pk))
    before = stored_items()
    wrong = [client.post(url, typed | {field: WRONG}) for _attempt in range(10)]
    assert [response.status_code for response in wrong] == [200] * 10
    assert Page(wrong[0]).errors[field]

    page = assert_too_many(client.post(url, typed | {field: PASSWORD}))

    assert stored_items() == before
    assert "set a new password" in page.text
    assert attempt("ann", PASSWORD).status_code == 302
    assert other.post("/accounts/reauthenticate/", {"password": PASSWORD}).status_code == 302

    let_pass(901)
    assert client.post(url, typed | {field: PASSWORD}).status_code == 302


def test_all_forms_of_a_session_share_one_count(ann: User, client: Client) -> None:
    client.force_login(ann)
    for _time in range(5):
        client.post("/accounts/delete/", {"password": WRONG})
        client.post("/accounts/password_change/", NEW | {"old_password": WRONG})

    assert_too_many(client.post("/accounts/reauthenticate/", {"password": PASSWORD}))


def test_the_right_password_in_a_form_forgets_the_wrong_ones(ann: User, client: Client) -> None:
    client.force_login(ann)
    for _round in range(2):
        for _time in range(9):
            client.post("/accounts/reauthenticate/", {"password": WRONG})
        again = client.post("/accounts/reauthenticate/", {"password": PASSWORD})
        assert again.status_code == 302


def test_the_limit_of_the_forms_is_a_setting(
    ann: User, client: Client, limits: dict[str, Any]
) -> None:
    limits["reauthentication"] = (1, 900)
    client.force_login(ann)

    client.post("/accounts/reauthenticate/", {"password": WRONG})

    assert_too_many(client.post("/accounts/reauthenticate/", {"password": PASSWORD}))


# Successes ----------------------------------------------------------------------------------------


def test_successful_sign_ins_are_limited_per_client(ann: User, limits: dict[str, Any]) -> None:
    limits["sign_in_success_client"] = (3, 900)
    limits["sign_in_client"] = (2, 900)

    def signing_in(client: str) -> Any:
        return Client(REMOTE_ADDR=client).post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert [signing_in("192.0.2.1").status_code for _time in range(3)] == [302] * 3
    before = len(stored_sessions())
    for _time in range(2):
        assert_too_many(signing_in("192.0.2.1"))

    # From here on the password is not even checked.
    response = assert_too_many(signing_in("192.0.2.1"))
    assert "even the correct password is refused" in response.text
    assert len(stored_sessions()) == before
    assert signing_in("192.0.2.2").status_code == 302

    let_pass(901)
    assert signing_in("192.0.2.1").status_code == 302


# Budgets, faults, log -----------------------------------------------------------------------------


def test_a_success_costs_the_limits_five_requests_and_two_more_where_others_signed_in(
    ann: User, requests_sent: Requests
) -> None:
    attempt("ann", PASSWORD)
    _others, of_limits = requests_sent.apart()
    assert of_limits == ["PutItem", "PutItem", "DeleteItem", "PutItem", "UpdateItem"]
    requests_sent.clear()

    attempt("ann", PASSWORD)
    _others, of_limits = requests_sent.apart()
    first = ["PutItem", "UpdateItem", "PutItem"]
    assert of_limits == [*first, "DeleteItem", "PutItem", "UpdateItem", "UpdateItem"]


def test_a_form_that_asks_for_the_password_costs_the_limits_two_requests(
    ann: User, client: Client, requests_sent: Requests
) -> None:
    client.force_login(ann)
    requests_sent.clear()

    client.post("/accounts/username/", {"username": "anna", "password": PASSWORD})

    _others, of_limits = requests_sent.apart()
    assert of_limits == ["PutItem", "DeleteItem"]


def test_a_sign_in_whose_slot_did_not_come_back_is_one_all_the_same(
    ann: User, client: Client, proxy: FaultProxy
) -> None:
    proxy.plan("UpdateItem", DropReply(), when=lambda body: body["TableName"] == "cache")

    response = client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert response.status_code == 302
    assert signed_in_as(client) == "Ann"


def test_a_sign_in_whose_count_lost_its_reply_is_one_all_the_same(
    ann: User, client: Client, proxy: FaultProxy
) -> None:
    attempt("nobody")
    proxy.plan("UpdateItem", DropReply(), when=lambda body: body["TableName"] == "cache")

    response = client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert response.status_code == 302
    assert signed_in_as(client) == "Ann"


def test_where_no_count_is_answered_no_password_is_checked(
    ann: User, client: Client, proxy: FaultProxy
) -> None:
    attempt("ann")
    proxy.plan("UpdateItem", DropReply(), times=1_000)

    response = client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert response.status_code == 503
    assert stored_sessions() == []
    assert proxy.count("UpdateItem") == 2


def test_where_the_count_is_out_of_reach_no_password_is_checked(
    ann: User, client: Client, proxy: FaultProxy, settings: Any
) -> None:
    settings.DYNAMODB_PAGE_SECONDS = 0.2
    proxy.plan("PutItem", Answer(400, "ThrottlingException"), times=1_000)

    response = client.post(SIGN_IN, {"username": "ann", "password": PASSWORD})

    assert response.status_code == 503
    assert proxy.count("UpdateItem") == 0


def test_the_log_has_one_line_without_name_address_and_password(
    ann: User, caplog: pytest.LogCaptureFixture
) -> None:
    lock("ann@example.org")
    caplog.clear()

    with caplog.at_level(logging.INFO):
        attempt("ann@example.org", "a secret password")

    (record,) = [each for each in caplog.records if each.name != "project.access"]
    assert (record.levelname, record.getMessage()) == ("WARNING", "Too many attempts (sign_in).")


def test_the_page_asks_dynamodb_for_nothing(
    ann: User, client: Client, limits: dict[str, Any], requests_sent: Requests
) -> None:
    limits["mail"] = (1, 3600)
    client.force_login(ann)
    client.post(RESET, {"email": "ann@example.org"})
    requests_sent.clear()

    assert_too_many(client.post(RESET, {"email": "ann@example.org"}))

    assert requests_sent.apart() == ([], ["PutItem", "UpdateItem"])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (61, "2 minutes"),
        (900, "15 minutes"),
        (7140, "119 minutes"),
        (7141, "2 hours"),
        (86400, "24 hours"),
    ],
)
def test_the_wait_is_said_in_words(seconds: int, words: str) -> None:
    assert in_words(seconds) == words


def test_a_request_object_made_by_hand_counts_as_unknown(ann: User) -> None:
    assert authenticate(HttpRequest(), username="ann", password=PASSWORD) == ann
