"""Each action happens together with its audit-log entries, or not at all."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from accounts.services import deactivate, delete
from accounts.sessions import services as sessions
from dynamo import admin
from locks._internal.lock import Lock
from locks._internal.registry import State, look
from locks.exceptions import LeaseLost, LockChanged
from staff.sites import StaffSite
from tests.factories import assert_guards_match_users, make_user, stored_user
from tests.session_maps import begun
from tests.staff.scenes import (
    ADDRESS,
    acting,
    again,
    do,
    logged_actions,
    make_staff,
    stored_entries,
)

pytestmark = pytest.mark.usefixtures("engine")

break_lock = cast(StaffSite, admin.site).break_lock
no_sessions = pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")

ACTIONS = ["deactivate", "endSession", pytest.param("endSessions", marks=no_sessions)]
each_action = pytest.mark.parametrize("name", ACTIONS)


def act(actor: Any, name: str, user: User) -> bool:
    """Run an action, which may be on the first session, on the account as it was read."""
    return do(actor, name, user, session=next(iter(user.sessions_read())))


def is_done(name: str, user: User) -> bool:
    """Whether the stored account is as after the action."""
    stored = again(user)
    return not sessions.alive(stored) and stored.is_active == (name != "deactivate")


def signed_in_user() -> User:
    user = make_user()
    begun(user, browser="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0", address="::1")
    return again(user)


@each_action
def test_an_action_is_logged_with_all_its_details(name: str) -> None:
    user, actor = signed_in_user(), acting()

    assert act(actor, name, user)

    assert is_done(name, user)
    assert user.stored == again(user).stored
    by_account, by_month = sorted(stored_entries(), key=lambda item: -len(item["journal"]["S"]))
    assert by_account["journal"] == {"S": f"on#{user.pk}"}
    assert by_month["journal"] == {"S": by_month["id"]["S"][:7]}
    assert by_account | {"journal": by_month["journal"]} == by_month
    what = {"what": "Firefox on Linux, ::1"} if name == "endSession" else {}
    assert {key: value["S"] for key, value in by_month.items()} == {
        "journal": by_month["journal"]["S"],
        "id": by_month["id"]["S"],
        "action": name,
        "model": "accounts.user",
        "byPk": actor.user.pk,
        "byName": "grace",
        "onPk": user.pk,
        "onName": user.username,
        "address": ADDRESS,
        "reason": "Why",
        **what,
    }
    assert_guards_match_users()


@each_action
def test_an_action_with_nothing_to_do_is_not_logged(name: str) -> None:
    user, actor = signed_in_user(), acting()
    stale = again(user)
    deactivate(user)  # also ends the sessions

    assert not act(actor, name, stale)
    if name != "endSession":
        assert not do(actor, name, again(user))

    assert stored_entries() == []


@no_sessions
def test_an_action_does_not_bring_a_deleted_account_back() -> None:
    user, actor = signed_in_user(), acting()
    stale = again(user)
    delete(user)

    with pytest.raises(ValidationError, match="deleted meanwhile"):
        act(actor, "deactivate", stale)
    assert not act(actor, "endSession", stale)
    assert not act(actor, "endSessions", stale)

    assert (stored_user(user.pk), stored_entries()) == (None, [])


def test_a_broken_lock_is_logged() -> None:
    lease, actor = Lock("nightly", lease_seconds=600).acquire(), acting()

    assert break_lock(actor, look("nightly"), "Stuck")

    assert look("nightly").state is State.RELEASED
    with pytest.raises(LeaseLost):
        lease.renew()
    assert not break_lock(actor, look("nightly"), "Stuck")
    [entry] = stored_entries()
    assert (entry["action"]["S"], entry["what"]["S"]) == ("breakLock", "nightly")


@pytest.mark.parametrize(
    "name",
    ["deactivate", "endSession", pytest.param("endSessions", marks=no_sessions), "breakLock"],
)
def test_of_many_actors_at_once_one_acts(name: str, at_once: Callable[..., list[Any]]) -> None:
    user, actors = signed_in_user(), [acting(make_staff()) for _ in range(4)]
    Lock("nightly", lease_seconds=600).acquire()
    read, seen = [again(user) for _ in actors], look("nightly")

    def attempt(n: int) -> bool:
        if name != "breakLock":
            return act(actors[n], name, read[n])
        with suppress(LockChanged):
            return break_lock(actors[n], seen, "Stuck")
        return False

    assert sorted(at_once(attempt, 4)) == [False, False, False, True]
    assert logged_actions() == [name]
