"""The pages of who is signed in: profile, changes of name, address and password, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from accounts.models import User
from accounts.services import change_password, delete, edit_profile
from project import settings as project_settings
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.pages import (
    Page,
    form_values,
    meanwhile,
    shown_user,
    sign_in,
    signed_in_as,
    stored_sessions,
)

PROFILE = "/accounts/profile/"
USERNAME = "/accounts/username/"
EMAIL = "/accounts/email/"
PASSWORD_CHANGE = "/accounts/password_change/"
DELETE = "/accounts/delete/"
SIGN_UP = "/accounts/signup/"
SIGN_IN = "/accounts/login/"

ANOTHER = "quite another password"
PROFILE_VALUES = {
    "full_name": "Ann Example",
    "phone_number": "+1 202-555-0124",
    "business_name": "Ann Ltd",
    "business_address": "1 High Street\nLondon",
    "vat_id": "GB 123",
}
NEW_PASSWORD = {
    "old_password": PASSWORD,
    "new_password1": ANOTHER,
    "new_password2": ANOTHER,
}
# A form that would be accepted, for each page.
ACCEPTED = {
    PROFILE: PROFILE_VALUES,
    USERNAME: {"username": "anna", "password": PASSWORD},
    EMAIL: {"email": "anna@example.org", "password": PASSWORD},
    PASSWORD_CHANGE: NEW_PASSWORD,
    DELETE: {"password": PASSWORD},
}
CONFIRMED = [(USERNAME, "password"), (EMAIL, "password"), (DELETE, "password")]
CONFIRMED += [(PASSWORD_CHANGE, "old_password")]


@pytest.fixture
def ann(engine: str, client: Client) -> User:
    """An account whose owner is signed in as `client`."""
    user = make_user(username="Ann", email="Ann@Example.org")
    sign_in(client, user)
    return user


def posted(client: Client, url: str, **values: str) -> Any:
    return client.post(url, ACCEPTED[url] | values)


# What goes well ---------------------------------------------------------------------------------


def test_the_profile_is_edited_and_shown(client: Client, ann: User) -> None:
    response = posted(client, PROFILE)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    read = User.get(ann.pk)
    assert read.full_name == "Ann Example"
    assert read.phone_number == "+12025550124"
    assert read.business_address == "1 High Street\nLondon"
    page = Page(client.get(PROFILE))
    assert page.messages == ["Your details were saved."]
    assert {name: page.value(name) for name in PROFILE_VALUES} == PROFILE_VALUES


def test_the_profile_sent_as_it_is_shown_changes_nothing(client: Client, ann: User) -> None:
    posted(client, PROFILE)
    before = stored_user(ann.pk)

    response = client.post(PROFILE, form_values(client, PROFILE))

    assert response.status_code == 302
    assert stored_user(ann.pk) == before


def test_an_emptied_detail_is_gone(client: Client, ann: User) -> None:
    posted(client, PROFILE)

    client.post(PROFILE, dict.fromkeys(PROFILE_VALUES, ""))

    item = stored_user(ann.pk)
    assert item is not None
    assert item.keys() & {"fullName", "phoneNumber", "businessAddress", "vatId"} == set()


def test_the_user_name_is_changed(client: Client, ann: User) -> None:
    response = posted(client, USERNAME)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    assert Page(client.get(PROFILE)).messages == ["Your username was changed."]
    assert guard_owner("userName#anna") == ann.pk
    assert signed_in_as(client) == "anna"
    assert_guards_match_users()


def test_the_address_is_changed(client: Client, ann: User) -> None:
    response = posted(client, EMAIL)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == ["Your email address was changed."]
    assert "anna@example.org" in page.text
    assert guard_owner("email#anna@example.org") == ann.pk
    assert_guards_match_users()


def test_only_the_case_of_the_address_is_changed(client: Client, ann: User) -> None:
    response = posted(client, EMAIL, email="ANN@example.org")

    assert response.status_code == 302
    assert User.get(ann.pk).email == "ANN@example.org"
    assert_guards_match_users()


@pytest.mark.parametrize(("url", "field"), [(USERNAME, "username"), (EMAIL, "email")])
def test_the_form_holds_what_is_so_now_and_sent_so_changes_nothing(
    client: Client, ann: User, url: str, field: str
) -> None:
    before = stored_items()

    response = client.post(url, form_values(client, url, password=PASSWORD))

    assert response.status_code == 302
    assert stored_items() == before


def test_the_password_is_changed(client: Client, ann: User) -> None:
    response = posted(client, PASSWORD_CHANGE)

    assert response["Location"] == "/accounts/password_change/done/"
    assert client.get(response["Location"]).status_code == 200
    assert User.get(ann.pk).check_password(ANOTHER)


def test_the_account_is_deleted_and_its_owner_signed_out(client: Client, ann: User) -> None:
    response = posted(client, DELETE)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert stored_items() == {}
    home = client.get("/")
    assert Page(home).messages == ["Your account was deleted."]
    assert shown_user(home) is None
    assert stored_sessions() == []


@pytest.mark.parametrize("url", [USERNAME, EMAIL, PASSWORD_CHANGE])
def test_a_hash_made_anew_by_a_change_keeps_its_owner_signed_in(
    engine: str, client: Client, settings: Any, url: str
) -> None:
    old = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
    user = make_user(username="ann", password=None, password_hash=old)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    client.force_login(user)
    settings.PASSWORD_HASHERS = project_settings.PASSWORD_HASHERS

    refused = posted(client, url, username="a b", email="no address", new_password1="another")

    assert refused.status_code == 200
    assert User.get(user.pk).password.startswith("argon2")
    assert client.get(PROFILE).status_code == 200


# What is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(("url", "field"), CONFIRMED)
@pytest.mark.parametrize("wrong", ["wrong password", "", "a\0b"])
def test_a_wrong_password_changes_nothing(
    client: Client, ann: User, url: str, field: str, wrong: str
) -> None:
    before = stored_items()

    response = posted(client, url, **{field: wrong})

    assert response.status_code == 200
    page = Page(response)
    assert page.errors.keys() == {field}
    assert page.autofocused() == [field]
    assert stored_items() == before
    assert signed_in_as(client) == "Ann"


@pytest.mark.parametrize(
    ("url", "field", "value"),
    [
        (USERNAME, "username", "bob"),
        (USERNAME, "username", "ＢＯＢ"),
        (USERNAME, "username", "a b"),
        (USERNAME, "username", "<script>"),
        (USERNAME, "username", ""),
        (USERNAME, "username", "x" * 151),
        (EMAIL, "email", "BOB@example.org"),
        (EMAIL, "email", "no address"),
        (EMAIL, "email", ""),
        (EMAIL, "email", "a\0b@example.org"),
        (PROFILE, "full_name", "A" * 151),
        (PROFILE, "full_name", "A\x07"),
        (PROFILE, "full_name", "A\0"),
        (PROFILE, "phone_number", "12345"),
        (PROFILE, "business_name", "\u202eltd"),
        (PROFILE, "business_address", "x" * 501),
        (PROFILE, "business_address", "a\x1bb"),
        (PROFILE, "vat_id", "1" * 33),
        (PASSWORD_CHANGE, "new_password2", "not the same password"),
    ],
)
def test_a_refused_value_is_told_at_its_field_and_shown_as_typed(
    client: Client, ann: User, url: str, field: str, value: str
) -> None:
    make_user(username="Bob", email="bob@example.org")
    before = stored_items()

    response = posted(client, url, **{field: value})

    assert response.status_code == 200
    page = Page(response)
    assert page.errors.keys() == {field}
    assert page.autofocused() == [field]
    shown = "" if page.fields[field].get("type") == "password" else value
    assert page.value(field) == shown
    assert PASSWORD not in response.content.decode()
    assert stored_items() == before


@pytest.mark.parametrize("new", ["short1!", "password1", "8274619305", "Ann@Example.org"])
def test_a_weak_new_password_is_refused(client: Client, ann: User, new: str) -> None:
    before = stored_items()

    response = posted(client, PASSWORD_CHANGE, new_password1=new, new_password2=new)

    assert response.status_code == 200
    assert Page(response).errors.keys() == {"new_password2"}
    assert stored_items() == before


# What changes meanwhile -------------------------------------------------------------------------


def edited_elsewhere() -> None:
    edit_profile(User.find("ann"), full_name="Elsewhere")


def password_changed_elsewhere() -> None:
    change_password(User.find("ann"), "changed elsewhere")


WRITE = {
    PROFILE: "UpdateItem",
    USERNAME: "TransactWriteItems",
    EMAIL: "TransactWriteItems",
    PASSWORD_CHANGE: "UpdateItem",
    DELETE: "TransactWriteItems",
}


@pytest.mark.parametrize("url", WRITE)
@pytest.mark.parametrize("change", [edited_elsewhere, password_changed_elsewhere])
def test_an_account_that_changed_meanwhile_is_told_and_not_half_written(
    engine: str, client: Client, ann: User, url: str, change: Callable[[], None]
) -> None:
    after: list[Any] = []

    def meddle() -> None:
        change()
        after.append(stored_items())

    with meanwhile(engine, WRITE[url], meddle):
        response = posted(client, url)

    assert response.status_code == 200
    page = Page(response)
    (told,) = page.errors[""]
    assert "changed meanwhile" in told
    for field, value in ACCEPTED[url].items():
        if page.fields[field].get("type") != "password":
            assert page.value(field) == value
    assert stored_items() == after[0]
    assert_guards_match_users()


@pytest.mark.parametrize("url", [PROFILE, USERNAME, EMAIL, PASSWORD_CHANGE])
def test_an_account_that_was_deleted_meanwhile_is_told_and_does_not_come_back(
    engine: str, client: Client, ann: User, url: str
) -> None:
    with meanwhile(engine, WRITE[url], lambda: delete(User.find("ann"))):
        response = posted(client, url)

    assert response.status_code == 200
    (told,) = Page(response).errors[""]
    assert "deleted meanwhile" in told
    assert stored_items() == {}
    assert client.get(url).status_code == 302


def test_an_account_that_was_deleted_meanwhile_is_deleted(
    engine: str, client: Client, ann: User
) -> None:
    with meanwhile(engine, WRITE[DELETE], lambda: delete(User.find("ann"))):
        response = posted(client, DELETE)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert stored_items() == {}


# How the pages are made -------------------------------------------------------------------------


AUTOCOMPLETE = {
    SIGN_UP: {
        "username": "username",
        "email": "email",
        "full_name": "name",
        "phone_number": "tel",
        "password1": "new-password",
        "password2": "new-password",
    },
    SIGN_IN: {"username": "username", "password": "current-password"},
    PROFILE: {
        "full_name": "name",
        "phone_number": "tel",
        "business_name": "organization",
        "business_address": "street-address",
        "vat_id": "off",
    },
    USERNAME: {"username": "username", "password": "current-password"},
    EMAIL: {"email": "email", "password": "current-password"},
    PASSWORD_CHANGE: {
        "old_password": "current-password",
        "new_password1": "new-password",
        "new_password2": "new-password",
    },
    DELETE: {"password": "current-password"},
}


@pytest.mark.parametrize("url", AUTOCOMPLETE)
def test_every_field_has_a_label_and_tells_the_browser_what_it_is(
    client: Client, ann: User, url: str
) -> None:
    visitor = Client() if url in {SIGN_UP, SIGN_IN} else client

    page = Page(visitor.get(url))

    seen = {name: attrs for name, attrs in page.fields.items() if attrs.get("type") != "hidden"}
    typed = {name: attrs for name, attrs in seen.items() if attrs.get("type") != "checkbox"}
    assert {name: attrs["autocomplete"] for name, attrs in typed.items()} == AUTOCOMPLETE[url]
    assert {attrs["id"] for attrs in seen.values()} <= page.labels


@pytest.mark.parametrize("url", AUTOCOMPLETE)
def test_an_empty_form_puts_the_cursor_at_its_first_error(
    client: Client, ann: User, url: str
) -> None:
    visitor = Client() if url in {SIGN_UP, SIGN_IN} else client
    values = {"full_name": "\x07", "vat_id": "\x07"} if url == PROFILE else {}

    page = Page(visitor.post(url, values))

    first = next(name for name in AUTOCOMPLETE[url] if name in page.errors)
    assert page.autofocused() == [first]
    assert page.fields[first]["aria-invalid"] == "true"
    assert f"id_{first}_error" in page.fields[first]["aria-describedby"]


HOSTILE = """<script>alert(1)</script>"'&lt;{{ x }}{% y %}"""


def test_hostile_texts_are_text_on_every_page(client: Client, ann: User) -> None:
    values = dict.fromkeys(["full_name", "business_name", "business_address"], HOSTILE)
    client.post(PROFILE, values)
    posted(client, EMAIL, email="<b>'@example.org")
    posted(client, EMAIL, email="a'&b@example.org")

    for url in ["/", *ACCEPTED]:
        response = client.get(url)
        assert "<script" not in response.content.decode()
        assert "script" not in Page(response).tags
    assert User.get(ann.pk).full_name == HOSTILE
    assert Page(client.get(PROFILE)).value("full_name") == HOSTILE
    assert HOSTILE in Page(client.get("/")).text


@pytest.mark.parametrize("url", [SIGN_UP, SIGN_IN, USERNAME, EMAIL])
def test_hostile_texts_are_text_in_a_refused_form(client: Client, ann: User, url: str) -> None:
    visitor = Client() if url in {SIGN_UP, SIGN_IN} else client
    names = ["username", "email", "full_name", "phone_number", "request_id", "next"]

    response = visitor.post(url, dict.fromkeys(names, HOSTILE))

    assert response.status_code == 200
    assert "<script" not in response.content.decode()
    field = "email" if url == EMAIL else "username"
    assert Page(response).value(field) == HOSTILE


@pytest.mark.parametrize("url", [*ACCEPTED, "/accounts/password_change/done/"])
def test_every_page_asks_for_a_sign_in_and_comes_back(
    engine: str, client: Client, url: str
) -> None:
    for response in (client.get(url), client.post(url, {"password": PASSWORD})):
        assert (response.status_code, response["Location"]) == (302, f"{SIGN_IN}?next={url}")


@pytest.mark.parametrize("url", ACCEPTED)
def test_a_form_without_its_token_changes_nothing(ann: User, url: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(ann)
    before = stored_items()

    response = posted(client, url)

    assert response.status_code == 403
    assert "Reload the page" in Page(response).text
    assert stored_items() == before


@pytest.mark.parametrize("url", ACCEPTED)
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "BREW"])
def test_no_other_method_changes_anything(client: Client, ann: User, url: str, method: str) -> None:
    posted(client, PROFILE)
    before = stored_items()

    response = client.generic(method, url, "username=anna&email=anna@example.org")

    assert response.status_code == (200 if method in {"OPTIONS", "HEAD"} else 405)
    assert stored_items() == before


@pytest.mark.parametrize("url", ["/nothing/", "/accounts/", "/accounts/profile/x/", "/%ED%A0%80"])
def test_what_is_not_there_is_a_page_that_says_so(client: Client, ann: User, url: str) -> None:
    response = client.get(url)

    assert response.status_code == 404
    assert "There is no page at this address." in Page(response).text


@pytest.mark.parametrize("url", [SIGN_UP, SIGN_IN, *ACCEPTED])
def test_no_page_with_a_form_is_kept_by_a_browser_or_framed(
    client: Client, ann: User, url: str
) -> None:
    response = (Client() if url in {SIGN_UP, SIGN_IN} else client).get(url)

    assert response["X-Frame-Options"] == "DENY"
    assert "Cookie" in response["Vary"]
