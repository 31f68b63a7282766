"""Only staff sees the pages and acts, and no form of an account grants rights."""

from collections.abc import Callable
from typing import Any

import pytest
from django.http import Http404
from django.test import Client
from django.utils.text import capfirst

from accounts.models import User
from accounts.services import deactivate, grant_staff
from tests.commands import run
from tests.factories import PASSWORD, make_user, stored_items
from tests.pages import Page, meanwhile, signed_in_as
from tests.session_maps import begun
from tests.staff.scenes import (
    act,
    acting,
    again,
    do,
    let_in,
    logged_actions,
    make_staff,
    page_of,
    stored_entries,
    take_rights,
)

pytestmark = pytest.mark.usefixtures("engine")


def actions_on(user: User) -> list[tuple[str, str]]:
    """Every action; that on one session with a session of `user`."""
    names = ("deactivate", "activate", "endSessions", "sendPasswordReset", "sendConfirmation")
    return [*((name, "") for name in names), ("endSession", begun(user))]


def test_only_staff_gets_a_link_to_the_pages() -> None:
    staff, other = make_staff(), make_user()

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
    staff, bob = make_staff(is_superuser=True), make_user()
    client = let_in(staff)
    assert client.get(page_of(bob)).status_code == 200

    lose(staff)

    assert client.get(page_of(bob)).status_code in {302, 404}
    assert act(client, bob, "deactivate").status_code in {302, 404}
    assert again(bob).is_active
    assert signed_in_as(client) == (staff.username if again(staff).is_active else None)


#: Whether the actor is a superuser, and what happens during the request to the actor or the other.
MEANWHILE: dict[str, tuple[bool, Callable[[User, User], object]]] = {
    "the actor is not staff any more": (True, lambda staff, _other: take_rights(staff)),
    "the actor is deactivated": (True, lambda staff, _other: deactivate(again(staff))),
    "the actor is not a superuser any more": (
        True,
        lambda staff, _other: again(staff).change(is_superuser=False),
    ),
    "the other becomes staff": (False, lambda _staff, other: grant_staff(again(other))),
}


@pytest.mark.parametrize("what", MEANWHILE)
def test_an_actor_who_has_no_rights_by_the_end_of_the_request_does_nothing(
    engine: str, what: str
) -> None:
    is_superuser, change = MEANWHILE[what]
    staff, other = make_staff(is_superuser=is_superuser), make_user(is_staff=is_superuser)
    client = let_in(staff)

    with meanwhile(engine, "TransactWriteItems", lambda: change(staff, other)):
        response = act(client, other, "deactivate")

    assert response.status_code == (404 if is_superuser else 302)
    assert (again(other).is_active, stored_entries()) == (True, [])


def test_a_superuser_acts_on_other_staff() -> None:
    client, other = let_in(make_staff(is_superuser=True)), make_staff()
    assert page_of(other, "deactivate") in client.get(page_of(other)).content.decode()

    assert act(client, other, "deactivate").url == page_of(other)

    assert (again(other).is_active, logged_actions()) == (False, ["deactivate"])


def test_an_ended_session_cannot_act() -> None:
    bob, actor = make_user(), acting(again(make_staff()))
    actor.user.session_id = "ended"

    with pytest.raises(Http404):
        do(actor, "deactivate", bob)

    assert (again(bob).is_active, stored_entries()) == (True, [])


def test_of_two_superusers_who_deactivate_each_other_at_once_one_is_too_late(
    at_once: Callable[..., list[Any]],
) -> None:
    pair = [make_staff(is_superuser=True), make_staff(is_superuser=True)]
    actors = [acting(again(user)) for user in pair]

    def attempt(n: int) -> str:
        try:
            do(actors[n], "deactivate", pair[1 - n])
        except Http404:
            return "too late"
        return "done"

    assert sorted(at_once(attempt, 2)) == ["done", "too late"]
    assert [again(user).is_active for user in pair].count(True) == 1
    assert logged_actions() == ["deactivate"]


OWN = ("You cannot do this to your own account.", "This is your own account.")
OTHERS = ("Only a superuser can do this to a staff account.", "only a superuser can deactivate it")


@pytest.mark.parametrize(
    ("given", "message", "text"),
    [
        (lambda staff: staff, *OWN),
        (lambda _staff: make_staff(), *OTHERS),
        (lambda _staff: make_user(is_superuser=True), *OTHERS),
    ],
    ids=["their own account", "other staff", "a superuser who is not staff"],
)
def test_staff_cannot_act_on_an_account_above_them(
    given: Callable[[User], User], message: str, text: str, mailoutbox: Any
) -> None:
    staff = make_staff()
    client, other = let_in(staff), given(staff)
    actions = actions_on(other)
    before = stored_items()[other.pk]

    for action in actions:
        assert act(client, other, *action).url == page_of(other)
        response = client.get(page_of(other))
        assert Page(response).messages == [capfirst(f"{other.username}: {message}")]
        assert text in Page(response).text
        assert page_of(other, *action) not in response.content.decode()
    assert stored_items()[other.pk] == before
    assert (mailoutbox, stored_entries()) == ([], [])


def test_an_action_needs_the_actor_s_password(mailoutbox: Any) -> None:
    client, bob = let_in(make_staff()), make_user(password="that of bob")
    actions = actions_on(bob)
    before = stored_items()[bob.pk]

    for action in actions:
        page = Page(act(client, bob, *action, _password="that of bob"))
        assert page.errors == {"_password": ["This is not your password."]}
    assert stored_items()[bob.pk] == before
    assert (mailoutbox, stored_entries()) == ([], [])


def test_an_action_needs_a_reason_of_one_line() -> None:
    client, bob = let_in(make_staff()), make_user()

    for reason in ("", "   ", "x" * 201, "a\nb", "a\x00b"):
        assert list(Page(act(client, bob, "deactivate", _reason=reason)).errors) == ["_reason"]
    assert (again(bob).is_active, stored_entries()) == (True, [])


RAISES = {
    **{"is_staff": "on", "is_superuser": "on", "is_active": "on"},
    **{"isStaff": "true", "isSuperuser": "true", "version": "1"},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/accounts/profile/", {"full_name": "Ann"}),
        ("/accounts/username/", {"username": "ann2", "password": PASSWORD}),
        ("/accounts/email/", {"email": "ann2@example.org", "password": PASSWORD}),
    ],
)
def test_no_form_of_an_account_grants_rights(path: str, values: dict[str, str]) -> None:
    user = make_user()

    let_in(user).post(path, values | RAISES)

    assert (again(user).is_staff, again(user).is_superuser) == (False, False)
