"""A session that is created, saved and ended, in every order of requests and with time."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache

from accounts.models import User
from accounts.sessions import services as sessions
from dynamo import ConditionFailed, DynamoError, Unavailable
from dynamo.cache.items import CacheItem, now_ms
from dynamo.client.sending import send
from dynamo.sessions import SessionStore
from tests.emptying import empty
from tests.factories import assert_guards_match_users
from tests.interleavings.account_races import signed_up
from tests.interleavings.conftest import Explore
from tests.interleavings.interception import Clock
from tests.interleavings.operations import wait_for
from tests.interleavings.scheduler import Scenario


class Session:
    """A session that is created and ended, while others act on its key."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.key = ""
        self.is_ended = False

    def wait_until_known(self) -> None:
        """Wait until it is about to be ended."""
        wait_for(lambda: bool(self.key), "a session")


def sign_in_and_out(session: Session) -> None:
    """Create the session, which may fail, and end it."""
    store = SessionStore()
    store["user"] = "ann"
    with suppress(Unavailable):
        store.save()
    session.key = store.session_key or ""
    store.flush()
    session.is_ended = True


def save(session: Session) -> None:
    """Save the session, as another page does at the same time."""
    session.wait_until_known()
    page = SessionStore(session.key)
    page["visits"] = 1
    page.save()


def let_time_pass(session: Session) -> None:
    """Let the lifetime of a session pass, while DynamoDB deletes expired items."""
    session.wait_until_known()
    for _ in range(2):
        session.clock.pass_seconds(settings.SESSION_COOKIE_AGE / 2 + 1)
        delete_if_expired(SessionStore(session.key).cache_key)


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
def test_an_ended_session_stays_ended_even_if_its_creation_arrives_late(
    explore: Explore, others: list[Callable[[Session], object]], losses: int
) -> None:
    clock = Clock()

    def make() -> Scenario:
        empty(CacheItem.table())
        session = Session(clock)

        def always(wrote: bool) -> None:
            if wrote and session.is_ended:
                assert not SessionStore().exists(session.key)

        def afterwards(outcomes: list[Any]) -> None:
            for error in (outcome for outcome in outcomes if isinstance(outcome, Exception)):
                if not isinstance(error, (DynamoError, UpdateError)):
                    raise error

        return Scenario(
            [partial(act, session) for act in (sign_in_and_out, *others)], afterwards, always
        )

    assert explore(make, losses=losses, clock=clock) > 1


ENDED = "ended"


def end_all(user: User) -> str:
    """End all sessions."""
    sessions.end_all(user)
    return ENDED


def end_others(user: User) -> str:
    """End all sessions but its own."""
    sessions.end_others(user)
    return ENDED


def sign_in(user: User) -> tuple[str, str]:
    """Begin a session; returns its id and its hash."""
    return sessions.begin(user), user.get_session_auth_hash()


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
    explore: Explore, acts: list[Callable[[User], object]], losses: int
) -> None:
    def make() -> Scenario:
        empty(User.table())
        ann = signed_up("ann")
        mine, _other = (sessions.begin(ann) for _ in range(2))
        # The hash of every session that has begun before.
        before, epochs = ann.get_session_auth_hash(), [ann.session_epoch]
        copies = [User.get(ann.pk) for _ in acts]
        for copy in copies:
            copy.session_id = mine

        def always(wrote: bool) -> None:
            """A session epoch that was replaced is never stored again."""
            assert_guards_match_users()
            if (epoch := User.get(ann.pk).session_epoch) != epochs[-1]:
                assert epoch not in epochs
                epochs.append(epoch)

        def afterwards(outcomes: list[Any]) -> None:
            now = User.get(ann.pk)
            if ENDED in outcomes:
                assert now.get_session_auth_hash() != before
            for begun in (outcome for outcome in outcomes if isinstance(outcome, tuple)):
                # The map and the hash agree on whether the session has ended.
                is_living = begun[0] in now.sessions_read()
                assert is_living == (begun[1] == now.get_session_auth_hash())

        operations = [partial(act, copy) for act, copy in zip(acts, copies, strict=True)]
        return Scenario(operations, afterwards, always)

    assert explore(make, losses=losses) > 1
