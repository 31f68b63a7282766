"""The profile, the changes of username, email address and password, and the deletion."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from accounts.models import User
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
)
from tests.pages import (
    PROFILE,
    SIGN_IN,
    Page,
    form_values,
    shown_user,
    signed_in_as,
    stored_sessions,
)

pytestmark = pytest.mark.usefixtures("changes_at_once", "ann_is_signed_in")

USERNAME = "/accounts/username/"
EMAIL = "/accounts/email/"
PASSWORD_CHANGE = "/accounts/password_change/"
DELETE = "/accounts/delete/"
SIGN_UP = "/accounts/signup/"

ANOTHER = "quite another password"
SELLER = ["/invoices/seller/", "/invoices/seller/payment/"] if apps.is_installed("invoices") else []
PROFILE_VALUES = {"full_name": "Ann Example", "phone_number": "+1 202-555-0124"}
# By page: a form that is accepted.
ACCEPTED = {
    PROFILE: PROFILE_VALUES,
    USERNAME: {"username": "anna", "password": PASSWORD},
    EMAIL: {"email": "anna@example.org", "password": PASSWORD},
    PASSWORD_CHANGE: {"old_password": PASSWORD, "new_password1": ANOTHER, "new_password2": ANOTHER},
    DELETE: {"password": PASSWORD},
}


def posted(client: Client, url: str, **values: str) -> Any:
    return client.post(url, ACCEPTED[url] | values)


def test_a_form_sent_as_it_is_shown_changes_nothing(client: Client, ann: User) -> None:
    posted(client, PROFILE)
    before = stored_items()

    for url in (PROFILE, USERNAME, EMAIL):
        response = client.post(url, form_values(client, url) | {"password": PASSWORD})
        assert response.status_code == 302
    assert stored_items() == before


@pytest.mark.parametrize(
    ("url", "key", "message"),
    [
        (USERNAME, "userName#anna", "Your username was changed."),
        (EMAIL, "email#anna@example.org", "Your email address was changed."),
    ],
)
def test_the_username_and_the_email_address_can_be_changed(
    client: Client, ann: User, url: str, key: str, message: str
) -> None:
    response = posted(client, url)

    assert (response.status_code, response["Location"]) == (302, PROFILE)
    page = Page(client.get(PROFILE))
    assert page.messages == [message]
    assert key.partition("#")[2] in page.text
    assert guard_owner(key) == ann.pk
    assert_guards_match_users()


def test_deleting_the_account_signs_out(client: Client, ann: User) -> None:
    response = posted(client, DELETE)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert stored_items() == {}
    home = client.get("/")
    assert Page(home).messages == ["Your account was deleted."]
    assert shown_user(home) is None
    assert stored_sessions() == []


@pytest.mark.parametrize("url", [USERNAME, PASSWORD_CHANGE])
def test_a_hash_upgraded_by_a_refused_form_keeps_the_user_signed_in(
    engine: str, client: Client, settings: Any, real_hashers: list[str], url: str
) -> None:
    old = PBKDF2PasswordHasher().encode(PASSWORD, "salt", iterations=1)
    user = make_user(username="ann", password=None, password_hash=old)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    client.force_login(user)
    settings.PASSWORD_HASHERS = real_hashers

    refused = posted(client, url, username="a b", email="no address", new_password1="another")

    assert refused.status_code == 200
    assert User.get(user.pk).password.startswith("argon2")
    assert client.get(PROFILE).status_code == 200


REFUSED = [
    *(
        (url, "old_password" if url == PASSWORD_CHANGE else "password", wrong)
        for url in (USERNAME, EMAIL, DELETE, PASSWORD_CHANGE)
        for wrong in ("wrong password", "")
    ),
    *((USERNAME, "username", text) for text in ("ＢＯＢ", "<script>", "")),
    *((EMAIL, "email", text) for text in ("BOB@example.org", "no address", "")),
    (PROFILE, "full_name", "A" * 151),
    (PROFILE, "phone_number", "12345"),
    (PROFILE, "full_name", "\u202eltd"),
    (PASSWORD_CHANGE, "new_password2", "not the same password"),
]


def test_a_refused_value_is_shown_with_an_error_at_its_field_and_nothing_changes(
    client: Client, ann: User
) -> None:
    make_user(username="Bob", email="bob@example.org")
    before = stored_items()

    for url, field, value in REFUSED:
        response = posted(client, url, **{field: value})

        assert response.status_code == 200
        page = Page(response)
        assert page.errors.keys() == {field}
        assert page.autofocused() == [field]
        shown = "" if page.fields[field].get("type") == "password" else value
        assert page.value(field) == shown
        assert PASSWORD not in response.content.decode()
    for weak in ("short1!", "password1", "8274619305", "Ann@Example.org"):
        response = posted(client, PASSWORD_CHANGE, new_password1=weak, new_password2=weak)
        assert Page(response).errors.keys() == {"new_password1"}
    assert stored_items() == before
    assert signed_in_as(client) == "ann"


FORMS = [SIGN_UP, SIGN_IN, PROFILE, *SELLER]


#: What browsers and password managers fill in.
AUTOCOMPLETE = {
    "username": "username",
    "email": "email",
    "full_name": "name",
    "phone_number": "tel",
    "password": "current-password",
    "old_password": "current-password",
    "password1": "new-password",
    "password2": "new-password",
    "new_password1": "new-password",
    "new_password2": "new-password",
    "name": "organization",
    "address": "street-address",
}


@pytest.mark.parametrize("url", [*FORMS, USERNAME, EMAIL, PASSWORD_CHANGE, DELETE])
def test_every_field_has_a_label_and_says_what_browsers_fill_in_and_errors_take_the_focus(
    client: Client, ann: User, url: str
) -> None:
    visitor = Client() if url in {SIGN_UP, SIGN_IN} else client

    page = Page(visitor.get(url))

    seen = {name: attrs for name, attrs in page.fields.items() if attrs.get("type") != "hidden"}
    assert {attrs["id"] for attrs in seen.values()} <= page.labels
    typed = {name: attrs for name, attrs in seen.items() if attrs.get("type") != "checkbox"}
    for name, attrs in typed.items():
        assert attrs.get("autocomplete") == AUTOCOMPLETE.get(name), name
        assert (attrs.get("type") == "password") is ("password" in name), name

    # In the profile, nothing is required.
    values = dict.fromkeys(typed, "\x07") if url == PROFILE or "/seller/" in url else {}
    page = Page(visitor.post(url, values))

    first = next(name for name in typed if name in page.errors)
    assert page.autofocused() == [first]
    assert page.fields[first]["aria-invalid"] == "true"
    assert f"id_{first}_error" in page.fields[first]["aria-describedby"]


HOSTILE = """<script>alert(1)</script>"'&lt;{{ x }}{% y %}"""


def test_hostile_texts_are_escaped_on_every_page(client: Client, ann: User) -> None:
    client.post(PROFILE, {"full_name": HOSTILE})
    posted(client, EMAIL, email="a'&b@example.org")

    for url in ["/", *ACCEPTED]:
        response = client.get(url)
        assert "<script>" not in response.content.decode()
        assert "script" not in Page(response).tags
    assert User.get(ann.pk).full_name == HOSTILE
    assert Page(client.get(PROFILE)).value("full_name") == HOSTILE
