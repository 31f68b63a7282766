"""Scenarios of locks, and the rules of leases and fencing tokens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dynamo._internal.client.sending import send
from dynamo.exceptions import DynamoError
from locks._internal import leases
from locks._internal.leases import Lease
from locks._internal.lock import Lock
from locks._internal.requests import read
from locks.exceptions import LockError
from locks.models import LockItem
from tests.interleavings.operations import DEAD

NAME = "report"
LEASE_SECONDS = 20.0


class Leases:
    """Every lease of a scenario. None is renewed unless an operation does it."""

    def __init__(self) -> None:
        self.all: list[Lease] = []

    def keep(self, lease: Lease) -> None:
        """`leases.keep`."""
        self.all.append(lease)

    def assert_exclusive(self) -> None:
        """At most one has not expired, and each has a higher fencing token."""
        assert sum(lease.remaining_seconds > 0 for lease in self.all) <= 1
        fences = [lease.fence for lease in self.all]
        assert fences == sorted(set(fences))


@contextmanager
def noted() -> Iterator[Leases]:
    """Note the leases that are taken, instead of renewing them."""
    kept = Leases()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "keep", kept.keep)
        yield kept


class LockScenario:
    """The lock NAME, which was never taken at first."""

    #: Whether an operation breaks the lock.
    breaks = False
    late: set[int]

    def __init__(self, leases: Leases) -> None:
        send("DeleteItem", {"TableName": LockItem.table(), "Key": {"key": {"S": NAME}}})
        leases.all.clear()
        self.leases = leases
        self.operations: list[Callable[[], object]] = []
        self.expects: Callable[[list[Any]], None] = lambda _outcomes: None

    def always(self, wrote: bool) -> None:
        """Leases exclude each other, and no lease has a higher fencing token than is stored."""
        if not self.breaks:
            self.leases.assert_exclusive()
        if wrote and self.leases.all:
            assert fence_stored() >= max(lease.fence for lease in self.leases.all)

    def afterwards(self, outcomes: list[Any]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, (LockError, DynamoError)):
                raise outcome
        self.expects(outcomes)


def lock(wait_seconds: float = LEASE_SECONDS + 1) -> Lock:
    """The lock of one operation; a waiter reads it again only when the lease may have expired."""
    return Lock(NAME, lease_seconds=LEASE_SECONDS, wait_seconds=wait_seconds, poll_seconds=1000)


def try_once() -> Lease | None:
    """Take the lock if it is free."""
    return lock().try_acquire()


def wait_and_take() -> Lease:
    """Take the lock, or wait until the lease of its holder expires."""
    return lock().acquire()


def fence_stored() -> int:
    """The stored fencing token, or 0."""
    stored = read(NAME)
    return 0 if stored is None or stored.fence is None else stored.fence


def answers(outcomes: list[Any]) -> list[str]:
    """Each outcome in a word: held, none, dead, the name of the error, otherwise done."""

    def word(outcome: Any) -> str:
        if isinstance(outcome, Exception):
            return type(outcome).__name__
        if isinstance(outcome, Lease):
            return "held"
        return "none" if outcome is None else DEAD if outcome == DEAD else "done"

    return [word(each) for each in outcomes]
