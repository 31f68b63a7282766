"""Sign-ups that tell nobody who is known here: held under a link that goes to the address."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.core import mail
from django.core.cache import cache
from django.test import Client

from accounts.emails import links
from accounts.models import User
from accounts.services import account_key, delete
from accounts.signup import pending
from accounts.values import comparable_email, comparable_username
from dynamo.cache import CacheItem
from dynamo.client.sending import send
from dynamo.signals import request_sent
from dynamo.unique.attributes import UniqueAttributes
from tests.accounts.test_confirmation import assert_refused
from tests.accounts.test_sign_up_page import ANN, URL, the_account
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    make_user,
    stored_items,
)
from tests.faults.kinds import CloseBefore, DropReply, TimeOut
from tests.faults.proxy import FaultProxy
from tests.mailbox import later, link, the_mail, told_by, whole_link
from tests.pages import Page, form_values, meanwhile, sign_in, signed_in_as
from tests.requests import Requests

SENT = "/accounts/signup/sent/"
LOGIN = "/accounts/login/"
READY = "Your account is ready. Sign in with your password."
TAKEN = "Another account has taken this in the meantime: "


@pytest.fixture(autouse=True)
def _told_nothing(engine: str, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True


def sign_up(**values: Any) -> Any:
    """Send the sign-up form as a new visitor."""
    visitor = Client()
    return visitor.post(URL, form_values(visitor, URL, **(ANN | values)))


def sign_up_link(**values: Any) -> str:
    """The path of the link that a sign-up gets."""
    mail.outbox.clear()
    assert sign_up(**values)["Location"] == SENT
    return link()


def held() -> list[dict[str, Any]]:
    """What is held of sign-ups."""
    items = send("Scan", {"TableName": CacheItem.table()})["Items"]
    return [json.loads(item["value"]["S"]) for item in items if "S" in item["value"]]


# Asking ------------------------------------------------------------------------------------------


def test_a_sign_up_makes_no_account_and_signs_nobody_in(client: Client) -> None:
    response = client.post(URL, form_values(client, URL, **ANN))

    assert (response.status_code, response["Location"]) == (302, SENT)
    assert "Follow the link in it to create your account" in Page(client.get(SENT)).text
    assert signed_in_as(client) is None
    assert stored_items() == {}
    assert the_mail().to == ["ann@example.org"]
    assert whole_link().startswith("http://testserver/accounts/signup/confirm/")


def test_the_password_is_held_as_a_hash_alone() -> None:
    sign_up()

    [values] = held()
    assert hashers.check_password(PASSWORD, values["password_hash"])
    assert PASSWORD not in str(values)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is asked of DynamoDB, hashed and mailed from here on, in this order."""
    done: list[str] = []

    def noted(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any, **named: Any) -> Any:
            done.append(what)
            return function(*arguments, **named)

        return noting

    def note(operation: str, **_signal: Any) -> None:
        done.append(operation)

    for what, owner, name in (
        ("hash", hashers.MD5PasswordHasher, "encode"),
        ("mail", mail.EmailMessage, "send"),
    ):
        monkeypatch.setattr(owner, name, noted(what, getattr(owner, name)))
    request_sent.connect(note)
    yield done
    request_sent.disconnect(note)


@pytest.mark.parametrize("email", ["ann@example.org", "ANN@EXAMPLE.ORG"])
def test_a_known_address_gets_the_same_answer_after_the_same_work(
    work: list[str], limits: Any, email: str
) -> None:
    def answer(**values: Any) -> tuple[Any, ...]:
        visitor = Client()
        typed = form_values(visitor, URL, **(ANN | values))
        work.clear()
        response = visitor.post(URL, typed)
        done = list(work)
        headers = dict(response.items()) | {"Expires": "", "X-Request-ID": ""}
        shown = response.content, Page(visitor.get(response["Location"])).text
        return (response.status_code, headers, response.cookies.keys(), *shown, done)

    unknown = answer(email=email)
    make_user(email="ann@example.org")

    assert answer(email=email) == unknown
    assert unknown[-1] == ["GetItem", "GetItem", "hash", "PutItem", "mail"]


def test_the_owner_of_a_known_address_is_told_and_gets_no_link() -> None:
    make_user(email="ann@example.org")
    before = stored_items()

    sign_up()

    assert the_mail().to == ["ann@example.org"]
    assert "it already belongs to an account" in the_mail().body
    assert whole_link() == "http://testserver/accounts/password_reset/"
    assert stored_items() == before


def test_nothing_that_was_typed_stands_in_the_mail() -> None:
    make_user(email="known@example.org")
    for email in ("ann@example.org", "known@example.org"):
        sign_up(username="Prize", full_name="You have won", email=email)

    assert len(mail.outbox) == 2
    for message in mail.outbox:
        text = told_by(message)
        assert "Prize" not in text
        assert "won" not in text


def test_a_taken_user_name_is_said_at_its_field_at_once() -> None:
    make_user(username="ann")

    response = sign_up()

    assert Page(response).errors == {"username": ["This username is taken."]}
    assert (mail.outbox, held()) == ([], [])


@pytest.mark.parametrize("known", [False, True])
def test_the_rules_for_a_form_are_the_same_for_all(known: bool) -> None:
    if known:
        make_user(email="ann@example.org")

    response = sign_up(password2="another password")

    assert Page(response).errors.keys() == {"password2"}
    assert (mail.outbox, held()) == ([], [])


@pytest.mark.usefixtures("no_mail")
def test_the_page_says_that_the_mail_could_not_be_sent() -> None:
    make_user(email="known@example.org")

    for email in ("ann@example.org", "known@example.org"):
        response = sign_up(email=email)

        assert response.status_code == 200
        page = Page(response)
        assert page.errors[""] == ["The mail could not be sent. Please try again later."]
        assert page.value("email") == email


# The link ----------------------------------------------------------------------------------------


def test_the_link_makes_the_account_and_confirms_its_address(client: Client) -> None:
    response = client.post(sign_up_link())

    assert (response.status_code, response["Location"]) == (302, LOGIN)
    assert Page(client.get(LOGIN)).messages == [READY]
    user = the_account()
    assert (user.username, user.email, user.full_name) == ("Ann", "ann@example.org", "Ann Example")
    assert (user.phone_number, user.is_confirmed) == ("+12025550124", True)
    assert_guards_match_users()
    assert signed_in_as(client) is None
    sign_in(client, user)
    assert signed_in_as(client) == "Ann"


def test_following_a_link_costs_two_requests_more_than_a_registration(
    requests_sent: Requests,
) -> None:
    path, visitor = sign_up_link(), Client()
    requests_sent.clear()

    visitor.post(path)

    assert requests_sent.operations == ["GetItem", "TransactWriteItems", "PutItem"]


def test_nothing_is_held_once_the_account_is_made() -> None:
    Client().post(sign_up_link())

    assert_noted_as_made()


def test_a_link_followed_twice_says_the_same_and_makes_no_second_account(client: Client) -> None:
    path = sign_up_link()
    Client().post(path)
    before = stored_items()

    assert client.post(path)["Location"] == LOGIN

    assert Page(client.get(LOGIN)).messages == [READY]
    assert stored_items() == before


def test_a_link_followed_again_by_who_is_signed_in_leads_to_the_profile(client: Client) -> None:
    path = sign_up_link()
    client.post(path)
    sign_in(client, the_account())

    assert client.post(path)["Location"] == "/accounts/profile/"


def test_a_link_makes_no_account_after_its_account_was_deleted() -> None:
    path = sign_up_link()
    Client().post(path)
    delete(the_account())

    assert_refused(Client(), path)

    assert stored_items() == {}


def test_a_link_does_nothing_to_an_account_made_anew_under_the_same_names() -> None:
    path = sign_up_link()
    Client().post(path)
    delete(the_account())
    make_user(username="Ann", email="ann@example.org")

    assert_refused(Client(), path)


def test_a_link_is_good_for_three_days() -> None:
    path = sign_up_link()

    with later(days=3, seconds=2):
        assert_refused(Client(), path)
    with later(days=3, seconds=-60):
        assert Client().post(path)["Location"] == LOGIN


def test_a_link_that_made_its_account_says_so_for_three_days() -> None:
    path = sign_up_link()
    Client().post(path)

    with later(days=3, seconds=-60):
        assert Client().post(path)["Location"] == LOGIN


def test_what_is_held_is_gone_with_its_link() -> None:
    token = sign_up_link().split("/")[-2]
    [key] = links.read(pending.PURPOSE, token, 1)
    with later(days=3, seconds=-60):
        assert cache.get(pending._cache_key(key))

    with later(days=3, seconds=2):
        assert cache.get(pending._cache_key(key)) is None


@pytest.mark.parametrize("token", ["x", ":::", "%00", "a" * 3000])
def test_a_link_that_was_made_up_makes_nothing(token: str) -> None:
    sign_up()

    assert_refused(Client(), f"/accounts/signup/confirm/{token}/")


def test_a_link_of_another_purpose_makes_nothing() -> None:
    token = sign_up_link().split("/")[-2]
    [key] = links.read(pending.PURPOSE, token, 1)

    assert_refused(Client(), f"/accounts/confirm/{token}/")
    assert_refused(Client(), f"/accounts/signup/confirm/{links.make('confirm', key)}/")


def test_opening_a_link_without_pressing_the_button_makes_nothing() -> None:
    path = sign_up_link()

    assert Client().head(path).status_code == 200
    assert "Create my account" in Page(Client().get(path)).text

    assert stored_items() == {}
    assert len(held()) == 1


@pytest.mark.parametrize(
    ("taken", "names"),
    [
        ({"username": "ANN"}, "Username"),
        ({"email": "Ann@Example.org"}, "Email address"),
        ({"username": "ann", "email": "ann@example.org"}, "Username, Email address"),
    ],
)
def test_what_was_taken_meanwhile_is_said_and_nothing_is_written(
    taken: dict[str, Any], names: str
) -> None:
    path = sign_up_link()
    make_user(**taken)

    assert_refused(Client(), path, 409, f"{TAKEN}{names}.")
    assert "Sign up again" in Page(Client().post(path)).text


@pytest.fixture
def _unique_phone_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    declared: UniqueAttributes[User] = UniqueAttributes(
        username=comparable_username, email=comparable_email, phone_number=str
    )
    declared.__set_name__(User, "unique")
    monkeypatch.setattr(User, "unique", declared)


@pytest.mark.usefixtures("_unique_phone_numbers")
def test_another_unique_value_that_is_taken_is_said_at_its_field_at_once() -> None:
    make_user(username="ann", phone_number="+12025550124")

    response = sign_up()

    assert Page(response).errors == {
        "username": ["This username is taken."],
        "phone_number": ["Another account already has this value."],
    }
    assert (mail.outbox, held()) == ([], [])


@pytest.mark.usefixtures("_unique_phone_numbers")
def test_another_unique_value_that_was_taken_meanwhile_is_named() -> None:
    path = sign_up_link()
    make_user(phone_number="+12025550124")

    assert_refused(Client(), path, 409, f"{TAKEN}Phone number.")


def test_a_held_sign_up_whose_values_are_no_longer_accepted_says_why(settings: Any) -> None:
    settings.ACCOUNTS_PHONE_REGION = "US"
    path = sign_up_link(phone_number="202-555-0124")
    [values] = held()
    [key] = links.read(pending.PURPOSE, path.split("/")[-2], 1)
    cache.set(pending._cache_key(key), values | {"phone_number": "202"}, links.VALID_SECONDS)

    assert_refused(Client(), path, 409, "Enter a valid phone number.")


def assert_noted_as_made() -> None:
    """All that is held is which account was made."""
    made = the_account()
    assert held() == [{"made": made.pk, "joined_at": str(made.date_joined)}]


def test_a_link_followed_by_many_at_once_makes_one_account(at_once: Any) -> None:
    path = sign_up_link()

    answers = at_once(lambda _number: Client().post(path))

    assert {answer["Location"] for answer in answers} == {LOGIN}
    the_account()
    assert_guards_match_users()


@pytest.mark.parametrize("lost", [DropReply(), CloseBefore(), TimeOut()])
@pytest.mark.parametrize("operation", ["GetItem", "TransactWriteItems", "PutItem"])
def test_a_link_whose_reply_is_lost_makes_one_account(
    proxy: FaultProxy, operation: str, lost: Any
) -> None:
    path = sign_up_link()
    proxy.plan(operation, lost)

    assert Client().post(path)["Location"] == LOGIN

    assert the_account().is_confirmed
    assert_noted_as_made()


@pytest.mark.parametrize("lost", [DropReply(), CloseBefore()])
def test_a_sign_up_whose_reply_is_lost_is_held_once(proxy: FaultProxy, lost: Any) -> None:
    visitor = Client()
    typed = form_values(visitor, URL, **ANN)
    proxy.plan("PutItem", lost, when=lambda body: "B" in body["Item"]["value"])

    assert visitor.post(URL, typed)["Location"] == SENT

    assert len(held()) == 1
    assert Client().post(link())["Location"] == LOGIN


def test_a_link_finds_its_account_where_nothing_was_noted_after_it_was_made(engine: str) -> None:
    path = sign_up_link()
    noted = held()
    [key] = links.read(pending.PURPOSE, path.split("/")[-2], 1)
    Client().post(path)
    made = stored_items()
    # As if the process had been killed just before it noted that.
    cache.set(pending._cache_key(key), noted[0], links.VALID_SECONDS)

    assert Client().post(path)["Location"] == LOGIN

    assert stored_items() == made


# The same form twice -----------------------------------------------------------------------------


def test_a_form_sent_twice_makes_one_account_by_the_first_link_that_is_followed() -> None:
    visitor = Client()
    typed = form_values(visitor, URL, **ANN)
    for _time in range(2):
        assert visitor.post(URL, typed)["Location"] == SENT
    first, second = (link(message) for message in mail.outbox)

    assert Client().post(second)["Location"] == LOGIN
    assert the_account().pk == account_key_of(typed)

    assert_refused(
        Client(), first, 409, "Another link from the same form has already created an account."
    )


def account_key_of(typed: dict[str, Any]) -> str:
    """The key of the account that a form makes."""
    return account_key(typed["request_id"].split(":")[0])


def test_of_two_addresses_of_one_form_the_one_whose_link_is_followed_gets_the_account() -> None:
    visitor = Client()
    typed = form_values(visitor, URL, **ANN)
    visitor.post(URL, typed)
    visitor.post(URL, typed | {"email": "right@example.org"})
    wrong, right = (link(message) for message in mail.outbox)

    Client().post(right)

    assert the_account().email == "right@example.org"
    assert_refused(
        Client(), wrong, 409, "Another link from the same form has already created an account."
    )


def test_an_address_that_is_taken_while_its_link_is_followed_is_said(engine: str) -> None:
    path = sign_up_link()

    with meanwhile(engine, "TransactWriteItems", lambda: make_user(email="ann@example.org")):
        response = Client().post(path)

    assert response.status_code == 409
    assert TAKEN in Page(response).text
    assert_guards_match_users()


def test_a_sign_up_that_is_not_held_signs_in_as_ever(settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = False
    visitor = Client()

    assert visitor.post(URL, form_values(visitor, URL, **ANN))["Location"] == "/accounts/profile/"

    assert signed_in_as(visitor) == "Ann"
    assert not User.get(the_account().pk).is_confirmed
