"""A session that is created, saved and ended: every order of requests, lost or late, and time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import cache

from dynamo.cacheitems import CacheItem, now_ms
from dynamo.client import send
from dynamo.exceptions import ConditionFailed, DynamoError, Unavailable
from dynamo.sessions import SessionStore
from tests.emptying import empty
from tests.worlds.conftest import Explore
from tests.worlds.operations import wait_for
from tests.worlds.seams import Clock


class SessionWorld:
    """No session yet. The first operation creates one and ends it; others act on its key."""

    late: set[int]

    def __init__(self, clock: Clock, *others: Callable[[SessionWorld], object]) -> None:
        empty(CacheItem.table(), ("key",))
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


def save(world: SessionWorld) -> None:
    """Store something in the session, as a page does that is answered at the same time."""
    wait_for(world.is_known, "a session")
    page = SessionStore(world.key)
    page["visits"] = 1
    page.save()


def let_time_pass(world: SessionWorld) -> None:
    """Let as much time pass as a session lasts; meanwhile DynamoDB deletes what has expired."""
    wait_for(world.is_known, "a session")
    for _ in range(2):
        world.clock.pass_seconds(settings.SESSION_COOKIE_AGE / 2 + 1)
        delete_if_expired(SessionStore(world.key).cache_key)


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
    explore: Explore, others: list[Callable[[SessionWorld], object]], losses: int
) -> None:
    clock = Clock()

    schedules = explore(lambda: SessionWorld(clock, *others), losses=losses, clock=clock)

    assert schedules > 1
