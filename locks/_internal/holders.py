"""How a process learns that the holder of a lock is gone, without comparing two machines' clocks.

Each renewal gives a lock a new record version. A process that has seen the same version for the
holder's whole lease, on its own clock, knows that the holder did not renew in that time.

Source: "Building Distributed Locks with the DynamoDB Lock Client", AWS Database Blog, 2017.
"""

from __future__ import annotations

import math
import time

from dynamo._internal.clock import now
from dynamo.exceptions import DamagedItem
from locks._internal import requests
from locks.exceptions import LockChanged
from locks.models import RELEASED, LockItem

#: A longer lease (30 years) is taken for damage.
LONGEST_LEASE_MILLISECONDS = 10**12


def is_free(stored: LockItem | None) -> bool:
    """Whether the lock has no holder: it was released, or never taken."""
    return stored is None or stored.released == RELEASED


def lease_seconds_of(stored: LockItem) -> float:
    """The lease of a lock's holder; infinity for a claim.

    Raises:
        DamagedItem: it is not a whole number of milliseconds.
    """
    text: str | None = stored.lease_milliseconds
    if text is None:
        return math.inf
    # The text may have any length, so it is not parsed if it is longer than the longest lease.
    if not (text.isascii() and text.isdigit() and len(text) <= 13):
        raise DamagedItem(LockItem.table(), stored.name, f"leaseDuration is {text[:40]!r}")
    return int(text) / 1000


class Watch:
    """Watches one lock by its record version until its holder is certainly gone."""

    def __init__(self) -> None:
        self.seen: LockItem | None = None
        #: When the holder's lease will have been watched as a whole, on `dynamo._internal.clock`.
        self.ends_at = math.inf

    def saw_whole_lease(self, stored: LockItem, at: float) -> bool:
        """Whether the holder did not renew for its whole lease, if nothing changed until `at`.

        `stored` is what the last consistent read returned; its reply had arrived by `at`. If True,
        a write decides under the condition that `stored` has not changed.

        Raises:
            DamagedItem: the lease is not a whole number of milliseconds.
        """
        if self.seen is None or stored.version != self.seen.version:
            self.ends_at = at + lease_seconds_of(stored)
            self.seen = stored
        return at >= self.ends_at


class HolderWatch:
    """Watches the holder of the lock `name` with the fencing token `fence` until it is gone.

    For a process that wants what the holder worked on, not the lock itself.
    """

    def __init__(self, name: str, fence: int) -> None:
        self._name = name
        self._fence = fence
        self._watch = Watch()
        #: Whether the holder renewed its lease between two looks.
        self.has_renewed = False

    @property
    def ends_at(self) -> float:
        """When the lease will have been watched as a whole, on `dynamo._internal.clock`.

        Infinity before the first look, and for a claim.
        """
        return self._watch.ends_at

    def is_gone(self) -> bool:
        """Read the lock once: did the holder release it, lose it, or let a whole lease pass?

        If so, it renews no more, and no transaction commits under its lease: after a whole lease
        the lock is deleted, because a holder that was only slow could still renew it. Costs 1
        request and 1 read unit; 1 request and 1 write unit more, once, to delete the lock.

        Raises:
            DamagedItem: the lock has no usable lease.
            Unavailable: no answer; a later look will tell.
        """
        lock = requests.read(self._name)
        seen_at = now()
        if lock is None or is_free(lock) or lock.fence != self._fence:
            return True
        before = self._watch.seen
        self.has_renewed |= before is not None and before.version != lock.version
        if not self._watch.saw_whole_lease(lock, seen_at):
            return False
        try:
            requests.break_seen(self._name, lock.stored, delete=True)
        except LockChanged:
            # It renewed at this moment.
            return False
        return True

    def wait_until_gone(self, poll_seconds: float) -> bool:
        """Watch the holder for up to one lease; return whether it is gone.

        False if it renewed, or if it is a claim. Costs one `is_gone` every `poll_seconds`, and
        raises the same.
        """
        while not self.is_gone():
            if self.has_renewed or self.ends_at == math.inf:
                return False
            time.sleep(max(0.0, min(poll_seconds, self.ends_at - now())))
        return True
