"""Accounts that come, change and go at once, in every order of their requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from accounts.services import change_email, change_username, delete
from tests.interleavings.accounts import AccountScenario, fresh, signed_up, told
from tests.interleavings.conftest import FORGETFUL, LOSSES, Explore
from tests.interleavings.operations import DEAD

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

ANNS = {"ann": "ann@example.com"}


@pytest.mark.parametrize("losses", [0, 1])
def test_two_who_want_one_name_are_told_who_has_it(explore: Explore, losses: int) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        scenario.operations = [
            lambda: signed_up("ann", "one@example.com", "one"),
            lambda: signed_up("ANN", "two@example.com", "two"),
        ]

        def expects(outcomes: list[Any]) -> None:
            if told(outcomes) == ["done", "UsernameTaken"]:
                assert scenario.accounts == {"ann": "one@example.com"}
            else:
                assert told(outcomes) == ["UsernameTaken", "done"]
                assert scenario.accounts == {"ANN": "two@example.com"}

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


def test_two_who_want_one_name_and_one_address_are_told_of_both(explore: Explore) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        scenario.operations = [
            lambda: signed_up("ann", request_id="one"),
            lambda: signed_up("ann", request_id="two"),
        ]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(told(outcomes)) == ["EmailTaken+UsernameTaken", "done"]
            assert scenario.accounts == ANNS

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


@pytest.mark.parametrize("losses", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("forgetful", [False, True])
def test_a_registration_asked_for_twice_happens_once(
    explore: Explore, forgetful: bool, losses: int
) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        scenario.operations = [lambda: signed_up("ann"), lambda: signed_up("ann")]

        def expects(outcomes: list[Any]) -> None:
            assert told(outcomes) == ["done", "done"]
            assert outcomes[0].pk == outcomes[1].pk
            assert scenario.accounts == ANNS

        scenario.expects = expects
        return scenario

    explore(make, losses=losses, forgetful=forgetful)


def test_one_request_with_two_contents_is_the_one_that_came_first(explore: Explore) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        scenario.operations = [
            lambda: signed_up("ann", request_id="one"),
            lambda: signed_up("bob", request_id="one"),
        ]

        def expects(outcomes: list[Any]) -> None:
            assert sorted(told(outcomes)) == ["RequestIdUsed", "done"]
            winner = "ann" if told(outcomes)[0] == "done" else "bob"
            assert list(scenario.accounts) == [winner]

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


def test_a_name_is_taken_until_its_holder_is_gone(explore: Explore) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann", "old@example.com", "old")
        scenario.operations = [
            lambda: delete(fresh(ann)),
            lambda: signed_up("ann", "new@example.com", "new"),
        ]

        def expects(outcomes: list[Any]) -> None:
            gone, came = told(outcomes)
            assert gone == "done"
            if came == "done" or 1 in scenario.late:
                assert scenario.accounts == {"ann": "new@example.com"}
            else:
                assert (came, scenario.accounts) == ("UsernameTaken", {})

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


@pytest.mark.parametrize("forgetful", FORGETFUL)
def test_an_address_goes_to_who_moves_to_it_or_to_who_signs_up_with_it(
    explore: Explore, forgetful: bool
) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann", "a@example.com")
        scenario.operations = [
            lambda: change_email(fresh(ann), "b@example.com"),
            lambda: signed_up("bob", "b@example.com"),
        ]

        def expects(outcomes: list[Any]) -> None:
            if told(outcomes) == ["done", "EmailTaken"]:
                assert scenario.accounts == {"ann": "b@example.com"}
            else:
                assert told(outcomes) == ["EmailTaken", "done"]
                assert scenario.accounts == {"ann": "a@example.com", "bob": "b@example.com"}

        scenario.expects = expects
        return scenario

    explore(make, losses=1, forgetful=forgetful)


def test_an_address_that_is_left_can_be_had_at_once_and_not_before(explore: Explore) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann", "a@example.com")
        scenario.operations = [
            lambda: change_email(fresh(ann), "b@example.com"),
            lambda: signed_up("bob", "a@example.com"),
        ]

        def expects(outcomes: list[Any]) -> None:
            changed, came = told(outcomes)
            assert changed == "done"
            assert came in {"done", "EmailTaken"}
            others = {"bob": "a@example.com"} if came == "done" or 1 in scenario.late else {}
            assert scenario.accounts == {"ann": "b@example.com"} | others

        scenario.expects = expects
        return scenario

    explore(make, losses=1)


@pytest.mark.parametrize("losses", LOSSES)
def test_two_who_want_each_others_names_keep_their_own(explore: Explore, losses: int) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann, bob = signed_up("ann"), signed_up("bob")
        scenario.operations = [
            lambda: change_username(fresh(ann), "bob"),
            lambda: change_username(fresh(bob), "ann"),
        ]

        def expects(outcomes: list[Any]) -> None:
            assert told(outcomes) == ["UsernameTaken", "UsernameTaken"]
            assert scenario.accounts == ANNS | {"bob": "bob@example.com"}

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


# A process that dies anywhere ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "dying",
    [
        pytest.param(lambda ann: signed_up("eve", "prize@example.com"), id="registers"),
        pytest.param(lambda ann: change_email(fresh(ann), "prize@example.com"), id="changes"),
        pytest.param(lambda ann: delete(fresh(ann)), id="deletes"),
    ],
)
@pytest.mark.parametrize("losses", LOSSES)
def test_whoever_dies_leaves_nothing_half_and_nobody_in_the_way(
    explore: Explore, dying: Callable[[User], object], losses: int
) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann")
        scenario.operations = [
            lambda: dying(ann),
            lambda: signed_up("bob", "prize@example.com"),
        ]

        def expects(outcomes: list[Any]) -> None:
            has_prize = [
                name for name, email in scenario.accounts.items() if email == "prize@example.com"
            ]
            word = told(outcomes)[1]
            assert len(has_prize) == 1 or word == DEAD
            assert (has_prize == ["bob"]) == (word == "done") or word == DEAD

        scenario.expects = expects
        return scenario

    explore(make, deaths=1, losses=losses)


# Three at once -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("losses", [0, 1])
def test_three_at_one_address_leave_it_with_one(explore: Explore, losses: int) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann, bob = signed_up("ann"), signed_up("bob")
        scenario.operations = [
            lambda: change_email(fresh(ann), "bob@example.com"),
            lambda: delete(fresh(bob)),
            lambda: signed_up("eve", "bob@example.com"),
        ]

        def expects(outcomes: list[Any]) -> None:
            moved, gone, came = told(outcomes)
            assert gone == "done"
            assert "bob" not in scenario.accounts
            assert {moved, came} <= {"done", "EmailTaken"}
            has_it = {
                "ann": moved == "done" or 0 in scenario.late,
                "eve": came == "done" or 2 in scenario.late,
            }
            assert has_it != {"ann": True, "eve": True}
            assert (scenario.accounts["ann"] == "bob@example.com") == has_it["ann"]
            assert ("eve" in scenario.accounts) == has_it["eve"]

        scenario.expects = expects
        return scenario

    explore(make, losses=losses)


@pytest.mark.slow
def test_three_who_want_one_name_leave_it_with_one_whoever_dies(explore: Explore) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        scenario.operations = [
            lambda: signed_up("ann", "one@example.com", "one"),
            lambda: signed_up("ann", "two@example.com", "two"),
            lambda: signed_up("ann", "one@example.com", "one"),
        ]

        def expects(outcomes: list[Any]) -> None:
            words = told(outcomes)
            assert len(scenario.accounts) <= 1
            if "done" in words:
                owner = "two" if words[1] == "done" else "one"
                assert scenario.accounts == {"ann": f"{owner}@example.com"}
                assert words[1] != "done" or "done" not in (words[0], words[2])

        scenario.expects = expects
        return scenario

    explore(make, losses=1, deaths=1)
