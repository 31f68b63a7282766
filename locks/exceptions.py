"""What can go wrong with locks.

LockError
├── BadLockName     no lock can have this name
├── LockTaken       another holds the lock, and did so until our patience ended
├── LeaseLost       our lease is over, or may be: another may hold the lock
├── UnknownLock     there is no such lock to be broken
└── LockChanged     the lock is no longer held by whom it was to be taken from
"""

from __future__ import annotations

import math

from dynamo.terminal import printable


class LockError(Exception):
    """Base of every error of locks."""


class BadLockName(LockError):
    """No lock can have this name: it is no text, empty, or too long for a key."""

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return "A lock's name is a text of 1 to 2,048 bytes in UTF-8."


class LockTaken(LockError):
    """Another holds the lock; `owner` is its name, "" where the item names none.

    `lease_seconds` is the holder's lease; of a claim, infinity.
    """

    def __init__(self, name: str, owner: str, lease_seconds: float) -> None:
        super().__init__(name, owner, lease_seconds)
        self.name = name
        self.owner = owner
        self.lease_seconds = lease_seconds

    @property
    def for_ever(self) -> bool:
        """Whether it is a claim, which never lapses."""
        return math.isinf(self.lease_seconds)

    def __str__(self) -> str:
        how = "claimed for good" if self.for_ever else "held"
        return f"The lock {self.name!r} is {how} by {printable(self.owner) or 'somebody'}."


class LeaseLost(LockError):
    """We may no longer hold the lock, so we write nothing more under it; `reason` says why."""

    def __init__(self, name: str, fence: int, reason: str) -> None:
        super().__init__(name, fence, reason)
        self.name = name
        self.fence = fence
        self.reason = reason

    def __str__(self) -> str:
        return f"The lease on {self.name!r} (fence {self.fence}) is lost: {self.reason}."


class UnknownLock(LockError):
    """There is no lock of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"There is no lock {self.name!r}."


class LockChanged(LockError):
    """The lock is no longer as it was when it was decided to break it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The lock {self.name!r} has another holder by now. Nothing was broken."
