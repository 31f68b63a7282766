"""Signing in and out, what a session survives, and what all of it costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import (
    MD5PasswordHasher,
    PBKDF2PasswordHasher,
    identify_hasher,
)
from django.test import Client

from accounts.models import User
from accounts.services import change_password, deactivate, delete
from project import settings as project_settings
from tests.factories import PASSWORD, make_user, stored_items, stored_user
from tests.pages import Page, meanwhile, shown_user, sign_in, signed_in_as, stored_sessions
from tests.requests import Requests

URL = "/accounts/login/"
PROFILE = "/accounts/profile/"
PAGES = [
    PROFILE,
    "/accounts/username/",
    "/accounts/email/",
    "/accounts/password_change/",
    "/accounts/password_change/done/",
    "/accounts/delete/",
]


def attempt(client: Client, username: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post(URL, {"username": username, "password": password} | more)


@pytest.fixture
def ann(engine: str) -> User:
    return make_user(username="Ann", email="Ann@Example.org")


# Who --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "who",
    [
        "Ann",
        "ann",
        "ＡＮＮ",
        "ANN",
        " Ann ",
        "Ann@Example.org",
        "ann@example.ORG",
        "ANN@EXAMPLE.org",
    ],
)
def test_one_signs_in_by_name_or_address_in_any_spelling(
    client: Client, ann: User, who: str
) -> None:
    response = attempt(client, who)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert signed_in_as(client) == "Ann"


def test_an_internationalised_address_signs_in_by_its_punycode(engine: str, client: Client) -> None:
    make_user(username="ann", email="ann@bücher.example")

    attempt(client, "ANN@xn--bcher-kva.example")

    assert signed_in_as(client) == "ann"


def test_a_sign_in_notes_its_time_and_leaves_the_version_alone(client: Client, ann: User) -> None:
    attempt(client, "ann")

    read = User.get(ann.pk)
    assert read.last_login is not None
    assert read.version == ann.version


def test_a_sign_in_draws_a_new_session_key(client: Client, ann: User) -> None:
    client.cookies["sessionid"] = "a" * 32

    attempt(client, "ann")

    assert client.cookies["sessionid"].value != "a" * 32
    assert len(stored_sessions()) == 1


def test_a_sign_in_as_another_ends_the_session_before(client: Client, ann: User) -> None:
    sign_in(client, make_user())
    before = client.cookies["sessionid"].value

    attempt(client, "ann")

    assert signed_in_as(client) == "Ann"
    assert client.cookies["sessionid"].value != before
    assert len(stored_sessions()) == 1


# Refusals tell nothing --------------------------------------------------------------------------


def no_change(_ann: User) -> None:
    return None


REFUSALS = [
    pytest.param("ann", "wrong password", no_change, id="wrong password"),
    pytest.param("ann@example.org", "wrong password", no_change, id="wrong, by address"),
    pytest.param("nobody", PASSWORD, no_change, id="unknown"),
    pytest.param("nobody@example.org", PASSWORD, no_change, id="unknown address"),
    pytest.param("ann", PASSWORD, deactivate, id="deactivated"),
    pytest.param("ann", "wrong password", deactivate, id="deactivated, wrong password"),
    pytest.param("ann", PASSWORD, delete, id="deleted"),
    pytest.param("ann", PASSWORD, lambda ann: ann.set_unusable_password() or ann.save(), id="none"),
]


@pytest.fixture
def hashings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that are hashed from here on (the hasher is Django's, and the preferred)."""
    hashed = []
    encode = MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    return hashed


@pytest.mark.parametrize(("who", "password", "change"), REFUSALS)
def test_every_refusal_says_the_same_and_takes_the_same_work(
    client: Client,
    ann: User,
    requests_sent: Requests,
    hashings: list[str],
    who: str,
    password: str,
    change: Callable[[User], Any],
) -> None:
    change(ann)
    before = stored_items()
    requests_sent.clear()
    hashings.clear()

    response = attempt(client, who, password)

    assert requests_sent.apart() == (["GetItem", "GetItem"], ["PutItem", "PutItem"])
    assert len(hashings) == 1
    assert response.status_code == 200
    page = Page(response)
    assert page.errors == {
        "": ["No account has this username or email address with this password."]
    }
    assert page.value("username") == who
    assert "sessionid" not in response.cookies
    assert stored_items() == before
    assert stored_sessions() == []


@pytest.mark.parametrize(
    "who",
    [
        "8ec436a8-97e6-4e72-aec2-b47668e96a94",
        "userName#ann",
        "email#ann@example.org",
        "@",
        "a@b@c",
        "x" * 254,
        "𠮷" * 254,
        "ann\u202e",
        "'; DROP TABLE users; --",
    ],
)
def test_what_goes_by_no_name_is_refused_alike(client: Client, ann: User, who: str) -> None:
    response = attempt(client, who)

    assert response.status_code == 200
    assert Page(response).errors.keys() == {""}
    assert stored_sessions() == []


def test_a_primary_key_signs_nobody_in(client: Client, ann: User) -> None:
    assert attempt(client, ann.pk).status_code == 200
    assert stored_sessions() == []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"username": ""}, "username"),
        ({"username": "a\0b"}, "username"),
        ({"username": "x" * 255}, "username"),
        ({"username": "\u0300\u0315" * 100_000}, "username"),
        ({"password": ""}, "password"),
        ({"password": "a\0b"}, "password"),
    ],
)
def test_what_is_no_name_or_password_is_refused_at_its_field(
    client: Client, ann: User, values: dict[str, str], field: str
) -> None:
    response = client.post(URL, {"username": "ann", "password": PASSWORD} | values)

    assert response.status_code == 200
    page = Page(response)
    assert page.errors[field]
    assert page.autofocused() == [field]
    assert stored_sessions() == []


def test_bytes_that_are_no_text_sign_nobody_in(client: Client, ann: User) -> None:
    body = "username=ann%ED%A0%80&password=%ED%A0%80"

    response = client.post(URL, body, "application/x-www-form-urlencoded")

    assert response.status_code == 200
    assert stored_sessions() == []


# Hashes -----------------------------------------------------------------------------------------


def old_hash() -> str:
    return PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)


def test_argon2_comes_first() -> None:
    first = project_settings.PASSWORD_HASHERS[0]

    assert first == "accounts.passwords.Argon2idHasher"


@pytest.mark.parametrize("old", [old_hash(), MD5PasswordHasher().encode(PASSWORD, "salt")])
def test_an_old_hash_is_made_anew_at_sign_in(
    engine: str, client: Client, settings: Any, old: str
) -> None:
    md5 = "django.contrib.auth.hashers.MD5PasswordHasher"
    settings.PASSWORD_HASHERS = [*project_settings.PASSWORD_HASHERS, md5]
    user = make_user(username="ann", password=None, password_hash=old)

    attempt(client, "ann")

    read = User.get(user.pk)
    assert identify_hasher(read.password).algorithm == "argon2"
    assert read.check_password(PASSWORD)
    assert read.version == user.version
    assert signed_in_as(client) == "ann"


def test_a_wrong_password_leaves_an_old_hash_as_it_is(engine: str, client: Client) -> None:
    user = make_user(username="ann", password=None, password_hash=old_hash())

    attempt(client, "ann", "wrong password")

    assert User.get(user.pk).password == old_hash()


def test_an_old_hash_does_not_come_back_over_a_password_changed_meanwhile(
    engine: str, client: Client
) -> None:
    user = make_user(username="ann", password=None, password_hash=old_hash())

    def change() -> None:
        change_password(User.get(user.pk), "another good password")

    with meanwhile(engine, "UpdateItem", change):
        attempt(client, "ann")

    read = User.get(user.pk)
    assert read.check_password("another good password")
    assert not read.check_password(PASSWORD)
    assert signed_in_as(client) is None


def test_a_hash_made_anew_does_not_bring_a_deleted_account_back(
    engine: str, client: Client
) -> None:
    make_user(username="ann", password=None, password_hash=old_hash())

    with meanwhile(engine, "UpdateItem", lambda: delete(User.find("ann"))):
        response = attempt(client, "ann")

    assert response.status_code == 200
    assert stored_items() == {}
    assert stored_sessions() == []


# Meanwhile --------------------------------------------------------------------------------------


def test_an_account_deleted_after_the_password_check_is_told_and_leaves_nothing(
    engine: str, client: Client, ann: User
) -> None:
    with meanwhile(engine, "UpdateItem", lambda: delete(User.get(ann.pk))):
        response = attempt(client, "ann")

    assert response.status_code == 200
    assert Page(response).errors == {"": ["This account was deleted meanwhile."]}
    assert shown_user(response) is None
    assert stored_items() == {}
    assert stored_sessions() == []


def test_an_account_deactivated_after_the_password_check_is_signed_in_to_no_page(
    engine: str, client: Client, ann: User
) -> None:
    with meanwhile(engine, "UpdateItem", lambda: deactivate(User.get(ann.pk))):
        attempt(client, "ann")

    assert signed_in_as(client) is None
    assert User.get(ann.pk).is_active is False


# Where to go ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "away",
    [
        "//evil.example",
        "///evil.example",
        "////evil.example/",
        "https://evil.example",
        "http://evil.example/accounts/profile/",
        "https:evil.example",
        "https:///evil.example",
        "//testserver@evil.example",
        "http://testserver@evil.example/",
        "http://testserver.evil.example/",
        "http://testserver:81/",
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "\\\\evil.example",
        "/\\evil.example",
        "\\/evil.example",
        "http:\\\\evil.example",
        "\x08//evil.example",
        "\t//evil.example",
        "ftp://testserver/",
        "http://[",
        "http://2001:cdba::evil",
    ],
)
@pytest.mark.parametrize("way", ["body", "query"])
def test_next_never_leaves_the_site(client: Client, ann: User, away: str, way: str) -> None:
    data = {"username": "ann", "password": PASSWORD}
    if way == "body":
        response = client.post(URL, data | {"next": away})
    else:
        response = client.post(URL, data, query_params={"next": away})

    assert (response.status_code, response["Location"]) == (302, PROFILE)


@pytest.mark.parametrize("host", ["testserver", "www.example.org", "www.example.org:8443"])
def test_next_names_the_host_that_was_asked_or_none(client: Client, ann: User, host: str) -> None:
    data = {"username": "ann", "password": PASSWORD}

    there = client.post(
        URL, data | {"next": f"http://{host}/accounts/email/"}, headers={"host": host}
    )
    elsewhere = client.post(URL, data | {"next": "http://x.example/"}, headers={"host": host})

    assert there["Location"] == f"http://{host}/accounts/email/"
    assert elsewhere["Location"] == PROFILE


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_asks_for_a_sign_in_is_shown_after_it(
    client: Client, ann: User, page: str
) -> None:
    asked = client.get(page)
    assert (asked.status_code, asked["Location"]) == (302, f"{URL}?next={page}")

    shown = Page(client.get(asked["Location"]))
    response = attempt(client, "ann", next=shown.value("next"))

    assert (response.status_code, response["Location"]) == (302, page)


def test_a_wrong_password_keeps_where_to_go(client: Client, ann: User) -> None:
    response = attempt(client, "ann", "wrong password", next="/accounts/email/")

    assert Page(response).value("next") == "/accounts/email/"


# Sessions end -----------------------------------------------------------------------------------


def test_another_password_ends_the_other_sessions_and_keeps_this_one(
    client: Client, ann: User
) -> None:
    other = Client()
    sign_in(client, ann)
    sign_in(other, ann)

    client.post(
        "/accounts/password_change/",
        {
            "old_password": PASSWORD,
            "new_password1": "quite another",
            "new_password2": "quite another",
        },
    )

    assert signed_in_as(client) == "Ann"
    assert other.get(PROFILE).status_code == 302
    assert signed_in_as(other) is None


@pytest.mark.parametrize("end", [deactivate, delete])
@pytest.mark.parametrize("page", PAGES)
def test_a_session_of_an_account_that_is_gone_is_anonymous(
    client: Client, ann: User, end: Callable[[User], None], page: str
) -> None:
    sign_in(client, ann)
    end(User.get(ann.pk))
    before = stored_items()

    for response in (client.get(page), client.post(page, {"password": PASSWORD})):
        assert (response.status_code, response["Location"]) == (302, f"{URL}?next={page}")
    assert client.get("/").status_code == 200
    assert client.get("/accounts/signup/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert stored_items() == before


def test_a_new_account_of_the_same_name_does_not_inherit_a_session(
    client: Client, ann: User
) -> None:
    sign_in(client, ann)
    delete(User.get(ann.pk))
    make_user(username="Ann", email="Ann@Example.org")

    assert signed_in_as(client) is None


@pytest.mark.parametrize("key", ["", "x", "a" * 32, "a" * 5000, "../../etc", "ü", "%00", "a b;c"])
def test_a_session_cookie_that_is_none_is_an_anonymous_visitor(
    engine: str, client: Client, key: str
) -> None:
    client.cookies["sessionid"] = key

    assert client.get("/").status_code == 200
    assert client.get(PROFILE).status_code == 302
    assert stored_sessions() == []


def test_signing_out_takes_a_post_and_ends_the_session(client: Client, ann: User) -> None:
    sign_in(client, ann)
    key = client.cookies["sessionid"].value

    assert client.get("/accounts/logout/").status_code == 405
    assert signed_in_as(client) == "Ann"
    response = client.post("/accounts/logout/")

    assert (response.status_code, response["Location"]) == (302, "/")
    assert stored_sessions() == []
    client.cookies["sessionid"] = key
    assert signed_in_as(client) is None


def test_signing_out_without_its_token_is_refused(ann: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)

    assert client.post("/accounts/logout/").status_code == 403
    assert signed_in_as(client) == "Ann"


def test_signing_in_without_its_token_is_refused_with_advice(ann: User) -> None:
    response = attempt(Client(enforce_csrf_checks=True), "ann")

    assert response.status_code == 403
    assert "Reload the page" in Page(response).text
    assert stored_sessions() == []


@pytest.mark.parametrize("who", ["ann", "ANN", "Ann@Example.org"])
def test_the_form_sent_again_with_the_token_of_before_signing_in_goes_to_the_profile(
    ann: User, who: str
) -> None:
    client = Client(enforce_csrf_checks=True)
    token = Page(client.get(URL)).value("csrfmiddlewaretoken")
    attempt(client, "ann", csrfmiddlewaretoken=token)

    response = attempt(client, who, csrfmiddlewaretoken=token)

    assert (response.status_code, response["Location"]) == (302, "/accounts/profile/")


def test_a_form_that_names_another_than_who_signed_in_meanwhile_is_refused_with_advice(
    ann: User,
) -> None:
    make_user(username="bob", email="bob@example.org")
    client = Client(enforce_csrf_checks=True)
    token = Page(client.get(URL)).value("csrfmiddlewaretoken")
    attempt(client, "ann", csrfmiddlewaretoken=token)

    for other in ("bob", "bob@example.org", ann.pk, "", "x" * 3_000):
        response = attempt(client, other, csrfmiddlewaretoken=token)
        assert response.status_code == 403

    assert signed_in_as(client) == "Ann"


# Budgets ----------------------------------------------------------------------------------------


def test_signing_in_costs_the_search_one_update_and_one_session(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    attempt(client, "ann")

    operations, of_limits = requests_sent.apart()
    assert operations == ["GetItem", "GetItem", "UpdateItem", "PutItem"]
    assert of_limits == ["PutItem", "PutItem", "DeleteItem", "PutItem", "UpdateItem"]


def test_signing_in_with_an_old_cookie_reads_one_session_at_most(
    client: Client, ann: User, requests_sent: Requests
) -> None:
    client.cookies["sessionid"] = "a" * 32

    attempt(client, "ann")

    operations, _of_limits = requests_sent.apart()
    assert sorted(operations) == ["GetItem"] * 3 + ["PutItem", "UpdateItem"]


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
@pytest.mark.parametrize("page", ["/", *PAGES])
def test_a_page_for_who_is_signed_in_costs_two_requests_and_two_units(
    client: Client, ann: User, requests_sent: Requests, page: str
) -> None:
    sign_in(client, ann)
    requests_sent.clear()

    assert client.get(page).status_code == 200

    assert requests_sent.operations == ["GetItem", "GetItem"]
    assert requests_sent.units == 2
    assert all(request["ConsistentRead"] for request in requests_sent.requests)


@pytest.mark.parametrize("page", ["/", URL, "/accounts/signup/", *PAGES, "/nothing/here/"])
def test_a_page_for_a_new_visitor_costs_nothing(
    engine: str, client: Client, requests_sent: Requests, page: str
) -> None:
    client.get(page)

    assert requests_sent.operations == []


def test_no_page_scans_or_queries(client: Client, ann: User, requests_sent: Requests) -> None:
    sign_in(client, ann)
    for page in ["/", URL, *PAGES]:
        client.get(page)
    client.post(PROFILE, {"full_name": "Ann Example"})
    client.post("/accounts/username/", {"username": "ann2", "password": PASSWORD})
    client.post("/accounts/email/", {"email": "ann2@example.org", "password": PASSWORD})
    client.post("/accounts/delete/", {"password": PASSWORD})

    single = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}
    assert set(requests_sent.operations) == single
    assert stored_user(ann.pk) is None
