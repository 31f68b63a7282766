"""A stale copy of an account that was deleted and registered again under the same key.

The copy must neither change nor delete the new account. In tests/interleavings/test_stale_copies.py
most operations run in every order of their requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.core.exceptions import ValidationError

from accounts.emails import confirmation
from accounts.emails.change import (
    cancel_change,
    confirm_change,
    link_token as change_token,
    request_change,
)
from accounts.exceptions import BadLink, StaleUser
from accounts.models import User
from accounts.services import (
    activate,
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
    register,
)
from accounts.sessions import services as sessions
from accounts.signup import pending
from tests.emailchanges import again, assert_guards_are_correct, refusal_of
from tests.factories import PASSWORD, as_stored_by_0_1
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.staff.scenes import acting, do, logged_actions, make_staff

FORM = "the same form"


@pytest.fixture(autouse=True)
def _staff(engine: str) -> None:
    make_staff(username="grace")


def grace() -> Any:
    """A member of staff who acts now."""
    return acting(User.named("grace"))


def account(**values: Any) -> User:
    """The account of the form, as it was filled in first."""
    defaults = {"username": "ann", "email": "ann@example.org", "password_hash": "!imported"}
    return register(**(defaults | values), request_id=FORM)


def registered_again(old: User, **values: Any) -> User:
    """Delete the account and register it again by the same form with other values."""
    delete(again(old))
    defaults = {"username": "bea", "email": "bea@example.org", "full_name": "Bea"}
    new = account(**(defaults | values))
    assert new.pk == old.pk
    return new


def save_password(user: User) -> None:
    user.set_password(PASSWORD)
    user.save()


#: Changes that the new account does not have already.
CHANGES: dict[str, Callable[[User], object]] = {
    "change_username": lambda user: change_username(user, "cid"),
    "change_username's spelling": lambda user: change_username(user, "ANN"),
    "change_email": lambda user: change_email(user, "cid@example.org"),
    "request_change": lambda user: request_change(user, "cid@example.org"),
    "edit_profile": lambda user: edit_profile(user, full_name="Cid"),
    "change_password": lambda user: change_password(user, PASSWORD),
    "save": save_password,
    "deactivate": deactivate,
    "delete": delete,
    "mark_confirmed": confirmation.mark_confirmed,
    "deactivate by staff": lambda user: do(grace(), "deactivate", user),
    "sessions.begin": sessions.begin,
    "record_sign_in": User.record_sign_in,
}


def of_other_contents() -> User:
    stale = account()
    registered_again(stale)
    return stale


def changed_as_often() -> User:
    stale = account()
    edit_profile(stale, vat_id="GB1")
    edit_profile(registered_again(stale), vat_id="GB2")
    return stale


def of_the_same_contents() -> User:
    # As an import of the same file makes it, with its hashes.
    stale = account()
    registered_again(stale, username="ann", email="ann@example.org", full_name="")
    return stale


def stored_by_0_1() -> User:
    stale = as_stored_by_0_1(account())
    registered_again(stale)
    return stale


@pytest.mark.parametrize(
    "stale_copy", [of_other_contents, changed_as_often, of_the_same_contents, stored_by_0_1]
)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_stale_copy_does_not_change_the_new_account(
    stale_copy: Callable[[], User], change: Callable[[User], object]
) -> None:
    stale = stale_copy()

    # The admin shows it as an error of validation.
    assert refusal_of(lambda: change(stale)) in {StaleUser, ValidationError}
    assert logged_actions() == []
    assert_guards_are_correct()


def test_a_stale_copy_does_not_cancel_a_change_of_the_new_account() -> None:
    stale = account()
    request_change(stale, "cid@example.org")
    request_change(registered_again(stale), "cid@example.org")

    assert refusal_of(lambda: cancel_change(stale)) is StaleUser


@pytest.mark.parametrize(
    "act",
    [
        lambda user: change_username(user, "bea"),
        lambda user: change_email(user, "bea@example.org"),
        lambda user: edit_profile(user, full_name="Bea"),
        activate,
    ],
    ids=["change_username", "change_email", "edit_profile", "activate"],
)
def test_a_stale_copy_does_not_succeed_because_the_new_account_has_the_value(
    act: Callable[[User], object],
) -> None:
    stale = account()
    deactivate(stale)
    registered_again(stale)

    assert refusal_of(lambda: act(stale)) is StaleUser
    assert stale.username == "ann"


def test_a_stale_copy_does_not_end_sessions_of_the_new_account() -> None:
    stale = account()
    sessions.begin(stale)
    new = registered_again(stale)
    begun = sessions.begin(new)

    sessions.end_all(stale)
    assert not do(grace(), "endSessions", stale)

    assert [session.id for session in sessions.alive(again(new))] == [begun]
    assert (stale.username, sessions.alive(stale)) == ("ann", [])
    assert logged_actions() == []


def test_a_stale_copy_does_not_upgrade_the_hash_of_the_new_account() -> None:
    outdated = make_password(PASSWORD, hasher="pbkdf2_sha1")
    stale = account(password_hash=outdated)
    new = registered_again(stale, password_hash=outdated)

    assert stale.check_password(PASSWORD)

    assert again(new).password == outdated


def test_a_link_to_the_old_address_does_not_confirm_the_new_one() -> None:
    old = account()
    token = confirmation.link_token(old)
    new = registered_again(old)

    assert refusal_of(lambda: confirmation.confirm(token)) is BadLink
    assert not again(new).is_confirmed


def test_a_link_does_not_confirm_an_account_registered_again_meanwhile(proxy: FaultProxy) -> None:
    old = account()
    token = confirmation.link_token(old)
    proxy.plan("UpdateItem", Meanwhile(lambda: registered_again(old)))

    with pytest.raises(BadLink):
        confirmation.confirm(token)

    new = again(old)
    assert (new.email, new.is_confirmed) == ("bea@example.org", False)
    assert_guards_are_correct()


def test_a_link_that_changes_the_old_address_does_not_change_the_new_one() -> None:
    old = account()
    request_change(old, "cid@example.org")
    token = change_token(old)
    request_change(registered_again(old), "cid@example.org")

    assert refusal_of(lambda: confirm_change(token)) is BadLink


def test_a_pending_sign_up_does_not_answer_for_the_account_of_another_one() -> None:
    def held(username: str) -> str:
        values = {"username": username, "email": f"{username}@example.org"}
        token = pending.hold(values, password=PASSWORD, request_id=FORM)
        assert token is not None
        return token

    first, second = held("ann"), held("bea")
    made = pending.release(first)
    delete(made)
    pending.release(second)

    with pytest.raises(BadLink):
        pending.release(first)
    assert again(made).username == "bea"


def test_a_write_gives_an_account_of_version_0_1_a_version_that_no_other_had() -> None:
    user = as_stored_by_0_1(account(), version=5)

    edit_profile(user, full_name="Ann")

    assert again(user).version == user.version
    assert user.version.bit_length() == 53
