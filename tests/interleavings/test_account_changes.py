"""Two changes of one account at once, in every order of their requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.models import User
from accounts.services import change_email, change_username, delete
from tests.interleavings.accounts import AccountScenario, fresh, signed_up, told
from tests.interleavings.conftest import LOSSES, Explore

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")


def two_changes(
    first: Callable[[User], object], second: Callable[[User], object]
) -> tuple[Callable[[], AccountScenario], list[tuple[list[str], dict[str, str]]]]:
    """A scenario with both of them on ann's account, and what came of each schedule."""
    ends: list[tuple[list[str], dict[str, str]]] = []

    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann")
        scenario.operations = [lambda: first(fresh(ann)), lambda: second(fresh(ann))]
        scenario.expects = lambda outcomes: ends.append((told(outcomes), scenario.accounts))
        return scenario

    return make, ends


@pytest.mark.parametrize("losses", LOSSES)
def test_two_changes_of_one_account_are_both_done_or_one_is_told_that_it_is_stale(
    explore: Explore,
    losses: int,
) -> None:
    make, ends = two_changes(
        lambda user: change_username(user, "anna"),
        lambda user: change_email(user, "anna@example.com"),
    )

    explore(make, losses=losses)

    for words, stored in ends:
        assert words in [["done", "done"], ["done", "StaleUser"], ["StaleUser", "done"]]
        name = "anna" if words[0] == "done" else "ann"
        address = "anna@example.com" if words[1] == "done" else "ann@example.com"
        assert stored == {name: address}
    assert (["done", "done"], {"anna": "anna@example.com"}) in ends


@pytest.mark.parametrize("losses", LOSSES)
def test_of_two_new_addresses_the_account_has_the_one_that_was_told_last(
    explore: Explore, losses: int
) -> None:
    make, ends = two_changes(
        lambda user: change_email(user, "one@example.com"),
        lambda user: change_email(user, "two@example.com"),
    )

    explore(make, losses=losses)

    for words, stored in ends:
        assert "done" in words
        address = stored["ann"]
        if words == ["done", "done"]:
            assert address in {"one@example.com", "two@example.com"}
        else:
            assert sorted(words) == ["StaleUser", "done"]
            assert address == ("one" if words[0] == "done" else "two") + "@example.com"


@pytest.mark.parametrize("losses", LOSSES)
def test_the_same_change_asked_for_twice_is_done_for_both(explore: Explore, losses: int) -> None:
    make, ends = two_changes(
        lambda user: change_email(user, "new@example.com"),
        lambda user: change_email(user, "new@example.com"),
    )

    explore(make, losses=losses, forgetful=True)

    assert all(end == (["done", "done"], {"ann": "new@example.com"}) for end in ends)


@pytest.mark.parametrize("losses", LOSSES)
def test_an_account_that_goes_while_it_changes_is_gone_or_changed(
    explore: Explore, losses: int
) -> None:
    make, ends = two_changes(delete, lambda user: change_email(user, "new@example.com"))

    explore(make, losses=losses)

    for (gone, changed), stored in ends:
        if gone == "done":
            assert stored == {}
            assert changed in {"done", "StaleUser", "DoesNotExist"}
        else:
            assert (gone, changed) == ("StaleUser", "done")
            assert stored == {"ann": "new@example.com"}


@pytest.mark.parametrize("losses", LOSSES)
def test_an_account_deleted_twice_is_gone_for_both(explore: Explore, losses: int) -> None:
    make, ends = two_changes(delete, delete)

    explore(make, losses=losses, forgetful=True)

    for words, stored in ends:
        assert set(words) <= {"done", "DoesNotExist"}
        assert "done" in words
        assert stored == {}
