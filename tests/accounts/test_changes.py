"""Changing and deleting an account: guards, costs, stale copies, damaged items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.emails.change import cancel_change, request_change
from accounts.exceptions import AccountError, EmailTaken, StaleUser, UsernameTaken
from accounts.models import User
from accounts.services import (
    activate,
    change,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from dynamo._internal.client.sending import send
from tests.emailchanges import again, refusal_of
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    changes_of,
    guard_owner,
    make_user,
    set_stored,
    stored_items,
    stored_user,
)
from tests.mailbox import the_mail
from tests.pages import signed_in_as
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")

Change = Callable[[User], object]

#: By operation: a change that no account of these tests has already.
CHANGES: dict[str, Change] = {
    "change_email": lambda user: change_email(user, "mine@example.org"),
    "change_email's spelling": lambda user: change_email(user, user.email.upper()),
    "change_username": lambda user: change_username(user, "newname"),
    "request_change": lambda user: request_change(user, "mine@example.org"),
    "edit_profile": lambda user: edit_profile(user, full_name="Mine"),
    "change_password": lambda user: change_password(user, "another good password"),
    "deactivate": deactivate,
    "sessions.begin": sessions.begin,
}


def each(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("change", [CHANGES[name] for name in names], ids=names)


@pytest.mark.parametrize(
    ("change", "attribute", "old", "new"),
    [
        (change_email, "email", "old@example.org", "New@Example.org"),
        (change_username, "userName", "old", "New"),
    ],
)
def test_a_new_value_takes_its_guard_and_frees_the_old_one(
    change: Callable[[User, str], None], attribute: str, old: str, new: str
) -> None:
    user = make_user(**{attribute.lower(): old})

    change(user, new)

    assert getattr(again(user), attribute.lower()) == getattr(user, attribute.lower()) == new
    assert guard_owner(f"{attribute}#{new.lower()}") == user.pk
    assert guard_owner(f"{attribute}#{old}") is None


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.fault_of("ministack", "counts no units of an index")
@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "new@example.org"),
        lambda user: change_username(user, "newname"),
        delete,
    ],
)
def test_a_change_of_a_unique_value_costs_one_request_and_eight_units(
    change: Change, requests_sent: Requests
) -> None:
    user = make_user()
    requests_sent.clear()

    change(user)

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == 8


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_another_spelling_costs_one_unit_and_does_not_touch_the_guards(
    requests_sent: Requests,
) -> None:
    user = make_user(email="ann@example.org")
    guards = {key: item for key, item in stored_items().items() if "#" in key}
    requests_sent.clear()

    change_email(user, "Ann@Example.org")

    assert requests_sent.operations == ["UpdateItem"]
    assert requests_sent.units == 1
    assert again(user).email == "Ann@Example.org"
    assert {key: item for key, item in stored_items().items() if "#" in key} == guards


def test_a_change_to_the_current_value_sends_nothing(requests_sent: Requests) -> None:
    user = make_user(email="ann@example.org")
    requests_sent.clear()

    change_email(user, "ann@example.org")

    assert requests_sent.operations == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda user: change_email(user, "Held@Example.org"), EmailTaken),
        (lambda user: change_username(user, "HELD"), UsernameTaken),
    ],
)
def test_a_taken_value_is_refused_and_nothing_changes(
    change: Change, error: type[AccountError]
) -> None:
    make_user(username="held", email="held@example.org")
    user = make_user()

    assert refusal_of(lambda: change(user)) is error


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "no address"),
        lambda user: change_username(user, "no name"),
        lambda user: edit_profile(user, phone_number="no number"),
        lambda user: edit_profile(user, business_address="x" * 501),
        lambda user: edit_profile(user, vat_id="x" * 33),
    ],
)
def test_an_invalid_value_is_refused_and_nothing_changes(change: Change) -> None:
    user = make_user()

    assert refusal_of(lambda: change(user)) is ValidationError


def test_the_profile_stores_given_values_and_removes_empty_ones() -> None:
    user = make_user(full_name="Ann")

    edit_profile(user, full_name="", business_name="Ann Ltd", business_address="1 Road\r\nTown")

    item = stored_user(user.pk)
    assert item is not None
    assert "fullName" not in item
    assert item["businessName"] == {"S": "Ann Ltd"}
    assert item["businessAddress"] == {"S": "1 Road\nTown"}


def test_a_new_password_replaces_the_old_one() -> None:
    user = make_user()

    change_password(user, "another good password")

    assert again(user).check_password("another good password")
    assert not again(user).check_password(PASSWORD)


def test_deactivating_and_activating_keep_everything_else() -> None:
    user = make_user()

    deactivate(user)
    assert not again(user).is_active
    activate(user)

    assert again(user).is_active
    assert_guards_match_users()


def test_deleting_removes_account_and_guards_and_can_be_repeated() -> None:
    user = make_user()
    delete(again(user))
    assert stored_items() == {}

    delete(user)

    assert stored_items() == {}


# Stale copies -------------------------------------------------------------------------------------


@each(*CHANGES)
def test_a_change_of_a_deleted_account_is_stale_and_stores_nothing(change: Change) -> None:
    user = make_user()
    delete(again(user))

    with pytest.raises(StaleUser) as stale:
        change(user)

    assert stale.value.deleted
    assert stored_items() == {}


@pytest.mark.parametrize(
    "change",
    [
        *(CHANGES[name] for name in list(CHANGES)[:6]),
        lambda user: change_username(user, user.username.upper()),
        cancel_change,
        delete,
    ],
)
def test_a_change_of_an_account_that_changed_meanwhile_is_stale(change: Change) -> None:
    user = make_user()
    request_change(user, "mine.too@example.org")
    change_email(again(user), "theirs@example.org")
    request_change(again(user), "theirs.too@example.org")

    assert refusal_of(lambda: change(user)) is StaleUser


@pytest.mark.parametrize("act", [change_email, request_change])
def test_an_account_does_not_get_a_second_spelling_of_a_mailbox(act: Any) -> None:
    make_user(email="ann@example.org")
    user = make_user()

    for address in ('"ann"@example.org', r'"a\nn"@example.org', '""@example.org'):
        assert refusal_of(lambda address=address: act(user, address)) is ValidationError
        assert refusal_of(lambda address=address: make_user(email=address)) is ValidationError


def test_an_account_with_a_quoted_address_of_an_older_version_can_be_used(client: Client) -> None:
    user = make_user(username="ann")
    change(user, {"email": '"ann"@example.org'})

    client.post("/accounts/login/", {"username": '"Ann"@example.org', "password": PASSWORD})
    assert signed_in_as(client) == "ann"
    assert client.post("/accounts/profile/", {"full_name": "Ann"}).status_code == 302
    answer = client.post("/accounts/password_reset/", {"email": '"ann"@example.org'})
    assert (answer.status_code, the_mail().to) == (302, ['"ann"@example.org'])

    change_email(again(user), "ann@example.org")
    assert again(user).email == "ann@example.org"
    assert_guards_match_users()


def test_a_change_that_another_request_made_already_succeeds() -> None:
    user = make_user()
    change_email(again(user), "new@example.org")

    change_email(user, "new@example.org")

    assert user.email == "new@example.org"
    assert changes_of(user) == 1
    assert_guards_match_users()


# `save` -------------------------------------------------------------------------------------------


def test_save_stores_only_what_was_set(requests_sent: Requests) -> None:
    user = make_user()
    user.set_password("another good password")
    requests_sent.clear()

    user.save()

    (request,) = requests_sent.requests
    assert set(request["ExpressionAttributeNames"].values()) == {"password", "sessions", "version"}
    assert again(user).check_password("another good password")


def test_save_of_another_address_moves_its_guard_item_and_is_not_confirmed() -> None:
    user = make_user(email_confirmed=True)
    user.email = "new@example.org"

    user.save()

    assert not again(user).is_confirmed
    assert_guards_match_users()


# Items that others wrote --------------------------------------------------------------------------


def test_an_unknown_attribute_survives_every_change() -> None:
    user = make_user()
    set_stored(user, favouriteColour="blue")

    change_email(user, "new@example.org")
    edit_profile(user, full_name="Ann")
    sessions.begin(user)

    item = stored_user(user.pk)
    assert item is not None
    assert item["favouriteColour"] == {"S": "blue"}


def test_an_account_without_a_version_gets_a_random_one_with_its_first_change() -> None:
    user = make_user()
    set_stored(user, version=None)

    change_email(again(user), "new@example.org")

    assert again(user).version.bit_length() == 53
    assert_guards_match_users()


@pytest.mark.parametrize("operation", [lambda user: change_email(user, "n@example.org"), delete])
def test_an_account_whose_guard_belongs_to_another_can_change_and_be_deleted(
    operation: Change,
) -> None:
    user = make_user(email="ann@example.org")
    guard: dict[str, Any] = {"pk": {"S": "email#ann@example.org"}, "owner": {"S": "thief"}}
    send("PutItem", {"TableName": User.table(), "Item": guard})

    operation(user)

    assert guard_owner("email#ann@example.org") == "thief"
    assert guard_owner("userName#" + user.username) == (None if operation is delete else user.pk)


def test_an_account_whose_guard_is_missing_can_be_deleted() -> None:
    user = make_user(email="ann@example.org")
    key = {"pk": {"S": "email#ann@example.org"}}
    send("DeleteItem", {"TableName": User.table(), "Key": key})

    delete(user)

    assert stored_items() == {}


@pytest.mark.parametrize("operation", [lambda user: change_email(user, "n@example.org"), delete])
def test_an_account_with_a_damaged_value_can_change_and_be_deleted(operation: Change) -> None:
    user = make_user()
    set_stored(user, email="a@ü..invalid")

    operation(again(user))

    item = stored_user(user.pk)
    assert (item is None) if operation is delete else item["email"] == {"S": "n@example.org"}
