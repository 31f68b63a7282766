"""Only staff sees the pages and acts, and each action is in the audit log.

Rights that are lost while an action runs: `tests.site_operations`.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from accounts.services import deactivate
from accounts.sessions import services as sessions
from dynamo import admin
from locks.exceptions import LeaseLost
from locks.lock import Lock
from locks.registry import look
from tests.commands import run
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import Page, signed_in_as
from tests.session_maps import begun
from tests.staff.scenes import (
    ADDRESS,
    act,
    acting,
    again,
    below,
    do,
    fill,
    let_in,
    logged_actions,
    make_staff,
    page_of,
    send,
    stored_entries,
    take_rights,
)

pytestmark = pytest.mark.usefixtures("engine")


def actions_on(user: User) -> list[tuple[str, str]]:
    """Every action on `user`, each with the session that it ends, if any."""
    names = ("deactivate", "activate", "endSessions", "sendPasswordReset", "sendConfirmation")
    return [*((name, "") for name in names), ("endSession", begun(user))]


def test_only_staff_gets_a_link_to_the_pages() -> None:
    staff = make_staff()
    other = make_user()

    assert 'href="/admin/"' in let_in(staff).get("/").content.decode()
    for client in (let_in(other), Client()):
        assert "/admin/" not in client.get("/").content.decode()


LOSSES: dict[str, Callable[[User], object]] = {
    "not staff any more": take_rights,
    "deactivated": lambda user: deactivate(again(user)),
    "revokestaff": lambda user: run("revokestaff", user.username),
}


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_an_account_that_loses_the_rights_loses_the_pages_at_once_and_stays_signed_in(
    lose: Callable[[User], object],
) -> None:
    staff = make_staff(is_superuser=True)
    bob = make_user()
    client = let_in(staff)
    assert client.get(page_of(bob)).status_code == 200

    lose(staff)

    assert client.get(page_of(bob)).status_code in {302, 404}
    assert act(client, bob, "deactivate").status_code in {302, 404}
    assert again(bob).is_active
    assert signed_in_as(client) == (staff.username if again(staff).is_active else None)


def test_a_superuser_acts_on_other_staff_corrects_their_address_and_deletes_them() -> None:
    client = let_in(make_staff(is_superuser=True))
    other = make_staff()
    assert page_of(other, "deactivate") in client.get(page_of(other)).content.decode()

    assert act(client, other, "deactivate").url == page_of(other)
    send(client, f"{below(other)}email/", email="new@example.org")
    assert (again(other).is_active, again(other).email) == (False, "new@example.org")
    send(client, f"{below(other)}delete/")

    assert User.get_or_none(other.pk) is None
    assert logged_actions() == ["deactivate", "changeEmail", "delete"]


OWN = ("You cannot do this to your own account.", "This is your own account.")
OTHERS = ("Only a superuser can do this to a staff account.", "only a superuser can change it")


@pytest.mark.parametrize(
    ("given", "message", "text"),
    [
        (lambda staff: staff, *OWN),
        (lambda _staff: make_staff(), *OTHERS),
        (lambda _staff: make_user(is_superuser=True), *OTHERS),
    ],
    ids=["their own account", "other staff", "a superuser who is not staff"],
)
def test_staff_cannot_act_on_correct_or_delete_an_account_above_them(
    given: Callable[[User], User], message: str, text: str, mailoutbox: Any
) -> None:
    staff = make_staff()
    client = let_in(staff)
    other = given(staff)
    bob = make_user()
    actions = actions_on(other)
    before = stored_items()[other.pk]

    for action in actions:
        assert act(client, other, *action).url == page_of(other)
        response = client.get(page_of(other))
        assert Page(response).messages == [f"“{other.username}”: {message}"]
        assert text in Page(response).text
        assert page_of(other, *action) not in response.content.decode()
    for page, typed in (("email/", {"email": "new@example.org"}), ("delete/", {})):
        path = f"{below(other)}{page}"
        form = fill(client, f"{below(bob)}{page}", **typed)
        assert [client.get(path).status_code, client.post(path, form).status_code] == [403, 403]
        assert path not in client.get(page_of(other)).content.decode()
    assert stored_items()[other.pk] == before
    assert (mailoutbox, stored_entries()) == ([], [])


def test_an_action_needs_the_actor_s_password_and_a_reason_of_one_line(mailoutbox: Any) -> None:
    client = let_in(make_staff())
    bob = make_user(password="that of bob")
    actions = actions_on(bob)
    before = stored_items()[bob.pk]

    for action in actions:
        page = Page(act(client, bob, *action, _password="that of bob"))
        assert page.errors == {"_password": ["This is not your password."]}
    for reason in ("", "   ", "x" * 201, "a\nb", "a\x00b"):
        assert list(Page(act(client, bob, "deactivate", _reason=reason)).errors) == ["_reason"]
    assert stored_items()[bob.pk] == before
    assert (mailoutbox, stored_entries()) == ([], [])


RAISES = dict.fromkeys(("is_staff", "is_superuser", "isStaff", "isSuperuser"), "on")


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/accounts/profile/", {"full_name": "Ann"}),
        ("/accounts/username/", {"username": "ann2", "password": PASSWORD}),
    ],
)
def test_no_form_of_an_account_grants_rights(path: str, values: dict[str, str]) -> None:
    user = make_user()

    let_in(user).post(path, values | RAISES)

    stored = again(user)
    assert (stored.full_name == "Ann") != (stored.username == "ann2")
    assert (stored.is_staff, stored.is_superuser) == (False, False)


# The audit log ------------------------------------------------------------------------------------

no_sessions = pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")


each_action = pytest.mark.parametrize(
    "name", ["deactivate", "endSession", pytest.param("endSessions", marks=no_sessions)]
)


@each_action
def test_an_action_that_was_done_meanwhile_writes_nothing_and_is_not_logged(name: str) -> None:
    bob = make_user()
    actor = acting()
    session = begun(bob)
    seen = again(bob)
    deactivate(again(bob))  # also ends the sessions

    # A change of the account is refused; the end of a session is not.
    with pytest.raises(ValidationError) if name == "deactivate" else nullcontext():
        assert not do(actor, name, seen, session=session)
    assert name == "endSession" or not do(actor, name, again(bob))

    assert stored_entries() == []


@each_action
def test_an_action_is_logged_with_all_its_details(name: str) -> None:
    bob = make_user()
    actor = acting()
    session = begun(bob, browser="Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", address="::1")

    assert do(actor, name, again(bob), session=session)

    stored = again(bob)
    assert not sessions.active_sessions(stored)
    assert stored.is_active == (name != "deactivate")
    by_account, by_month = sorted(stored_entries(), key=lambda item: -len(item["journal"]["S"]))
    assert by_account["journal"] == {"S": f"on#{bob.pk}"}
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
        "onPk": bob.pk,
        "onName": bob.username,
        "address": ADDRESS,
        "reason": "Why",
        **what,
    }


def test_a_broken_lock_is_logged_once() -> None:
    site: Any = admin.site
    lease = Lock("nightly", lease_seconds=600).acquire()
    actor = acting()

    assert site.break_lock(actor, look("nightly"), "Stuck")

    with pytest.raises(LeaseLost):
        lease.renew()
    assert not site.break_lock(actor, look("nightly"), "Stuck")
    [entry] = stored_entries()
    assert (entry["action"]["S"], entry["what"]["S"]) == ("breakLock", "nightly")
