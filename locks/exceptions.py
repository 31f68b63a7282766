"""Errors of locks.

LockError           a `dynamo.DynamoError`
├── BadLockName     a lock cannot have this name
├── LockTaken       another process held the lock until the wait ended
├── LeaseLost       the lease is over: another process may hold the lock
├── UnknownLock     there is no lock with this name
└── LockChanged     the lock has another holder than the one that was to be broken
"""

import math

from dynamo.exceptions import DynamoError
from dynamo.runtime.terminal import printable


class LockError(DynamoError):
    """Base of every error of locks."""


class BadLockName(LockError):
    """A lock cannot have this name: it is not a text, it is empty, or it is too long for a key."""

    name: object

    text = "The name of a lock must be text of 1 to 2,048 bytes in UTF-8."


class LockTaken(LockError):
    """Another process holds the lock.

    `owner` is its name, "" if unknown; `lease_seconds` is its lease, infinity for a claim.
    """

    name: str
    owner: str
    lease_seconds: float

    def __str__(self) -> str:
        how = "claimed for good" if math.isinf(self.lease_seconds) else "held"
        owner = printable(self.owner) or "an unknown process"
        return f"The lock {self.name!r} is {how} by {owner}."


class LeaseLost(LockError):
    """The lock may have another holder, because of `reason`.

    Write nothing more under this lease.
    """

    name: str
    fence: int
    reason: str

    text = "The lease on {name!r} (fence {fence}) is lost: {reason}."


class UnknownLock(LockError):
    """No lock has this name."""

    name: str

    text = "There is no lock {name!r}."


class LockChanged(LockError):
    """The lock changed after it was shown, and was therefore not broken."""

    name: str

    text = "The lock {name!r} has changed meanwhile. It was not broken. Look at it again."
