"""A stale copy of an account that is deleted and registered again, in every order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.emails import confirmation
from accounts.emails.change import request_change
from accounts.models import User
from accounts.services import (
    change_email,
    change_password,
    change_username,
    deactivate,
    delete,
    edit_profile,
)
from accounts.sessions import services as sessions
from tests.interleavings.accounts import AccountScenario, fresh, signed_up, words_of
from tests.interleavings.conftest import FORGETFUL, LOSSES, Explore

pytestmark = pytest.mark.fault_of("moto", "does not isolate transactions")

FORM = "the form that is sent twice"

Act = Callable[[User], object]

#: The operations on the copy of the first account.
ACTS: dict[str, Act] = {
    "change_username": lambda ann: change_username(ann, "cid"),
    "change_email": lambda ann: change_email(ann, "cid@example.com"),
    "request_change": lambda ann: request_change(ann, "cid@example.com"),
    "edit_profile": lambda ann: edit_profile(ann, full_name="Cid"),
    "change_password": lambda ann: change_password(ann, "another password"),
    "deactivate": deactivate,
    "delete": delete,
    "begin": sessions.begin,
    "end_all": sessions.end_all,
    "follow the link": lambda ann: confirmation.confirm(confirmation.link_token(ann)),
}
each_act = pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)


def sign_up_anew(name: str) -> User:
    """Sign up with the same request id and `name`, and begin a session."""
    new = signed_up(name, request_id=FORM)
    sessions.begin(new)
    return new


def leave_and_sign_up_anew(ann: User, name: str) -> User:
    """Delete the account, and register another one with the same key."""
    delete(fresh(ann))
    return sign_up_anew(name)


def as_seen(user: User) -> User:
    """A copy of `user`, without a request."""
    return User.from_raw_data(user.stored)


@pytest.fixture(params=["bea", "ann"])
def name(request: pytest.FixtureRequest) -> str:
    """The username of the new account; with "ann" it has all values of the first one."""
    param: str = request.param
    return param


@each_act
@pytest.mark.parametrize("losses", LOSSES)
@pytest.mark.parametrize("forgetful", FORGETFUL)
def test_a_stale_copy_leaves_the_new_account_alone(
    explore: Explore, act: Act, name: str, losses: int, forgetful: bool
) -> None:
    new_ones = []

    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann", request_id=FORM)
        sessions.begin(ann)
        scenario.operations = [
            partial(act, as_seen(ann)),
            partial(leave_and_sign_up_anew, ann, name),
        ]

        def expects(outcomes: list[Any]) -> None:
            word, came = words_of(outcomes)
            # A link is read again in each attempt, and may belong to another account then.
            assert word in {"done", "StaleUser", "BadLink", "Unavailable"}
            if came == "done":
                new = outcomes[1]
                assert scenario.items[new.pk] == new.stored
                assert scenario.accounts == {name: f"{name}@example.com"}
                new_ones.append(word)
            else:
                assert came in {"StaleUser", "DoesNotExist"}

        scenario.expects = expects
        return scenario

    explore(make, losses=losses, forgetful=forgetful)

    assert "done" in new_ones  # before the account was deleted
    assert len(set(new_ones)) > 1 or act is sessions.end_all  # and after it


@pytest.mark.slow
@each_act
def test_a_stale_copy_leaves_the_new_account_alone_if_another_copy_deletes_the_first(
    explore: Explore, act: Act, name: str
) -> None:
    def make() -> AccountScenario:
        scenario = AccountScenario()
        ann = signed_up("ann", request_id=FORM)
        scenario.operations = [
            partial(act, as_seen(ann)),
            partial(delete, as_seen(ann)),
            partial(sign_up_anew, name),
        ]

        def expects(outcomes: list[Any]) -> None:
            word, gone, came = words_of(outcomes)
            assert word in {"done", "StaleUser", "BadLink"}
            assert gone in {"done", "StaleUser"}
            if name == "ann":
                # The sign-up finds the first account if that is not deleted yet.
                assert came in {"done", "StaleUser", "AccountRequestReused"}
            elif came == "done":
                assert scenario.items[outcomes[2].pk] == outcomes[2].stored
            else:
                assert came == "AccountRequestReused"

        scenario.expects = expects
        return scenario

    explore(make)
