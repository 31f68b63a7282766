"""Changes of accounts whose items others wrote: older versions, other programs.

What holds for every change: tests/accounts/test_operations.py; for every model, such as the moves
of guard items: tests/dynamo/test_promises.py.
"""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.emails.links import request_change
from accounts.services import change_email, edit_profile
from accounts.sessions import services as sessions
from tests.emailchanges import again, refusal_of
from tests.factories import (
    PASSWORD,
    as_stored_by_0_1,
    assert_guards_match_users,
    make_user,
    set_stored,
    stored_items,
)
from tests.mailbox import the_mail
from tests.pages import signed_in_as

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("act", [change_email, request_change])
def test_an_account_does_not_get_a_second_spelling_of_a_mailbox(act: Any) -> None:
    make_user(email="ann@example.org")
    user = make_user()

    for address in ('"ann"@example.org', r'"a\nn"@example.org', '""@example.org', "no address"):
        assert refusal_of(lambda address=address: act(user, address)) is ValidationError
        assert refusal_of(lambda address=address: make_user(email=address)) is ValidationError


def test_an_account_with_a_quoted_address_of_an_older_version_can_be_used(client: Client) -> None:
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


def test_an_address_that_save_changes_moves_its_guard_item_and_is_unconfirmed() -> None:
    user = make_user(email_confirmed=True)
    user.email = "new@example.org"

    user.save()

    assert not again(user).is_confirmed
    assert_guards_match_users()


def test_an_unknown_attribute_survives_every_change() -> None:
    user = make_user()
    set_stored(user, favouriteColour="blue")

    change_email(user, "new@example.org")
    edit_profile(user, full_name="Ann")
    sessions.begin(user)

    assert stored_items()[user.pk]["favouriteColour"] == {"S": "blue"}


@pytest.mark.parametrize("version", [None, 5])
def test_the_first_change_gives_an_older_account_a_version_that_no_other_had(
    version: int | None,
) -> None:
    user = as_stored_by_0_1(make_user(), version=version)

    change_email(user, "new@example.org")

    assert again(user).version == user.version
    assert user.version.bit_length() == 53
    assert_guards_match_users()
