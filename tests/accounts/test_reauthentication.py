"""Pages that ask for the password again, unless it was checked within the last five minutes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client

from accounts.models import User
from accounts.sessions import services as sessions
from accounts.sessions import visitor
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import Page, sign_in, signed_in_as
from tests.requests import Requests
from tests.session_maps import begun, forget_password_check, stored_ids

URL = "/accounts/reauthenticate/"
SESSIONS = "/accounts/sessions/"
EXPORT = "/accounts/export/"
SIGN_IN = "/accounts/login/"


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose owner signed in as `client` more than five minutes ago."""
    user = make_user(username="Ann", email="ann@example.org")
    sign_in(client, user)
    forget_password_check(client)
    return user


@pytest.mark.parametrize("page", [SESSIONS, EXPORT])
def test_a_fresh_sign_in_is_asked_nothing_more(engine: str, client: Client, page: str) -> None:
    sign_in(client, make_user())

    assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", [SESSIONS, EXPORT, f"{SESSIONS}?a=b&c=%26"])
def test_an_older_one_is_asked_for_the_password_and_led_back(
    client: Client, ann: User, page: str
) -> None:
    asked = client.get(page)
    assert (asked.status_code, asked["Location"]) == (302, f"{URL}?next={quote(page)}")
    shown = Page(client.get(asked["Location"]))

    response = client.post(URL, {"password": PASSWORD, "next": shown.value("next")})

    assert (response.status_code, response["Location"]) == (302, page)
    assert client.get(page).status_code == 200


@pytest.mark.parametrize("page", [f"{SESSIONS}end/", f"{SESSIONS}end_others/"])
def test_what_is_posted_then_does_nothing_and_leads_back_to_the_page(
    client: Client, ann: User, page: str
) -> None:
    other = begun(ann)
    before = stored_items()

    response = client.post(page, {"session": other})

    assert (response.status_code, response["Location"]) == (302, f"{URL}?next={SESSIONS}")
    assert stored_items() == before


@pytest.mark.parametrize(
    ("page", "after"),
    [
        (SESSIONS, SESSIONS),
        (EXPORT, EXPORT),
        (f"{SESSIONS}end/", SESSIONS),
        (f"{SESSIONS}end_others/", SESSIONS),
        (URL, URL),
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_who_is_not_signed_in_is_asked_to_sign_in(
    engine: str, client: Client, page: str, after: str, method: str
) -> None:
    response = getattr(client, method)(page)

    assert (response.status_code, response["Location"]) == (302, f"{SIGN_IN}?next={after}")


def test_a_session_ended_elsewhere_is_asked_to_sign_in(client: Client, ann: User) -> None:
    for each in stored_ids(ann):
        sessions.end(User.get(ann.pk), each)

    response = client.post(URL, {"password": PASSWORD, "next": SESSIONS})

    assert response["Location"] == f"{SIGN_IN}?next={URL}"


@pytest.mark.parametrize(
    ("seconds", "fresh"), [(0, True), (290, True), (301, False), (-60, False), (10**9, False)]
)
def test_five_minutes_are_fresh(client: Client, ann: User, seconds: int, fresh: bool) -> None:
    forget_password_check(client, seconds)

    assert (client.get(SESSIONS).status_code == 200) is fresh


def test_the_wrong_password_leads_nowhere(client: Client, ann: User) -> None:
    response = client.post(URL, {"password": "wrong password", "next": EXPORT})

    page = Page(response)
    assert response.status_code == 200
    assert page.errors == {"password": ["This is not your password."]}
    assert page.value("next") == EXPORT
    assert client.get(SESSIONS)["Location"] == f"{URL}?next={SESSIONS}"


@pytest.mark.parametrize(
    "away",
    [
        "//evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\\evil.example",
        "http://[",
    ],
)
@pytest.mark.parametrize("way", ["body", "query"])
def test_next_never_leaves_the_site(client: Client, ann: User, away: str, way: str) -> None:
    more: dict[str, Any] = {"query_params": {"next": away}} if way == "query" else {}
    values = {"password": PASSWORD} | ({"next": away} if way == "body" else {})

    shown = client.get(URL, {"next": away})
    response = client.post(URL, values, **more)

    assert Page(shown).value("next") == ""
    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")


def test_it_takes_a_token(ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.get(ann.pk))

    assert client.post(URL, {"password": PASSWORD}).status_code == 403


def test_the_time_is_kept_in_this_session_alone(client: Client, ann: User) -> None:
    other = Client()
    sign_in(other, ann)
    forget_password_check(other)

    client.post(URL, {"password": PASSWORD})

    assert client.get(SESSIONS).status_code == 200
    assert other.get(SESSIONS).status_code == 302


def test_an_old_hash_made_anew_keeps_who_shows_the_password_signed_in(
    client: Client, ann: User, settings: Any
) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:] + settings.PASSWORD_HASHERS[:1]

    client.post(URL, {"password": PASSWORD})

    assert User.get(ann.pk).password != ann.password
    assert signed_in_as(client) == "Ann"


def test_it_costs_the_session_once_more(client: Client, ann: User, requests_sent: Requests) -> None:
    requests_sent.clear()

    client.post(URL, {"password": PASSWORD})

    tables = [request["TableName"] for request in requests_sent.requests]
    writes = [each for each in requests_sent.operations if each != "GetItem"]
    assert requests_sent.operations[:2] == ["GetItem", "GetItem"]
    assert tables[-1] == tables[0]  # the session
    assert writes[-1] == "PutItem"
    assert visitor.FRESH_SECONDS == 300
