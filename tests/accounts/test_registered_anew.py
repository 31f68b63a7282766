"""A copy of an account that was deleted, and registered again under the same key by its form.

The stale copy must neither change nor delete the new account, nor take it for its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password

from accounts.emails import confirmation
from accounts.emails.change import cancel_change, confirm_change, request_change
from accounts.emails.change import link_token as change_token
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
from staff.actions import deactivate as deactivate_by_staff
from staff.actions import end_sessions as end_sessions_by_staff
from staff.audit_log import Actor
from tests.emailchanges import assert_all_is_well
from tests.factories import PASSWORD, as_stored_by_0_1, stored_items
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.staff.scenes import acting, logged_actions, make_staff


@pytest.fixture(autouse=True)
def _staff(engine: str) -> None:
    make_staff(username="grace")


def grace() -> Actor:
    """A member of staff who acts now."""
    return acting(User.find("grace"))


FORM = "the same form"
HASH = "!imported"


def account(**values: Any) -> User:
    """The account of the form, as it was filled in first."""
    defaults = {"username": "ann", "email": "ann@example.org", "password_hash": HASH}
    return register(**(defaults | values), request_id=FORM)


def registered_anew(old: User, **values: Any) -> User:
    """The account of the same form, filled in otherwise, when the first one is gone."""
    delete(User.get(old.pk))
    defaults = {"username": "bea", "email": "bea@example.org", "full_name": "Bea"}
    new = account(**(defaults | values))
    assert new.pk == old.pk
    return new


def save_password(user: User) -> None:
    user.set_password(PASSWORD)
    user.save()


#: Changes of an account, none of which the new one has already.
CHANGES: dict[str, Callable[[User], object]] = {
    "change_username": lambda user: change_username(user, "cid"),
    "change_username's spelling": lambda user: change_username(user, "ANN"),
    "change_email": lambda user: change_email(user, "cid@example.org"),
    "request_change": lambda user: request_change(user, "cid@example.org"),
    "edit_profile": lambda user: edit_profile(user, full_name="Cid"),
    "change_password": lambda user: change_password(user, PASSWORD),
    "save": save_password,
    "deactivate": deactivate,
    "mark_confirmed": confirmation.mark_confirmed,
    "deactivate by staff": lambda user: deactivate_by_staff(grace(), user, "Spam"),
    "sessions.begin": sessions.begin,
    "sessions.note_sign_in_time": sessions.note_sign_in_time,
}

each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)


def assert_refused(act: Callable[[], object]) -> None:
    """It is refused as stale, and what is stored of accounts stays as it is."""
    before = stored_items()
    with pytest.raises(StaleUser):
        act()
    assert stored_items() == before
    assert_all_is_well()


@each_change
def test_a_stale_copy_does_not_change_the_new_account(change: Callable[[User], object]) -> None:
    stale = account()
    registered_anew(stale)

    assert_refused(lambda: change(stale))
    assert logged_actions() == []


@each_change
def test_nor_where_the_new_account_has_changed_as_often(change: Callable[[User], object]) -> None:
    stale = account()
    edit_profile(stale, vat_id="GB1")
    edit_profile(registered_anew(stale), vat_id="GB2")

    assert_refused(lambda: change(stale))


@each_change
def test_nor_one_of_the_same_contents(change: Callable[[User], object]) -> None:
    # As a file of accounts that is imported once more makes it: hashes and all.
    stale = account()
    registered_anew(stale, username="ann", email="ann@example.org", full_name="")

    assert_refused(lambda: change(stale))


def test_a_stale_copy_does_not_delete_the_new_account() -> None:
    stale = account()
    registered_anew(stale)

    assert_refused(lambda: delete(stale))


def test_a_stale_copy_that_waits_for_its_link_does_not_cancel_a_change_of_the_new_account() -> None:
    stale = account()
    request_change(stale, "cid@example.org")
    request_change(registered_anew(stale), "cid@example.org")

    assert_refused(lambda: cancel_change(stale))


@pytest.mark.parametrize(
    ("act", "values"),
    [
        (lambda user: change_username(user, "bea"), {}),
        (lambda user: change_email(user, "bea@example.org"), {}),
        (lambda user: edit_profile(user, full_name="Bea"), {}),
        (activate, {}),
    ],
    ids=["change_username", "change_email", "edit_profile", "activate"],
)
def test_what_the_new_account_has_already_is_no_success_of_the_stale_copy(
    act: Callable[[User], object], values: dict[str, Any]
) -> None:
    stale = account()
    deactivate(stale)
    registered_anew(stale, **values)

    assert_refused(lambda: act(stale))
    assert stale.username == "ann"


def test_a_stale_copy_ends_no_session_of_the_new_account() -> None:
    stale = account()
    sessions.begin(stale)
    new = registered_anew(stale)
    begun = sessions.begin(new)

    sessions.end_all(stale)
    assert not end_sessions_by_staff(grace(), stale, "Asked for")

    assert [session.id for session in sessions.alive(User.get(new.pk))] == [begun]
    assert (stale.username, sessions.alive(stale)) == ("ann", [])
    assert logged_actions() == []


def test_a_stale_copy_stores_no_hash_in_the_new_account() -> None:
    outdated = make_password(PASSWORD, hasher="pbkdf2_sha1")
    stale = account(password_hash=outdated)
    new = registered_anew(stale, password_hash=outdated)

    assert stale.check_password(PASSWORD)

    assert User.get(new.pk).password == outdated


def test_the_link_that_confirms_the_old_address_does_not_confirm_the_new_one() -> None:
    old = account()
    token = confirmation.link_token(old)
    new = registered_anew(old)

    with pytest.raises(BadLink):
        confirmation.confirm(token)

    assert not User.get(new.pk).is_confirmed


def test_nor_where_the_account_is_registered_anew_while_the_link_is_followed(
    proxy: FaultProxy,
) -> None:
    old = account()
    token = confirmation.link_token(old)
    proxy.plan("UpdateItem", Meanwhile(lambda: registered_anew(old)))

    with pytest.raises(BadLink):
        confirmation.confirm(token)

    new = User.get(old.pk)
    assert (new.email, new.is_confirmed) == ("bea@example.org", False)
    assert_all_is_well()


def test_the_link_of_a_change_of_address_is_void_for_the_new_account() -> None:
    old = account()
    request_change(old, "cid@example.org")
    token = change_token(old)
    new = registered_anew(old)
    request_change(new, "cid@example.org")

    with pytest.raises(BadLink):
        confirm_change(token)

    assert User.get(new.pk).email == "bea@example.org"


def test_the_link_of_a_held_sign_up_does_not_speak_for_an_account_of_another_link() -> None:
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
    assert User.get(made.pk).username == "bea"


# Accounts that version 0.1 stored ----------------------------------------------------------------


@each_change
def test_a_stale_copy_of_an_older_release_does_not_change_the_new_account(
    change: Callable[[User], object],
) -> None:
    stale = as_stored_by_0_1(account())
    registered_anew(stale)

    assert_refused(lambda: change(stale))


def test_a_write_to_an_account_of_an_older_release_gives_it_a_version_that_none_had() -> None:
    user = as_stored_by_0_1(account(), version=5)

    edit_profile(user, full_name="Ann")

    assert User.get(user.pk).version == user.version
    assert user.version.bit_length() > 60
