"""Ended sessions, for code that compares only the hash in Django's session, not the map."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import (
    BACKEND_SESSION_KEY,
    HASH_SESSION_KEY,
    SESSION_KEY,
    aget_user,
    get_user,
    load_backend,
)
from django.http import HttpRequest
from django.test import Client
from django.utils.crypto import constant_time_compare, salted_hmac

from accounts.models import User
from accounts.services import activate, deactivate, delete, register
from accounts.sessions import services as sessions
from dynamo.sessions import SessionStore
from tests.factories import PASSWORD, change_password, make_user, set_stored
from tests.pages import Page, let_in, signed_in_as
from tests.session_maps import begun, read_for, stored_ids
from tests.staff.scenes import acting, do

END_OTHERS = "/accounts/sessions/end_others/"


def request_of(client: Client) -> HttpRequest:
    """A request with its session, before any middleware of the site."""
    request = HttpRequest()
    request.session = SessionStore(client.cookies["sessionid"].value)
    return request


def by_get_user(client: Client) -> str | None:
    return getattr(get_user(request_of(client)), "pk", None)


def by_aget_user(client: Client) -> str | None:
    return getattr(async_to_sync(aget_user)(request_of(client)), "pk", None)


def by_websocket(client: Client) -> str | None:
    """As Channels does: the account by the session's key, if the hashes are equal."""
    session = SessionStore(client.cookies["sessionid"].value)
    if SESSION_KEY not in session:
        return None
    user = load_backend(session[BACKEND_SESSION_KEY]).get_user(session[SESSION_KEY])
    if user is None:
        return None
    same = constant_time_compare(session[HASH_SESSION_KEY], user.get_session_auth_hash())
    return str(user.pk) if same else None


WAYS = {"get_user": by_get_user, "aget_user": by_aget_user, "websocket": by_websocket}


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
def test_an_ended_session_is_anonymous_everywhere(ann: User, end: Callable[[User], object]) -> None:
    # A session for each way, as a way that finds it ended deletes it.
    ended = {way: let_in(ann) for way in WAYS}
    assert [seen_by(ended[way]) for way, seen_by in WAYS.items()] == [ann.pk] * len(WAYS)
    read = User.get(ann.pk)
    since = {way: let_in(ann) for way in WAYS}

    end(read)

    for way, seen_by in WAYS.items():
        assert [seen_by(each[way]) for each in (ended, since)] == [None, None]


def test_the_session_that_ends_the_others_or_changes_the_password_stays(ann: User) -> None:
    client = let_in(ann)
    others = {way: let_in(ann) for way in WAYS}
    response = client.post(END_OTHERS, follow=True)
    assert Page(response).messages == ["All your other sessions have ended."]
    for way, seen_by in WAYS.items():
        assert [seen_by(each) for each in (client, others[way])] == [ann.pk, None]

    others = {way: let_in(ann) for way in WAYS}
    new = {"new_password1": "quite another", "new_password2": "quite another"}
    client.post("/accounts/password_change/", {"old_password": PASSWORD} | new)

    assert User.get(ann.pk).check_password("quite another")
    assert signed_in_as(client) == "ann"
    for way, seen_by in WAYS.items():
        assert [seen_by(each) for each in (client, others[way])] == [ann.pk, None]
        assert signed_in_as(others[way]) is None


def test_code_that_compares_only_the_hash_accepts_a_single_ended_session_until_others_are_ended(
    ann: User,
) -> None:
    client, other = let_in(ann), let_in(ann)
    sessions.end(User.get(ann.pk), other.session["accounts.session"])
    assert by_get_user(other) == ann.pk

    client.post(END_OTHERS)

    assert by_get_user(other) is None
    assert by_get_user(client) == ann.pk


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
    assert by_get_user(client) is None


def test_a_session_of_a_former_secret_key_stays_until_it_is_ended(ann: User, settings: Any) -> None:
    client, other = let_in(ann), let_in(ann)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "the new key of this test"
    assert by_get_user(client) == ann.pk  # stored again under another session key

    sessions.end_all(User.get(ann.pk))

    assert by_get_user(other) is None


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
    assert by_get_user(client) == first.pk
    delete(User.get(first.pk))

    second = register(**values)

    assert (second.pk, second.password) == (first.pk, first.password)
    assert by_get_user(client) is None
