"""A session that is created, saved and ended, in every order of requests and with time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache

from accounts.models import User
from accounts.sessions import services as sessions
from dynamo._internal.client.sending import send
from dynamo.cache import CacheItem, now_ms
from dynamo.exceptions import ConditionFailed, DynamoError, Unavailable
from dynamo.sessions import SessionStore
from tests.emptying import empty
from tests.interleavings.accounts import AccountScenario, signed_up
from tests.interleavings.conftest import Explore
from tests.interleavings.interception import Clock
from tests.interleavings.operations import wait_for


class SessionScenario:
    """The first operation creates a session and ends it; others act on its key."""

    late: set[int]

    def __init__(self, clock: Clock, *others: Callable[[SessionScenario], object]) -> None:
        empty(CacheItem.table())
        self.clock = clock
        self.key = ""
        self.is_ended = False
        self.operations: list[Callable[[], object]] = [self.sign_in_and_out]
        self.operations += [lambda act=act: act(self) for act in others]  # type: ignore[misc]

    def sign_in_and_out(self) -> None:
        """Create a session, which may fail, and end it."""
        session = SessionStore()
        session["user"] = "ann"
        session.create()
        with suppress(Unavailable):
            session.save()
        self.key = session.session_key or ""
        session.flush()
        self.is_ended = True

    def is_known(self) -> bool:
        """Whether the first operation is about to end its session."""
        return bool(self.key)

    def always(self, wrote: bool) -> None:
        """An ended session stays ended."""
        if wrote and self.is_ended:
            assert not SessionStore().exists(self.key)

    def afterwards(self, outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(
                outcome, (DynamoError, UpdateError)
            ):
                raise outcome


def save(scenario: SessionScenario) -> None:
    """Save the session, as another page does at the same time."""
    wait_for(scenario.is_known, "a session")
    page = SessionStore(scenario.key)
    page["visits"] = 1
    page.save()


def let_time_pass(scenario: SessionScenario) -> None:
    """Let the lifetime of a session pass, while DynamoDB deletes expired items."""
    wait_for(scenario.is_known, "a session")
    for _ in range(2):
        scenario.clock.pass_seconds(settings.SESSION_COOKIE_AGE / 2 + 1)
        delete_if_expired(SessionStore(scenario.key).cache_key)


def delete_if_expired(key: str) -> None:
    """What TTL does to the item of `key`."""
    request = {
        "TableName": CacheItem.table(),
        "Key": {"key": {"S": cache._stored_key(key, None)}},  # type: ignore[attr-defined]  # a DynamoCache
        "ConditionExpression": "expires <= :now",
        "ExpressionAttributeValues": {":now": {"N": str(now_ms() // 1000)}},
    }
    with suppress(ConditionFailed):
        send("DeleteItem", request)


@pytest.mark.parametrize(
    ("others", "losses"),
    [
        pytest.param([], 1, id="alone"),
        pytest.param([], 3, marks=pytest.mark.slow, id="alone-3-losses"),
        pytest.param([save], 1, id="save"),
        pytest.param([save], 2, marks=pytest.mark.slow, id="save-2-losses"),
        pytest.param([let_time_pass], 1, id="time"),
    ],
)
def test_an_ended_session_stays_ended_however_late_its_creation_arrives(
    explore: Explore, others: list[Callable[[SessionScenario], object]], losses: int
) -> None:
    clock = Clock()

    schedules = explore(lambda: SessionScenario(clock, *others), losses=losses, clock=clock)

    assert schedules > 1


class EpochScenario(AccountScenario):
    """Ann, signed in twice; each operation acts on a copy that was read before."""

    def __init__(self, *acts: Callable[[EpochScenario], object]) -> None:
        super().__init__()
        ann = signed_up("ann")
        self.mine, _other = (sessions.begin(ann) for _ in range(2))
        #: The hash of every session that has begun before.
        self.before = {ann.get_session_auth_hash()}
        self.epochs = [ann.session_epoch]
        self.copies = [User.get(ann.pk) for _ in acts]
        self.operations = [lambda act=act: act(self) for act in acts]  # type: ignore[misc]

    def always(self, wrote: bool) -> None:
        """A session epoch that was replaced is never stored again."""
        super().always(wrote)
        [epoch] = [item["sessionEpoch"]["S"] for item in self.items.values() if "userName" in item]
        if epoch != self.epochs[-1]:
            assert epoch not in self.epochs
            self.epochs.append(epoch)

    def now(self) -> User:
        """Ann's account after the last step."""
        [item] = [item for item in self.items.values() if "userName" in item]
        return User.from_raw_data(item)


ENDED = "ended"


def end_all(scenario: EpochScenario) -> str:
    """End all sessions."""
    sessions.end_all(scenario.copies[0])
    return ENDED


def end_others(scenario: EpochScenario) -> str:
    """End all sessions but one."""
    mine = scenario.copies[1]
    mine.session_id = scenario.mine
    sessions.end_others(mine)
    return ENDED


def sign_in(scenario: EpochScenario) -> tuple[str, str]:
    """Begin a session; returns its id and its hash."""
    ann = scenario.copies[-1]
    return sessions.begin(ann), ann.get_session_auth_hash()


_FAULT_OF_MOTO = pytest.mark.fault_of("moto", "fails at the size of an attribute that is not there")


@pytest.mark.parametrize(
    ("acts", "losses"),
    [
        pytest.param([end_all, end_others], 1, id="all-others"),
        pytest.param([end_all, sign_in], 1, marks=_FAULT_OF_MOTO, id="all-sign-in"),
        pytest.param(
            [end_all, end_others, sign_in], 0, marks=_FAULT_OF_MOTO, id="all-others-sign-in"
        ),
        pytest.param(
            [end_all, end_others, sign_in],
            1,
            marks=pytest.mark.slow,
            id="all-others-sign-in-1-loss",
        ),
    ],
)
def test_ended_sessions_stay_ended_where_only_their_hash_is_compared(
    explore: Explore, acts: list[Callable[[EpochScenario], object]], losses: int
) -> None:
    def make() -> EpochScenario:
        scenario = EpochScenario(*acts)

        def expects(outcomes: list[Any]) -> None:
            ann = scenario.now()
            if ENDED in outcomes:
                assert ann.get_session_auth_hash() not in scenario.before
            living = ann.sessions_read()
            for begun in (each for each in outcomes if isinstance(each, tuple)):
                # The map and the hash agree on whether the session has ended.
                assert (begun[0] in living) == (begun[1] == ann.get_session_auth_hash())

        scenario.expects = expects
        return scenario

    assert explore(make, losses=losses) > 1
