"""Changing an account: the guards follow, what is so already succeeds, the stale are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.exceptions import EmailTaken, StaleUser, UsernameTaken
from accounts.models import User
from accounts.services import (
    activate,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from dynamo.client.sending import send
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    changes_of,
    guard_owner,
    make_user,
    stored_items,
    stored_user,
)
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def read_again(user: User) -> User:
    return User.get(user.pk)


def test_a_new_address_takes_its_guard_and_frees_the_old_one() -> None:
    user = make_user(email="old@example.org")

    change_email(user, "New@Example.org")

    assert read_again(user).email == user.email == "New@Example.org"
    assert guard_owner("email#new@example.org") == user.pk
    assert guard_owner("email#old@example.org") is None


def test_a_new_user_name_takes_its_guard_and_frees_the_old_one() -> None:
    user = make_user(username="old")

    change_username(user, "New")

    assert read_again(user).username == "New"
    assert guard_owner("userName#new") == user.pk
    assert guard_owner("userName#old") is None


@pytest.mark.fault_of("moto", "reports no capacity for transactions")
@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "new@example.org"),
        lambda user: change_username(user, "newname"),
        delete,
    ],
)
def test_a_change_of_a_unique_value_costs_one_request_and_six_units(
    change: Callable[[User], None], requests_sent: Requests
) -> None:
    user = make_user()
    requests_sent.clear()

    change(user)

    assert requests_sent.operations == ["TransactWriteItems"]
    assert requests_sent.units == 6


@pytest.mark.fault_of("moto", "counts half a unit for an update")
def test_another_spelling_costs_one_unit_and_touches_no_guard(requests_sent: Requests) -> None:
    user = make_user(email="ann@example.org")
    guards = {key: item for key, item in stored_items().items() if "#" in key}
    requests_sent.clear()

    change_email(user, "Ann@Example.org")

    assert requests_sent.operations == ["UpdateItem"]
    assert requests_sent.units == 1
    assert read_again(user).email == "Ann@Example.org"
    assert {key: item for key, item in stored_items().items() if "#" in key} == guards


def test_a_change_to_what_is_so_already_writes_nothing(requests_sent: Requests) -> None:
    user = make_user(email="ann@example.org")
    requests_sent.clear()

    change_email(user, "ann@example.org")

    assert requests_sent.operations == []


def test_a_taken_address_is_refused_and_nothing_changes() -> None:
    make_user(email="held@example.org")
    user = make_user()
    before = stored_items()

    with pytest.raises(EmailTaken):
        change_email(user, "Held@Example.org")

    assert stored_items() == before


def test_a_taken_user_name_is_refused_and_nothing_changes() -> None:
    make_user(username="held")
    user = make_user()
    before = stored_items()

    with pytest.raises(UsernameTaken):
        change_username(user, "HELD")

    assert stored_items() == before


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
def test_a_value_that_breaks_its_rule_is_refused(change: Callable[[User], None]) -> None:
    user = make_user()
    before = stored_items()

    with pytest.raises(ValidationError):
        change(user)

    assert stored_items() == before


def test_the_profile_keeps_what_was_given_and_drops_what_was_emptied() -> None:
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

    assert read_again(user).check_password("another good password")
    assert not read_again(user).check_password(PASSWORD)


def test_deactivating_and_activating_keep_everything_else() -> None:
    user = make_user()

    deactivate(user)
    assert not read_again(user).is_active
    activate(user)

    assert read_again(user).is_active
    assert_guards_match_users()


def test_deleting_leaves_nothing() -> None:
    delete(make_user())

    assert stored_items() == {}


def test_deleting_what_is_gone_is_a_success() -> None:
    user = make_user()
    delete(read_again(user))

    delete(user)

    assert stored_items() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "new@example.org"),
        lambda user: change_email(user, user.email.upper()),
        lambda user: change_username(user, "newname"),
        lambda user: edit_profile(user, full_name="A ghost"),
        lambda user: change_password(user, "another good password"),
        deactivate,
        sessions.begin,
    ],
)
def test_a_change_after_the_deletion_says_so_and_makes_no_ghost(
    change: Callable[[User], None],
) -> None:
    user = make_user()
    delete(read_again(user))

    with pytest.raises(StaleUser) as stale:
        change(user)

    assert stale.value.deleted
    assert stored_items() == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_email(user, "mine@example.org"),
        lambda user: change_username(user, "newname"),
        lambda user: edit_profile(user, full_name="Mine"),
        lambda user: change_password(user, "another good password"),
        delete,
    ],
)
def test_a_change_of_what_changed_meanwhile_is_refused(change: Callable[[User], None]) -> None:
    user = make_user()
    change_email(read_again(user), "theirs@example.org")
    before = stored_items()

    with pytest.raises(StaleUser):
        change(user)

    assert stored_items() == before


def test_a_change_that_another_made_already_is_a_success() -> None:
    user = make_user()
    change_email(read_again(user), "new@example.org")

    change_email(user, "new@example.org")

    assert user.email == "new@example.org"
    assert changes_of(user) == 1
    assert_guards_match_users()


def test_saving_stores_only_what_was_set(requests_sent: Requests) -> None:
    user = make_user()
    user.set_password("another good password")
    requests_sent.clear()

    user.save()

    (request,) = requests_sent.requests
    assert set(request["ExpressionAttributeNames"].values()) == {"password", "sessions", "version"}
    assert read_again(user).check_password("another good password")


def test_saving_a_unique_value_is_refused() -> None:
    user = make_user()
    user.email = "smuggled@example.org"

    with pytest.raises(TypeError, match="email"):
        user.save()

    assert_guards_match_users()


def test_an_attribute_that_we_do_not_know_outlives_every_change() -> None:
    user = make_user()
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": {"pk": {"S": user.pk}},
            "UpdateExpression": "SET favouriteColour = :blue",
            "ExpressionAttributeValues": {":blue": {"S": "blue"}},
        },
    )

    change_email(user, "new@example.org")
    edit_profile(user, full_name="Ann")
    sessions.begin(user)

    item = stored_user(user.pk)
    assert item is not None
    assert item["favouriteColour"] == {"S": "blue"}


def test_an_account_without_a_version_gets_a_random_one_with_its_first_change() -> None:
    user = make_user()
    remove_version(user)

    change_email(read_again(user), "new@example.org")

    assert read_again(user).version.bit_length() > 60
    assert_guards_match_users()


def remove_version(user: User) -> None:
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": {"pk": {"S": user.pk}},
            "UpdateExpression": "REMOVE version",
        },
    )


@pytest.mark.fault_of("moto", "does not isolate transactions")
def test_two_changes_at_once_have_one_winner(at_once: Callable[..., list[Any]]) -> None:
    user = make_user()

    def attempt(n: int) -> str:
        try:
            change_email(read_again(user), f"address{n}@example.org")
        except StaleUser:
            return "refused"
        return "changed"

    outcomes = at_once(attempt)

    assert "changed" in outcomes
    assert_guards_match_users()


@pytest.mark.fault_of("moto", "does not isolate transactions")
def test_a_change_against_a_deletion_leaves_all_or_nothing(
    at_once: Callable[..., list[Any]],
) -> None:
    for round_number in range(10):
        user = make_user()

        def attempt(n: int, user: User = user, round_number: int = round_number) -> None:
            mine = User.from_raw_data(user.to_dynamodb_dict())
            try:
                if n % 2:
                    delete(mine)
                else:
                    change_email(mine, f"new{round_number}-{n}@example.org")
            except StaleUser:
                return

        at_once(attempt, threads=2)
        assert_guards_match_users()


@pytest.mark.parametrize("operation", [lambda user: change_email(user, "n@example.org"), delete])
def test_a_stolen_guard_does_not_keep_its_owner_from_changing_or_leaving(
    operation: Callable[[User], None],
) -> None:
    user = make_user(email="ann@example.org")
    send(
        "PutItem",
        {
            "TableName": User.table(),
            "Item": {"pk": {"S": "email#ann@example.org"}, "owner": {"S": "thief"}},
        },
    )

    operation(user)

    assert guard_owner("email#ann@example.org") == "thief"
    assert guard_owner("userName#" + user.username) == (None if operation is delete else user.pk)


def test_a_removed_guard_does_not_keep_its_owner_from_leaving() -> None:
    user = make_user(email="ann@example.org")
    send(
        "DeleteItem",
        {"TableName": User.table(), "Key": {"pk": {"S": "email#ann@example.org"}}},
    )

    delete(user)

    assert stored_items() == {}


@pytest.mark.parametrize("operation", [lambda user: change_email(user, "n@example.org"), delete])
def test_a_damaged_value_does_not_keep_its_account_from_changing_or_leaving(
    operation: Callable[[User], None],
) -> None:
    user = make_user()
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": {"pk": {"S": user.pk}},
            "UpdateExpression": "SET email = :damaged",
            "ExpressionAttributeValues": {":damaged": {"S": "a@ü..invalid"}},
        },
    )
    read = read_again(user)

    operation(read)

    item = stored_user(user.pk)
    assert (item is None) if operation is delete else item["email"] == {"S": "n@example.org"}
