"""How an account is stored and found.

What holds for every operation: test_operation_faults.py; for every model: tests/dynamo.
"""

from typing import Any

import pytest
from django.test import Client

from accounts.exceptions import AccountRequestReused, UnknownUser
from accounts.models import User
from accounts.services import change_email, edit_profile, find_user
from accounts.sessions import services as sessions
from tests.emailchanges import again, refusal_of
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    set_stored,
    stored_items,
)
from tests.items import put_item
from tests.mailbox import the_mail
from tests.pages import signed_in_as
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def test_an_account_is_two_guards_and_a_user_item_with_the_attributes_of_the_contract() -> None:
    user = make_user(
        username="Ann", email="Ann@Example.org", full_name="Ann O.", phone_number="+1-202-555-0124"
    )

    items = stored_items()
    assert items.keys() == {user.pk, "userName#ann", "email#ann@example.org"}
    assert guard_owner("userName#ann") == guard_owner("email#ann@example.org") == user.pk
    item = items[user.pk]
    assert item["userName"] == {"S": "Ann"}
    assert item["fullName"] == {"S": "Ann O."}
    assert item["phoneNumber"] == {"S": "+12025550124"}
    assert item["isActive"] == {"BOOL": True}
    assert item["isStaff"] == item["isSuperuser"] == {"BOOL": False}
    assert int(item["version"]["N"]).bit_length() == 53
    assert item["joinedAt"]["S"].startswith("20")


def test_the_same_request_id_with_other_contents_is_refused() -> None:
    same = {"username": "ann", "email": "ann@example.org", "request_id": "same"}
    make_user(**same)

    others: list[dict[str, Any]] = [{"email": "bob@example.org"}, {"password": "another good one"}]
    for other in (*others, {"password": None}, {"is_staff": True}, {"is_superuser": True}):
        asked = same | other
        assert refusal_of(lambda asked=asked: make_user(**asked)) is AccountRequestReused


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
def test_an_account_is_found_by_its_key_and_in_any_spelling_of_its_names(
    requests_sent: Requests,
) -> None:
    user = make_user(username="ann", email="ann@example.org")
    put_item(User.table(), pk="userName#stolen", owner=user.pk)
    requests_sent.clear()

    assert find_user("ann") == user
    assert (requests_sent.operations, requests_sent.units) == (["GetItem", "GetItem"], 2)

    names = ("Ann", "ANN", "ａｎｎ", "ann@example.org", "ANN@Example.org")
    assert {find_user(who) for who in (user.pk, user.pk.upper(), *names)} == {user}
    unknown = ["nobody", "nobody@example.org", "@", "a@[", "", "x" * 3000, "userName#ann", "\x00"]
    for who in (*unknown, "stolen"):
        with pytest.raises(UnknownUser):
            find_user(who)


def test_an_account_with_a_quoted_address_can_be_used(client: Client) -> None:
    user = make_user(username="ann")
    user.change(email='"ann"@example.org')

    client.post("/accounts/login/", {"username": '"Ann"@example.org', "password": PASSWORD})
    assert signed_in_as(client) == "ann"
    assert client.post("/accounts/profile/", {"full_name": "Ann"}).status_code == 302
    answer = client.post("/accounts/password_reset/", {"email": '"ann"@example.org'})
    assert (answer.status_code, the_mail().to) == (302, ['"ann"@example.org'])

    change_email(again(user), "ann@example.org")
    assert again(user).email == "ann@example.org"
    assert_guards_match_users()


def test_an_address_that_save_changes_is_not_confirmed() -> None:
    user = make_user(email_confirmed=True)
    user.email = "new@example.org"

    user.save()

    assert not again(user).is_confirmed
    assert_guards_match_users()


def test_an_attribute_of_another_program_survives_every_change() -> None:
    user = make_user()
    set_stored(user, favouriteColour="blue")

    change_email(user, "new@example.org")
    edit_profile(user, full_name="Ann")
    sessions.begin(user)

    assert stored_items()[user.pk]["favouriteColour"] == {"S": "blue"}
