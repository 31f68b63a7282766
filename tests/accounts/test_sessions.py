"""The map of an account's sessions: bounded, each entry ended for good, whoever writes at once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.exceptions import StaleUser
from accounts.models import User
from accounts.services import (
    activate,
    change_email,
    change_password,
    deactivate,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from dynamo.client import send
from tests.factories import PASSWORD, changes_of, make_user, stored_items, stored_user
from tests.pages import meanwhile
from tests.requests import Requests
from tests.session_maps import begun, let_pass, only, read_for, stored_ids

LINUX_FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def ann(engine: str) -> User:
    return make_user(username="Ann", email="ann@example.org")


# Beginning --------------------------------------------------------------------------------------


def test_a_sign_in_notes_where_and_when_in_one_update(ann: User, requests_sent: Requests) -> None:
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


def test_a_sign_in_is_in_no_forms_way(ann: User) -> None:
    form = User.get(ann.pk)
    first = begun(ann)
    begun(ann)
    sessions.end(User.get(ann.pk), first)

    edit_profile(form, full_name="Ann")

    assert User.get(ann.pk).full_name == "Ann"
    assert len(stored_ids(ann)) == 1


def test_saving_an_account_as_it_was_read_brings_no_ended_session_back(ann: User) -> None:
    ended = begun(ann)
    form = User.get(ann.pk)
    sessions.end(User.get(ann.pk), ended)

    form.full_name = "Ann"
    form.save()

    assert stored_ids(ann) == set()


def test_saving_never_stores_the_sessions(ann: User) -> None:
    mine = begun(ann)
    form = User.get(ann.pk)

    form.full_name, form.sessions = "Ann", None
    form.save()

    assert User.get(ann.pk).full_name == "Ann"
    assert stored_ids(ann) == {mine}


@pytest.mark.parametrize(
    "said",
    ["x" * 100_000, "Mozilla\r\nX: y\0\x1b[31m", "ü€😀\u202e" * 100, "<script>alert(1)</script>"],
)
def test_what_a_browser_says_is_cut_and_printable(ann: User, said: str) -> None:
    sessions.begin(ann, browser=said, address=said)

    session = only(ann)
    assert len(session.browser) <= sessions.BROWSER_MAX_LENGTH
    assert len(session.address) <= sessions.ADDRESS_MAX_LENGTH
    assert all(sign.isascii() and sign.isprintable() for sign in session.browser + session.address)


def test_the_one_seen_longest_ago_gives_way_to_the_21st(ann: User) -> None:
    ids = [begun(ann) for _ in range(sessions.MOST)]
    for at, each in enumerate(ids):
        let_pass(ann, each, "seenAt", 1000 if at == 7 else at)

    newest = begun(ann)

    assert stored_ids(ann) == {*ids, newest} - {ids[7]}


def test_lapsed_sessions_give_way_before_any_that_is_alive(ann: User) -> None:
    ids = [begun(ann) for _ in range(sessions.MOST)]
    let_pass(ann, ids[3], "seenAt", 1000)
    for lapsed in ids[10:12]:
        let_pass(ann, lapsed, "expiresAt", 15 * 24 * 3600)

    newest = begun(ann)

    assert stored_ids(ann) == {*ids, newest} - set(ids[10:12])


def test_a_lapsed_session_is_not_alive(ann: User) -> None:
    session_id = begun(ann)
    let_pass(ann, session_id, "expiresAt", 14 * 24 * 3600)

    assert sessions.alive(User.get(ann.pk)) == []
    assert sessions.find(User.get(ann.pk), session_id) is None


@pytest.mark.parametrize(
    "damage", [{}, {"expiresAt": {"S": "soon"}}, {"expiresAt": {"BOOL": True}}]
)
def test_a_damaged_entry_is_no_session_and_gives_way(ann: User, damage: dict[str, Any]) -> None:
    send(
        "UpdateItem",
        {
            "TableName": User.table(),
            "Key": {"pk": {"S": ann.pk}},
            "UpdateExpression": "SET sessions = :map",
            "ExpressionAttributeValues": {":map": {"M": {"odd": {"M": damage}}}},
        },
    )

    assert sessions.alive(User.get(ann.pk)) == []
    assert stored_ids(ann) == {"odd"}
    newest = begun(ann)
    assert stored_ids(ann) == {newest}


def test_a_clock_that_was_ahead_keeps_nobody_from_signing_in(ann: User) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=1)
    ann.update([User.last_login.set(ahead)])

    begun(ann)

    last_login = User.get(ann.pk).last_login
    assert last_login is not None
    assert last_login > ahead


def test_the_time_of_the_last_sign_in_never_goes_back(ann: User) -> None:
    begun(ann)
    read = User.get(ann.pk)
    ahead = datetime.now(UTC) + timedelta(hours=1)
    ann.update([User.last_login.set(ahead)])

    sessions.begin(read)

    last_login = User.get(ann.pk).last_login
    assert last_login is not None
    assert last_login > ahead


@pytest.mark.parametrize("first", [True, False])
def test_two_sign_ins_at_once_are_both_noted(engine: str, ann: User, first: bool) -> None:
    others = [] if first else [begun(ann)]
    with meanwhile(engine, "UpdateItem", lambda: others.append(begun(ann))):
        mine = begun(ann)

    assert stored_ids(ann) == {mine, *others}


def test_of_30_sign_ins_at_once_20_are_left(ann: User, at_once: Callable[..., list[Any]]) -> None:
    ids = at_once(lambda _n: begun(ann), 30)

    left = stored_ids(ann)
    assert len(left) == sessions.MOST
    assert left < set(ids)


def test_two_sign_ins_at_once_do_not_exceed_the_limit(engine: str, ann: User) -> None:
    for _ in range(sessions.MOST):
        begun(ann)

    with meanwhile(engine, "UpdateItem", lambda: begun(ann)):
        mine = begun(ann)

    assert mine in stored_ids(ann)
    assert len(stored_ids(ann)) == sessions.MOST


@pytest.mark.parametrize(
    "change",
    [lambda user: change_password(user, "another good password"), deactivate],
)
def test_who_lost_the_right_to_sign_in_meanwhile_does_not(
    engine: str, ann: User, change: Callable[[User], None]
) -> None:
    with (
        meanwhile(engine, "UpdateItem", lambda: change(User.get(ann.pk))),
        pytest.raises(StaleUser),
    ):
        begun(ann)

    assert stored_ids(ann) == set()


def test_an_account_with_20_sessions_of_the_longest_names_stays_small(
    ann: User, requests_sent: Requests
) -> None:
    for _ in range(sessions.MOST):
        begun(ann, browser="x" * 1000, address="x" * 1000)
    assert len(json.dumps(stored_user(ann.pk))) < 16 * 1024
    requests_sent.clear()

    sessions.begin(User.get(ann.pk), browser="x" * 1000, address="x" * 1000)

    assert requests_sent.operations == ["GetItem", "UpdateItem"]
    assert requests_sent.units <= 2 + 8


def test_an_account_with_three_sessions_costs_two_units_a_change(
    ann: User, requests_sent: Requests
) -> None:
    begun(ann, browser=LINUX_FIREFOX, address="192.0.2.7")
    begun(ann, browser=LINUX_FIREFOX, address="192.0.2.7")
    requests_sent.clear()

    sessions.begin(User.get(ann.pk), browser=LINUX_FIREFOX, address="192.0.2.7")

    assert requests_sent.units <= 1 + 2


# Seen -------------------------------------------------------------------------------------------


def test_that_a_session_was_seen_is_written_every_five_minutes(
    ann: User, requests_sent: Requests
) -> None:
    session_id = begun(ann, address="192.0.2.7")
    requests_sent.clear()
    sessions.seen(ann, only(ann), address="192.0.2.8")
    assert "UpdateItem" not in requests_sent.operations
    let_pass(ann, session_id, "seenAt", sessions.SEEN_EVERY_SECONDS)

    sessions.seen(User.get(ann.pk), only(ann), address="192.0.2.8")

    session = only(ann)
    assert time.time() - session.seen_at.timestamp() < 60
    assert session.address == "192.0.2.8"
    assert changes_of(ann) == 0


def test_of_two_pages_at_once_one_writes_that_a_session_was_seen(ann: User) -> None:
    session_id = begun(ann)
    let_pass(ann, session_id, "seenAt", sessions.SEEN_EVERY_SECONDS)
    read = User.get(ann.pk)
    [as_read] = sessions.alive(read)
    sessions.seen(User.get(ann.pk), as_read, address="192.0.2.8")
    let_pass(ann, session_id, "seenAt", 2)

    sessions.seen(read, as_read, address="192.0.2.9")

    assert only(ann).address == "192.0.2.8"


def test_a_session_that_is_ended_while_it_is_seen_stays_ended(engine: str, ann: User) -> None:
    session_id = begun(ann)
    let_pass(ann, session_id, "seenAt", 3600)
    read = User.get(ann.pk)

    with meanwhile(engine, "UpdateItem", lambda: sessions.end(User.get(ann.pk), session_id)):
        sessions.seen(read, sessions.alive(read)[0], address="")

    assert stored_ids(ann) == set()


def test_to_be_seen_after_the_deletion_makes_no_ghost(ann: User) -> None:
    session_id = begun(ann)
    let_pass(ann, session_id, "seenAt", 3600)
    read = User.get(ann.pk)
    delete(User.get(ann.pk))

    sessions.seen(read, sessions.alive(read)[0], address="")

    assert stored_items() == {}


# Ending -----------------------------------------------------------------------------------------


def test_ending_one_ends_that_one_alone(ann: User, requests_sent: Requests) -> None:
    mine, other, third = (begun(ann) for _ in range(3))
    user = read_for(ann, mine)
    requests_sent.clear()

    sessions.end(user, other)

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == {mine, third}
    assert {session.id for session in sessions.alive(user)} == {mine, third}


@pytest.mark.parametrize("ended", ["", "x", "unknown", "a.b", "x" * 10_000])
def test_to_end_what_is_no_session_costs_nothing(
    ann: User, requests_sent: Requests, ended: str
) -> None:
    user = read_for(ann, begun(ann))
    requests_sent.clear()

    sessions.end(user, ended)

    assert requests_sent.operations == []
    assert len(stored_ids(ann)) == 1


def test_to_end_what_another_ended_meanwhile_is_a_success(ann: User) -> None:
    mine, other = begun(ann), begun(ann)
    user = read_for(ann, mine)
    sessions.end(User.get(ann.pk), other)

    sessions.end(user, other)

    assert stored_ids(ann) == {mine}


def test_to_end_ones_own_after_the_deletion_is_a_success(ann: User) -> None:
    mine = begun(ann)
    user = read_for(ann, mine)
    delete(User.get(ann.pk))

    sessions.end(user, mine)

    assert stored_items() == {}


def test_who_deletes_the_account_has_no_session_left_to_end(
    ann: User, requests_sent: Requests
) -> None:
    mine = begun(ann)
    user = read_for(ann, mine)
    delete(user)
    requests_sent.clear()

    sessions.end(user, mine)

    assert requests_sent.operations == []


def test_ending_the_others_keeps_this_one(ann: User, requests_sent: Requests) -> None:
    mine = [begun(ann) for _ in range(sessions.MOST)][7]
    user = read_for(ann, mine)
    requests_sent.clear()

    sessions.end_others(user)

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == {mine}


def test_ending_the_others_ends_those_too_that_began_since(ann: User) -> None:
    mine = begun(ann)
    page = read_for(ann, mine)
    begun(ann)

    sessions.end_others(page)

    assert stored_ids(ann) == {mine}


@pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")
def test_ending_all_ends_those_too_that_began_since(ann: User, requests_sent: Requests) -> None:
    begun(ann)
    read = User.get(ann.pk)
    begun(ann)
    requests_sent.clear()

    sessions.end_all(read)

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == set()
    assert sessions.alive(read) == []
    sessions.end_all(read)  # there are none any more
    assert begun(ann) in stored_ids(ann)


def test_of_two_who_end_each_other_at_once_one_stays(ann: User) -> None:
    mine, theirs = begun(ann), begun(ann)
    my_page, their_page = read_for(ann, mine), read_for(ann, theirs)
    sessions.end_others(their_page)

    with pytest.raises(StaleUser):
        sessions.end_others(my_page)
    with pytest.raises(StaleUser):
        sessions.end(read_again(my_page, theirs), theirs)

    assert stored_ids(ann) == {theirs}


def read_again(page: User, other: str) -> User:
    """A page that was read before its session was ended, when the other one was there too."""
    page.sessions = {page.session_id: {}, other: {}}
    return page


CHANGES = {
    "profile": lambda user: edit_profile(user, full_name="Ann"),
    "address": lambda user: change_email(user, "new@example.org"),
    "password": lambda user: change_password(user, "another good password"),
    "deletion": delete,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_page_whose_session_was_ended_changes_nothing(
    ann: User, change: Callable[[User], None]
) -> None:
    mine, other = begun(ann), begun(ann)
    page = read_for(ann, mine)
    sessions.end_others(read_for(ann, other))
    before = stored_items()

    with pytest.raises(StaleUser):
        change(page)

    assert stored_items() == before


def test_a_password_ends_all_sessions_but_the_one_it_is_changed_in(
    ann: User, requests_sent: Requests
) -> None:
    mine, _other = begun(ann), begun(ann)
    page = read_for(ann, mine)
    requests_sent.clear()

    change_password(page, "another good password")

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == {mine}


@pytest.mark.parametrize(
    "change",
    [
        lambda user: change_password(user, "another good password"),
        lambda user: user.set_password("another good password") or user.save(),
        lambda user: user.set_unusable_password() or user.save(update_fields=["password"]),
        deactivate,
    ],
)
def test_what_takes_a_password_away_elsewhere_ends_every_session_in_the_same_write(
    ann: User, requests_sent: Requests, change: Callable[[User], None]
) -> None:
    user = User.get(ann.pk)
    begun(ann)  # since it was read
    requests_sent.clear()

    change(user)

    assert requests_sent.operations == ["UpdateItem"]
    assert stored_ids(ann) == set()


def test_no_session_comes_back_with_the_account(ann: User) -> None:
    begun(ann)
    deactivate(User.get(ann.pk))

    activate(User.get(ann.pk))

    assert stored_ids(ann) == set()


def test_a_better_hash_of_the_same_password_ends_no_session(ann: User, settings: Any) -> None:
    session_id = begun(ann)
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:] + settings.PASSWORD_HASHERS[:1]
    read = User.get(ann.pk)

    assert read.check_password(PASSWORD)

    assert read.password != ann.password
    assert stored_ids(ann) == {session_id}
