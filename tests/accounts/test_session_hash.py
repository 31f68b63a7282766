"""Ended sessions, for code that compares only the hash in Django's session, not the map."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import HASH_SESSION_KEY, get_user
from django.http import HttpRequest
from django.test import Client
from django.utils.crypto import salted_hmac

from accounts.models import User
from accounts.services import activate, deactivate, delete, register
from accounts.sessions import services as sessions
from dynamo.sessions import SessionStore
from tests.factories import PASSWORD, change_password, make_user, set_stored
from tests.pages import Page, let_in, signed_in_as
from tests.session_maps import begun, read_for, stored_ids
from tests.staff.scenes import acting, do

END_OTHERS = "/accounts/sessions/end_others/"


def seen_by_hash(client: Client) -> str | None:
    """The key of the account that Django finds in a session, before any middleware of the site."""
    request = HttpRequest()
    request.session = SessionStore(client.cookies["sessionid"].value)
    return getattr(get_user(request), "pk", None)


def end_one_by_one(user: User) -> None:
    """End each session, and then all of them."""
    for each in stored_ids(user):
        sessions.end(User.get(user.pk), each)
    sessions.end_all(User.get(user.pk))


def deactivate_for_a_while(user: User) -> None:
    deactivate(User.get(user.pk))
    activate(User.get(user.pk))


ENDS: dict[str, Callable[[User], object]] = {
    "end_all": sessions.end_all,
    "one by one": end_one_by_one,
    "end_others": lambda user: sessions.end_others(read_for(user, begun(user))),
    "deactivate": lambda user: deactivate(User.get(user.pk)),
    "reactivate": deactivate_for_a_while,
    "staff": lambda user: do(acting(), "endSessions", User.get(user.pk)),
    "password": lambda user: change_password(User.get(user.pk), "another good password"),
    "delete": lambda user: delete(User.get(user.pk)),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_ended_session_is_anonymous_also_for_code_that_compares_only_the_hash(
    ann: User, end: Callable[[User], object]
) -> None:
    before = let_in(ann)
    assert seen_by_hash(before) == ann.pk
    read = User.get(ann.pk)
    since = let_in(ann)

    end(read)

    assert [seen_by_hash(each) for each in (before, since)] == [None, None]


def test_the_session_that_ends_the_others_or_changes_the_password_stays(ann: User) -> None:
    client, other = let_in(ann), let_in(ann)
    response = client.post(END_OTHERS, follow=True)
    assert Page(response).messages == ["All your other sessions have ended."]
    assert [seen_by_hash(each) for each in (client, other)] == [ann.pk, None]

    other = let_in(ann)
    new = {"new_password1": "quite another", "new_password2": "quite another"}
    client.post("/accounts/password_change/", {"old_password": PASSWORD} | new)

    assert User.get(ann.pk).check_password("quite another")
    assert [signed_in_as(each) for each in (client, other)] == ["ann", None]
    assert [seen_by_hash(each) for each in (client, other)] == [ann.pk, None]


def test_code_that_compares_only_the_hash_accepts_a_single_ended_session_until_others_are_ended(
    ann: User,
) -> None:
    client, other = let_in(ann), let_in(ann)
    sessions.end(User.get(ann.pk), other.session["accounts.session"])
    assert seen_by_hash(other) == ann.pk

    client.post(END_OTHERS)

    assert seen_by_hash(other) is None
    assert seen_by_hash(client) == ann.pk


def test_an_account_without_an_epoch_keeps_its_hash_until_sessions_end(ann: User) -> None:
    set_stored(ann, sessionEpoch=None)
    old = salted_hmac(
        "accounts.User.get_session_auth_hash", ann.password, algorithm="sha256"
    ).hexdigest()

    user = User.get(ann.pk)

    assert user.session_epoch is None
    assert user.get_session_auth_hash() == old
    client = let_in(ann)
    assert client.session[HASH_SESSION_KEY] == old
    sessions.end_all(user)
    assert seen_by_hash(client) is None


def test_a_session_of_a_former_secret_key_stays_until_it_is_ended(ann: User, settings: Any) -> None:
    client, other = let_in(ann), let_in(ann)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the new key of this test"
    assert seen_by_hash(client) == ann.pk  # stored again under another session key

    sessions.end_all(User.get(ann.pk))

    assert seen_by_hash(other) is None


def test_a_session_of_a_deleted_account_does_not_fit_an_account_with_the_same_key(
    engine: str,
) -> None:
    values: dict[str, Any] = {
        "username": "Ann",
        "email": "ann@example.org",
        "password_hash": make_user().password,
        "request_id": "import 1",
    }
    first = register(**values)
    client = let_in(first)
    assert seen_by_hash(client) == first.pk
    delete(User.get(first.pk))

    second = register(**values)

    assert (second.pk, second.password) == (first.pk, first.password)
    assert seen_by_hash(client) is None
