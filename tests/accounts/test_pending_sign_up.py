"""`ACCOUNTS_PREVENT_ENUMERATION`: a sign-up is pending until the link in its mail is followed.

So it does not tell whether an email address has an account. What holds for all links in mails:
tests/accounts/test_mailed_links.py.
"""

import json
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from django.contrib.auth import hashers
from django.core import mail
from django.core.cache import cache
from django.test import Client

from accounts.emails import links, pending
from accounts.exceptions import BadLink
from accounts.models import User
from accounts.services import delete
from dynamo.transactions import Transaction
from tests.accounts.test_sign_up_page import the_account
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    make_unique,
    make_user,
    stored_items,
    stored_user,
)
from tests.mailbox import later, link, the_mail, told_by, whole_link
from tests.pages import (
    ANN,
    SIGN_UP as URL,
    Page,
    form_values,
    sign_in,
    sign_up,
    signed_in_as,
    stored_sessions,
)
from tests.requests import Requests

SENT = "/accounts/signup/sent/"
LOGIN = "/accounts/login/"
TAKEN = "Another account now has the same: "
SAME_FORM = "Another link from the same form has already created an account."


@pytest.fixture(autouse=True)
def _prevent_enumeration(engine: str, settings: Any) -> None:
    settings.ACCOUNTS_PREVENT_ENUMERATION = True


def sign_up_link(**values: Any) -> str:
    """The path of the link to a new sign-up."""
    mail.outbox.clear()
    assert sign_up(Client(), **values)["Location"] == SENT
    return link()


def held() -> list[dict[str, Any]]:
    """What is stored about sign-ups."""
    return [json.loads(item["value"]["S"]) for item in stored_sessions()]


def cache_key(path: str) -> str:
    """Where the sign-up of a link is stored."""
    [key] = links.read(links.SIGN_UP, path.split("/")[-2], 1)
    return pending._cache_key(key)


def refusal(path: str, status: int = 409) -> str:
    """Why the link is refused. Checks that nothing is changed."""
    before = stored_items()
    response = Client().post(path)
    assert response.status_code == status
    assert stored_items() == before
    text = Page(response).text
    assert "Nothing was changed." in text
    return text


# The form -----------------------------------------------------------------------------------------


def test_a_sign_up_stores_no_account_but_the_hash_of_its_password_until_its_link_is_followed(
    client: Client, requests_sent: Requests
) -> None:
    response = sign_up(client)

    assert (response.status_code, response["Location"]) == (302, SENT)
    assert "Follow the link in it to create your account" in Page(client.get(SENT)).text
    assert signed_in_as(client) is None
    assert stored_items() == {}
    assert the_mail().to == ["ann@example.org"]
    assert whole_link().startswith("http://testserver/accounts/signup/confirm/")
    [values] = held()
    assert hashers.check_password(PASSWORD, values["password_hash"])
    assert PASSWORD not in str(values)
    requests_sent.clear()

    response = client.post(link())

    assert requests_sent.operations == ["GetItem", "TransactWriteItems", "PutItem"]
    assert (response.status_code, response["Location"]) == (302, LOGIN)
    user = the_account()
    assert (user.username, user.email, user.full_name) == ("Ann", "ann@example.org", "Ann Example")
    assert (user.phone_number, user.is_confirmed) == ("+12025550124", True)
    assert_guards_match_users()
    assert held() == [{"made": user.pk, "joined_at": str(user.date_joined), "next_page": ""}]
    sign_in(client, user)
    assert signed_in_as(client) == "Ann"


@pytest.mark.parametrize("email", ["ann@example.org", "ANN@EXAMPLE.ORG"])
def test_known_and_unknown_addresses_get_the_same_answer_after_the_same_work(
    requests_sent: Requests, hashings: list[str], limits: Any, email: str
) -> None:
    def answer() -> tuple[Any, ...]:
        visitor = Client()
        typed = form_values(visitor, URL, **(ANN | {"email": email}))
        for item in (requests_sent, hashings, mail.outbox):
            item.clear()
        response = visitor.post(URL, typed)
        work = list(requests_sent.operations), len(hashings), len(mail.outbox)
        headers = dict(response.items()) | {"Expires": "", "X-Request-ID": ""}
        shown = response.content, Page(visitor.get(response["Location"])).text
        return (response.status_code, headers, response.cookies.keys(), *shown, work)

    unknown = answer()
    make_user(email="ann@example.org")

    assert answer() == unknown
    assert unknown[-1] == (["GetItem", "GetItem", "PutItem"], 1, 1)


def test_a_mail_contains_nothing_that_was_typed_and_to_a_known_address_no_sign_up_link(
    settings: Any,
) -> None:
    make_user(email="known@example.org")
    before = stored_items()
    for email in ("ann@example.org", "known@example.org"):
        sign_up(Client(), username="Prize", full_name="You have won", email=email)

    _unknown, known = mail.outbox
    assert known.to == ["known@example.org"]
    assert "it already belongs to an account" in known.body
    assert whole_link(known) == "http://testserver/accounts/password_reset/"
    assert stored_items() == before
    settings.ACCOUNTS_PREVENT_ENUMERATION = False
    sign_up(Client(), username="Prize", full_name="You have won", email="cy@example.org")
    for message in mail.outbox:
        assert "Prize" not in told_by(message)
        assert "won" not in told_by(message)


def test_invalid_values_and_taken_usernames_are_refused_for_every_address() -> None:
    make_user(username="taken", email="known@example.org")

    for email in ("new@example.org", "known@example.org"):
        for field, value in (("password2", "another password"), ("username", "TAKEN")):
            response = sign_up(Client(), **{field: value, "email": email})
            assert Page(response).errors.keys() == {field}
    assert (mail.outbox, held()) == ([], [])


# The link -----------------------------------------------------------------------------------------


def test_the_stored_sign_up_expires_with_its_link() -> None:
    key = cache_key(sign_up_link())

    with later(days=3, seconds=-60):
        assert cache.get(key)
    with later(days=3, seconds=2):
        assert cache.get(key) is None


def test_a_sign_up_and_its_link_name_all_values_that_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_unique(monkeypatch, "phone_number")
    path = sign_up_link()
    taken = {"username": "ANN", "email": "Ann@Example.org", "phone_number": "+12025550124"}
    make_user(**taken)
    mail.outbox.clear()

    assert Page(sign_up(Client())).errors == {
        "username": ["This username is taken."],
        "phone_number": ["Another account already has this value."],
    }
    assert mail.outbox == []
    text = refusal(path)
    assert f"{TAKEN}Username, Email address, Phone number." in text
    assert "Sign up again" in text


def test_a_link_says_which_value_is_no_longer_valid(settings: Any) -> None:
    settings.ACCOUNTS_PHONE_REGION = "US"
    path = sign_up_link(phone_number="202-555-0124")
    [values] = held()
    cache.set(cache_key(path), values | {"phone_number": "202"}, links.VALID_SECONDS)

    assert "Enter a valid phone number." in refusal(path)


def test_a_link_finds_its_account_if_the_process_died_before_it_noted_it() -> None:
    path = sign_up_link()
    noted = held()
    Client().post(path)
    made = stored_items()
    cache.set(cache_key(path), noted[0], links.VALID_SECONDS)

    assert Client().post(path)["Location"] == LOGIN

    assert stored_items() == made


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/invoices/new/?a=1", "/invoices/new/?a=1"),
        ("https://example.com/", "/"),
        ("//example.com", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_a_sign_up_leads_to_the_page_that_was_wanted_and_its_mail_does_not_contain_it(
    wanted: str, reached: str
) -> None:
    query = urlencode({"next": wanted})
    visitor = Client()
    visitor.post(f"{URL}?{query}", form_values(visitor, f"{URL}?{query}", **ANN))
    assert unquote(wanted) not in unquote(the_mail().body)

    # In another browser, and a second time.
    for follower in (Client(), Client()):
        asked = follower.post(link())["Location"]
        typed = form_values(follower, asked, username="Ann", password=PASSWORD)
        assert follower.post(LOGIN, typed)["Location"] == reached


# The same form twice ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "second",
    [
        {"email": "right@example.org"},
        dict.fromkeys(("password1", "password2"), "another good password"),
    ],
)
def test_of_two_links_of_one_form_the_first_that_is_followed_makes_the_account(
    second: dict[str, str],
) -> None:
    visitor = Client()
    typed = form_values(visitor, URL, **ANN)
    for values in (typed, typed | second):
        assert visitor.post(URL, values)["Location"] == SENT
    first_link, second_link = (link(message) for message in mail.outbox)

    assert Client().post(second_link)["Location"] == LOGIN

    assert the_account().pk == User.key_for(typed["request_id"].split(":")[0])
    assert the_account().email == (typed | second)["email"]
    assert SAME_FORM in refusal(first_link)


def test_a_used_link_does_not_lead_to_the_account_of_another_link_of_the_same_form() -> None:
    def token(username: str) -> str:
        values = {"username": username, "email": f"{username}@example.org"}
        key = pending.hold_sign_up(password=PASSWORD, request_id="form", **values)
        assert key is not None
        return links.make(links.SIGN_UP, key)

    first = token("ann")
    second = token("bea")
    made, _page = pending.complete_sign_up(first)
    delete(made)
    pending.complete_sign_up(second)

    with pytest.raises(BadLink):
        pending.complete_sign_up(first)
    assert User.get(made.pk).username == "bea"


def test_a_pending_sign_up_joins_a_transaction() -> None:
    key = pending.hold_sign_up(
        username="ann", email="ann@example.org", password=PASSWORD, request_id="form"
    )
    assert key
    token = links.make(links.SIGN_UP, key)

    with Transaction() as write:
        user, _page = pending.complete_sign_up(token, write=write)
        assert stored_items() == {}

    assert user.stored == stored_user(user.pk)
    assert user.is_confirmed
