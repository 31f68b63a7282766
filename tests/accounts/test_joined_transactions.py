"""Operations that join the caller's transaction: all is written by its commit, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts import services
from accounts.emails.change import request_change
from accounts.emails.confirmation import mark_confirmed
from accounts.exceptions import BadLink, StaleUser
from accounts.models import User
from accounts.sessions import services as sessions
from accounts.signup import pending
from dynamo.exceptions import AlreadyDone
from dynamo.transactions import Transaction
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    make_user,
    stored_items,
    stored_user,
)
from tests.requests import Requests
from tests.session_maps import begun, let_pass

pytestmark = pytest.mark.usefixtures("engine")

Join = Callable[[User, Transaction], object]

OPERATIONS: dict[str, Join] = {
    "change_username": lambda user, write: services.change_username(user, "bea", write=write),
    "change_email": lambda user, write: services.change_email(user, "b@example.org", write=write),
    "edit_profile": lambda user, write: services.edit_profile(user, write=write, full_name="Bea"),
    "change_password": lambda user, write: services.change_password(
        user, "another good password", write=write
    ),
    "deactivate": lambda user, write: services.deactivate(user, write=write),
    "grant_staff": lambda user, write: services.grant_staff(user, write=write),
    "delete": lambda user, write: services.delete(user, write=write),
    "request_change": lambda user, write: request_change(user, "b@example.org", write=write),
    "mark_confirmed": lambda user, write: mark_confirmed(user, write=write),
    "sessions.begin": lambda user, write: sessions.begin(user, write=write),
    "record_sign_in": lambda user, write: user.record_sign_in(write=write),
    "sessions.seen": lambda user, write: sessions.seen(
        user, sessions.alive(user)[0], address="192.0.2.7", write=write
    ),
    "upgrade_hash": lambda user, write: user.upgrade_hash(PASSWORD, write=write),
    "sessions.end": lambda user, write: sessions.end(
        user, next(iter(user.sessions_read())), write=write
    ),
    "sessions.end_all": lambda user, write: sessions.end_all(user, write=write),
    "sessions.end_others": lambda user, write: sessions.end_others(user, write=write),
}

each_operation = pytest.mark.parametrize("join", OPERATIONS.values(), ids=OPERATIONS)


def signed_in_user() -> User:
    user = make_user()
    for session_id in (begun(user), begun(user)):
        let_pass(user, session_id, "seenAt", sessions.SEEN_EVERY_SECONDS)
    return User.get(user.pk)


@each_operation
def test_an_operation_is_sent_with_the_callers_writes_by_the_callers_commit(
    join: Join, requests_sent: Requests
) -> None:
    user, other = signed_in_user(), make_user()
    before = stored_user(user.pk)
    requests_sent.clear()

    with Transaction() as write:
        join(user, write)
        services.edit_profile(other, write=write, full_name="Other")
        assert requests_sent.operations == []

    assert requests_sent.operations == ["TransactWriteItems"]
    after = stored_user(user.pk)
    assert after != before
    if after is not None:
        assert user.stored == user.to_dynamodb_dict() == after
    assert User.get(other.pk).full_name == "Other"
    assert_guards_match_users()


@each_operation
def test_an_operation_is_not_stored_if_a_write_of_the_caller_is_refused(join: Join) -> None:
    user, other = signed_in_user(), make_user()
    services.edit_profile(User.get(other.pk), full_name="Since")
    before, in_hand = stored_items(), user.to_dynamodb_dict()

    write = Transaction()
    join(user, write)
    services.edit_profile(other, write=write, full_name="Other")
    with pytest.raises(StaleUser) as stale:
        write.commit()

    assert stale.value.pk == other.pk
    assert stored_items() == before
    assert user.to_dynamodb_dict() == in_hand


def test_a_registration_joins_the_callers_transaction() -> None:
    other = make_user()

    with Transaction() as write:
        user = services.register(username="ann", email="ann@example.org", write=write)
        services.edit_profile(other, write=write, full_name="Other")

    assert user.stored == stored_user(user.pk)
    assert User.get(other.pk).full_name == "Other"
    assert_guards_match_users()


def test_a_pending_sign_up_joins_a_transaction() -> None:
    other, values = make_user(), {"username": "ann", "email": "ann@example.org"}
    token = pending.hold(values, password=PASSWORD, request_id="form")
    assert token

    with Transaction() as write:
        user = pending.release(token, write=write)
        services.edit_profile(other, write=write, full_name="Other")

    assert user.stored == stored_user(user.pk)
    assert user.is_confirmed
    assert User.get(other.pk).full_name == "Other"
    services.delete(User.get(user.pk))
    with pytest.raises(BadLink):
        pending.release(token)


def test_an_operation_that_another_caller_did_meanwhile_rejects_the_transaction() -> None:
    user, other = make_user(), make_user()
    services.deactivate(User.get(user.pk))
    before = stored_items()

    write = Transaction()
    services.deactivate(user, write=write)
    services.edit_profile(other, write=write, full_name="Other")
    with pytest.raises(AlreadyDone):
        write.commit()

    assert stored_items() == before
