"""The sessions of an account: bounded, and an ended session stays ended, also in races.

Code that does not read the map of sessions compares the hash in Django's session.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user, user_logged_in, user_logged_out
from django.http import HttpRequest
from django.test import Client

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import activate, change_email, deactivate, delete, edit_profile, register
from accounts.sessions import services as sessions
from dynamo.sessions import SessionStore
from tests.accounts.test_clients import LINUX_FIREFOX
from tests.emailchanges import refusal_of
from tests.factories import (
    PASSWORD,
    change_password,
    changes_of,
    make_user,
    set_stored,
    stored_user,
)
from tests.pages import Page, let_in, signed_in_as
from tests.requests import Requests
from tests.session_maps import begun, let_pass, only, read_for, stored_ids

# Beginning ----------------------------------------------------------------------------------------


def test_a_sign_in_records_time_browser_and_address_in_one_update(
    ann: User, requests_sent: Requests
) -> None:
    before = datetime.now(UTC).replace(microsecond=0)

    begun_id = sessions.begin(ann, browser=LINUX_FIREFOX, address="192.0.2.7")

    assert requests_sent.operations == ["UpdateItem"]
    session = only(ann)
    assert (session.id, session.browser, session.address) == (begun_id, LINUX_FIREFOX, "192.0.2.7")
    assert before <= session.signed_in_at == session.seen_at <= datetime.now(UTC)
    assert session.expires_at - session.signed_in_at == timedelta(days=14)
    stored = User.get(ann.pk)
    assert stored.last_login is not None
    assert changes_of(ann) == 0


def test_save_never_stores_the_sessions(ann: User) -> None:
    ended = begun(ann)
    mine = begun(ann)
    form = User.get(ann.pk)
    sessions.end(User.get(ann.pk), ended)

    form.full_name = "Ann"
    form.save()
    assert stored_ids(ann) == {mine}

    form.full_name, form.sessions = "Anna", None
    form.save()
    assert User.get(ann.pk).full_name == "Anna"
    assert stored_ids(ann) == {mine}


def test_browser_and_address_are_cut_and_made_printable(ann: User) -> None:
    for said in ("x" * 100_000, "Mozilla\r\nX: y\0\x1b[31m", "ü€😀\u202e" * 100, "<script>"):
        begun(ann, browser=said, address=said)

    for session in sessions.active_sessions(User.get(ann.pk)):
        assert len(session.browser) <= sessions.BROWSER_MAX_LENGTH
        assert len(session.address) <= sessions.ADDRESS_MAX_LENGTH
        assert (session.browser + session.address).isascii()
        assert (session.browser + session.address).isprintable()


@pytest.mark.parametrize("lapsed", [(), (10, 11)], ids=["none lapsed", "two lapsed"])
def test_the_21st_session_replaces_those_that_lapsed_or_else_the_one_seen_longest_ago(
    ann: User, lapsed: tuple[int, ...]
) -> None:
    ids = [begun(ann) for _ in range(sessions.MOST)]
    let_pass(ann, ids[7], "seenAt", 1000)
    for item in lapsed:
        let_pass(ann, ids[item], "expiresAt", 15 * 24 * 3600)

    newest = begun(ann)

    assert stored_ids(ann) == {*ids, newest} - {ids[number] for number in lapsed or [7]}


@pytest.mark.parametrize(
    "damage", [{}, {"expiresAt": {"S": "soon"}}, {"expiresAt": {"BOOL": True}}]
)
def test_a_damaged_entry_is_not_a_session_and_is_replaced(
    ann: User, damage: dict[str, Any]
) -> None:
    set_stored(ann, sessions={"M": {"odd": {"M": damage}}})

    assert sessions.active_sessions(User.get(ann.pk)) == []
    assert stored_ids(ann) == {"odd"}
    newest = begun(ann)
    assert stored_ids(ann) == {newest}


@pytest.mark.parametrize("is_read_before", [False, True])
def test_the_time_of_the_last_sign_in_never_goes_back(ann: User, is_read_before: bool) -> None:
    begun(ann)
    read = User.get(ann.pk)
    ahead = datetime.now(UTC) + timedelta(hours=1)
    set_stored(ann, lastLoginAt=User.last_login.serialize(ahead))

    sessions.begin(read if is_read_before else User.get(ann.pk))

    last_login = User.get(ann.pk).last_login
    assert last_login is not None
    assert last_login > ahead


@pytest.mark.parametrize(
    ("count", "length", "units"), [(sessions.MOST, 1000, 8), (2, 80, 2)], ids=["most", "usual"]
)
def test_a_sign_in_stays_cheap_with_many_sessions(
    ann: User, requests_sent: Requests, count: int, length: int, units: int
) -> None:
    for _ in range(count):
        begun(ann, browser="x" * length, address="x" * length)
    assert len(json.dumps(stored_user(ann.pk))) < 16 * 1024
    read = User.get(ann.pk)
    requests_sent.clear()

    sessions.begin(read, browser="x" * length, address="x" * length)

    assert requests_sent.operations == ["UpdateItem"]
    assert requests_sent.units <= units


def test_a_session_that_ended_meanwhile_is_not_recorded_as_seen_and_the_account_stays_as_read(
    ann: User,
) -> None:
    let_pass(ann, begun(ann), "seenAt", 3600)
    read = User.get(ann.pk)
    before = read.to_dynamodb_dict()
    sessions.end_all(User.get(ann.pk))
    stored = stored_user(ann.pk)

    sessions.mark_seen(read, sessions.active_sessions(read)[0], address="192.0.2.8")

    assert read.to_dynamodb_dict() == read.stored == before
    assert stored_user(ann.pk) == stored


# Ending -------------------------------------------------------------------------------------------


def test_the_object_of_a_deleted_account_has_no_session_to_end(
    ann: User, requests_sent: Requests
) -> None:
    mine = begun(ann)
    user = read_for(ann, mine)
    delete(user)
    requests_sent.clear()

    sessions.end(user, mine)

    assert requests_sent.operations == []


def test_a_page_whose_account_was_deleted_is_told_so(ann: User) -> None:
    page = read_for(ann, begun(ann))
    delete(User.get(ann.pk))

    with pytest.raises(StaleUser) as refused:
        sessions.end_others(page)

    assert refused.value.deleted


@pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")
@pytest.mark.parametrize("end", [sessions.end_others, sessions.end_all])
def test_sessions_that_began_since_the_account_was_read_end_with_the_others(
    ann: User, requests_sent: Requests, end: Callable[[User], None]
) -> None:
    mine = [begun(ann) for _ in range(sessions.MOST - 1)][7]
    page = read_for(ann, mine)
    begun(ann)
    requests_sent.clear()

    end(page)

    assert requests_sent.operations == ["UpdateItem"]
    left = {mine} if end is sessions.end_others else set()
    assert stored_ids(ann) == {session.id for session in sessions.active_sessions(page)} == left
    newest = begun(ann)
    assert stored_ids(ann) == {*left, newest}


CHANGES: dict[str, Callable[[User], object]] = {
    "edit_profile": lambda user: edit_profile(user, full_name="Ann"),
    "change_email": lambda user: change_email(user, "new@example.org"),
    "change_password": lambda user: change_password(user, "another good password"),
    "delete": delete,
    "end_others": sessions.end_others,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_page_whose_session_was_ended_changes_nothing(
    ann: User, change: Callable[[User], None]
) -> None:
    mine = begun(ann)
    other = begun(ann)
    page = read_for(ann, mine)
    sessions.end_others(read_for(ann, other))

    assert refusal_of(lambda: change(page)) is StaleUser
    assert stored_ids(ann) == {other}


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_password(user, "another good password"),
        lambda user: user.set_password("another good password") or user.save(),
        lambda user: user.set_unusable_password() or user.save(update_fields=["password"]),
        deactivate,
    ],
)
def test_losing_the_password_ends_every_session_in_the_same_write(
    ann: User, requests_sent: Requests, change: Callable[[User], None]
) -> None:
    user = User.get(ann.pk)
    begun(ann)  # since it was read
    requests_sent.clear()

    change(user)

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == set()
    activate(user)
    assert stored_ids(ann) == set()


# Sign-ins without a session -----------------------------------------------------------------------


@pytest.mark.parametrize("has_request", [False, True])
def test_a_sign_in_without_a_session_records_only_its_time_unless_a_later_one_is_stored(
    ann: User, has_request: bool
) -> None:
    before = datetime.now(UTC)
    request = HttpRequest() if has_request else None

    user_logged_in.send(sender=User, request=request, user=ann)

    stored = User.get(ann.pk)
    assert stored.last_login == ann.last_login >= before
    assert stored.sessions is None
    assert stored.version == ann.version
    later = datetime(2099, 1, 2, tzinfo=UTC)
    set_stored(ann, lastLoginAt=User.last_login.serialize(later))
    user_logged_in.send(sender=User, request=request, user=ann)
    assert User.get(ann.pk).last_login == ann.last_login == later


def test_a_sign_out_without_a_request_ends_no_session(ann: User) -> None:
    mine = begun(ann)

    user_logged_out.send(sender=User, request=None, user=read_for(ann, mine))

    assert stored_ids(ann) == {mine}


# The session hash ---------------------------------------------------------------------------------


END_OTHERS = "/accounts/sessions/end_others/"


def seen_by_hash(client: Client) -> str | None:
    """The key of the account that Django finds in a session, before any middleware of the site."""
    request = HttpRequest()
    request.session = SessionStore(client.cookies["sessionid"].value)
    return getattr(get_user(request), "pk", None)


def end_one_by_one(user: User) -> None:
    """End each session, and then all of them."""
    for id_ in stored_ids(user):
        sessions.end(User.get(user.pk), id_)
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

    assert [seen_by_hash(item) for item in (before, since)] == [None, None]


def test_the_session_that_ends_the_others_or_changes_the_password_remains(ann: User) -> None:
    client = let_in(ann)
    other = let_in(ann)
    response = client.post(END_OTHERS, follow=True)
    assert Page(response).messages == ["All your other sessions have ended."]
    assert [seen_by_hash(item) for item in (client, other)] == [ann.pk, None]

    other = let_in(ann)
    new = {"new_password1": "quite another", "new_password2": "quite another"}
    client.post("/accounts/password_change/", {"old_password": PASSWORD} | new)

    assert User.get(ann.pk).check_password("quite another")
    assert [signed_in_as(item) for item in (client, other)] == ["ann", None]
    assert [seen_by_hash(item) for item in (client, other)] == [ann.pk, None]


def test_code_that_compares_only_the_hash_accepts_a_single_ended_session_until_others_are_ended(
    ann: User,
) -> None:
    client = let_in(ann)
    other = let_in(ann)
    sessions.end(User.get(ann.pk), other.session["accounts.session"])
    assert seen_by_hash(other) == ann.pk

    client.post(END_OTHERS)

    assert seen_by_hash(other) is None
    assert seen_by_hash(client) == ann.pk


def test_a_session_of_a_former_secret_key_remains_until_it_is_ended(
    ann: User, settings: Any
) -> None:
    client = let_in(ann)
    other = let_in(ann)
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
