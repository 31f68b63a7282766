"""Many ask for one thing at once: one gets it, the others are told, and the guards are right."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.exceptions import EmailTaken, StaleUser, UsernameTaken
from accounts.models import User
from accounts.services import (
    change_email,
    change_password,
    change_username,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from dynamo.exceptions import Refused
from tests import workers
from tests.factories import (
    PASSWORD,
    assert_guards_match_users,
    guard_owner,
    make_user,
    stored_items,
)
from tests.pages import Page, form_values
from tests.together import together

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.fault_of("moto", "does not isolate transactions"),
]

ROUNDS = 50
THREADS = 8
PROCESSES = 4


def assert_all_is_well() -> None:
    assert_guards_match_users()
    call_command("checkguards", "--json")  # a CommandError where it finds anything


def test_one_name_has_one_winner_among_threads_fifty_times() -> None:
    for number in range(ROUNDS):
        results = together(
            *(
                partial(make_user, username=f"prize{number}", email=f"{number}-{n}@example.org")
                for n in range(THREADS)
            )
        )

        kinds = Counter(type(result) for result in results)
        assert kinds == {User: 1, UsernameTaken: THREADS - 1}

    assert len(stored_items()) == 3 * ROUNDS
    assert_all_is_well()


def test_one_name_has_one_winner_among_processes_fifty_times() -> None:
    with workers.started("rivals", ROUNDS, 2, count=PROCESSES) as rivals:
        for number in range(ROUNDS):
            outcomes = Counter(chain.from_iterable(workers.go(rivals)))

            assert outcomes == {"registered": 1, "UsernameTaken": 2 * PROCESSES - 1}
            assert guard_owner(f"userName#prize{number}") is not None

    assert len(stored_items()) == 3 * ROUNDS
    assert_all_is_well()


def test_who_loses_the_race_sees_it_at_the_field() -> None:
    for number in range(10):
        visitors = [Client(), Client()]
        forms = [
            form_values(
                visitor,
                "/accounts/signup/",
                username=f"Prize{number}",
                email=f"{number}-{place}@example.org",
                password1=PASSWORD,
                password2=PASSWORD,
            )
            for place, visitor in enumerate(visitors)
        ]

        responses = together(
            *(
                partial(visitor.post, "/accounts/signup/", form)
                for visitor, form in zip(visitors, forms, strict=True)
            )
        )

        won, lost = sorted(responses, key=lambda response: -response.status_code)
        assert (won.status_code, lost.status_code) == (302, 200)
        assert Page(lost).errors == {"username": ["This username is taken."]}

    assert_all_is_well()


def test_the_form_sent_twice_at_once_makes_one_account() -> None:
    # As often as one client's address may sign up.
    for number in range(6):
        visitor = Client()
        typed = form_values(
            visitor,
            "/accounts/signup/",
            username=f"Ann{number}",
            email=f"{number}@example.org",
            password1=PASSWORD,
            password2=PASSWORD,
        )

        def send(visitor: Client = visitor, typed: dict[str, Any] = typed) -> int:
            tab = Client()
            tab.cookies = visitor.cookies.copy()
            return int(tab.post("/accounts/signup/", typed).status_code)

        assert together(send, send, send) == [302] * 3

    assert len(stored_items()) == 18
    assert_all_is_well()


def test_one_address_has_one_winner_among_two_accounts_that_change_to_it() -> None:
    for number in range(20):
        ann, bob = make_user(), make_user()

        results = together(
            partial(change_email, ann, f"prize{number}@example.org"),
            partial(change_email, bob, f"PRIZE{number}@example.org"),
        )

        assert sorted(type(result).__name__ for result in results) == ["EmailTaken", "NoneType"]
        assert guard_owner(f"email#prize{number}@example.org") in {ann.pk, bob.pk}

    assert_all_is_well()


def test_a_freed_name_goes_to_one_of_those_who_wait_for_it() -> None:
    for number in range(20):
        holder = make_user(username=f"name{number}")

        take = partial(make_user, username=f"name{number}")

        results = together(partial(delete, holder), take, take)

        registered = [result for result in results[1:] if isinstance(result, User)]
        assert len(registered) <= 1
        owner = guard_owner(f"userName#name{number}")
        assert owner == (registered[0].pk if registered else None)

    assert_all_is_well()


CHANGES = {
    "change_username": lambda user, n: change_username(user, f"name{n}"),
    "change_email": lambda user, n: change_email(user, f"address{n}@example.org"),
    "edit_profile": lambda user, n: edit_profile(user, full_name=f"name {n}"),
    "change_password": lambda user, n: change_password(user, f"a good password {n}"),
    "delete": lambda user, _n: delete(user),
}
ENDS_SESSIONS = {"change_password", "delete"}


@pytest.mark.parametrize("other", CHANGES)
@pytest.mark.parametrize("one", CHANGES)
def test_of_two_changes_of_one_account_at_once_one_is_made_and_the_other_told(
    one: str, other: str
) -> None:
    for number in range(3):
        user = make_user()
        mine, theirs = User.get(user.pk), User.get(user.pk)

        results = together(
            partial(CHANGES[one], mine, f"{number}-mine"),
            partial(CHANGES[other], theirs, f"{number}-theirs"),
        )

        made = [result for result in results if result is None]
        both_deleted = one == other == "delete"
        assert len(made) == (2 if both_deleted else 1)
        assert all(isinstance(result, StaleUser) for result in results if result is not None)
        assert_guards_match_users()


@pytest.mark.parametrize("change", CHANGES)
def test_a_sign_in_at_the_same_time_is_in_nobodys_way(change: str) -> None:
    for number in range(5):
        user = make_user()
        mine, theirs = User.get(user.pk), User.get(user.pk)

        changed, noted = together(
            partial(CHANGES[change], mine, number),
            partial(sessions.begin, theirs),
        )

        assert changed is None
        # Who signs in with a password that was changed at that moment is not signed in.
        assert isinstance(noted, str) or (change in ENDS_SESSIONS and isinstance(noted, StaleUser))
        assert_guards_match_users()


def test_both_values_taken_by_rivals_at_once_are_told_together() -> None:
    for number in range(10):
        sign_up = partial(make_user, username=f"n{number}", email=f"a{number}@example.org")

        results = together(sign_up, sign_up)

        (refused,) = [result for result in results if isinstance(result, Refused)]
        assert {type(error) for error in refused.exceptions} == {UsernameTaken, EmailTaken}

    assert_all_is_well()
