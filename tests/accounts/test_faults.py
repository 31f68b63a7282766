"""Faults beside which others change the account. Faults alone: `test_operation_faults.py`."""

from functools import partial
from typing import Any

import pytest
from django.test import Client

from accounts.emails.links import confirm_change, mark_confirmed
from accounts.exceptions import StaleUser
from accounts.services import edit_profile
from tests.emailchanges import NEW, again, token_of, waiting_user
from tests.factories import PASSWORD, assert_guards_match_users, changes_of, stored_items
from tests.faults.kinds import CloseBefore, DropReply, Meanwhile
from tests.faults.proxy import FaultProxy
from tests.pages import form_values, signed_in_as

each_loss = pytest.mark.parametrize("lost", [DropReply(), CloseBefore()], ids=["reply", "request"])


def test_the_second_of_two_who_follow_a_link_at_once_learns_the_former_address_too(
    proxy: FaultProxy,
) -> None:
    # The first one may have died before it sent the mail to the former address.
    user = waiting_user(email="old@example.org")
    mark_confirmed(user)
    proxy.plan("TransactWriteItems", Meanwhile(lambda: confirm_change(token_of(user))))

    changed, before = confirm_change(token_of(user))

    assert before
    assert (before.email, before.is_confirmed) == ("old@example.org", True)
    assert changed.email == NEW
    assert changes_of(user) == 3


def test_following_a_link_fails_if_every_attempt_meets_another_change(proxy: FaultProxy) -> None:
    user = waiting_user()
    for number in range(9):
        edit = partial(edit_profile, full_name=f"Ann {number}")
        proxy.plan("TransactWriteItems", Meanwhile(lambda edit=edit: edit(again(user))))

    with pytest.raises(StaleUser):
        confirm_change(token_of(user))

    proxy.forget()
    assert again(user).awaited_email == NEW
    assert_guards_match_users()


# Over HTTP ----------------------------------------------------------------------------------------


@each_loss
def test_a_sign_up_makes_one_account_and_signs_in(
    proxy: FaultProxy, client: Client, lost: Any
) -> None:
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    typed = form_values(
        client, "/accounts/signup/", username="Ann", email="ann@example.org", **passwords
    )
    proxy.forget()
    for operation in ("TransactWriteItems", "PutItem"):
        proxy.plan(operation, lost)

    response = client.post("/accounts/signup/", typed)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert all(proxy.count(each) >= 2 for each in ("TransactWriteItems", "PutItem"))
    assert signed_in_as(client) == "Ann"
    assert len(stored_items()) == 3
    assert_guards_match_users()
