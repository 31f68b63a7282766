"""How a waiter learns that a holder is gone, without comparing two machines' clocks.

Each renewal gives a lock a new record version. Who has seen one and the same version for the
holder's whole lease, on its own clock, knows that the holder did not renew in that time.

Source: "Building Distributed Locks with the DynamoDB Lock Client", AWS Database Blog, 2017.
"""

from __future__ import annotations

import math

from dynamo.exceptions import DamagedItem
from locks.models import RELEASED, LockItem

#: A lease of more milliseconds than that (30 years) is no lease.
LONGEST_LEASE_MILLISECONDS = 10**12


def is_free(stored: LockItem | None) -> bool:
    """Whether nobody holds the lock: it was released, or never taken."""
    return stored is None or stored.released == RELEASED


def lease_seconds_of(stored: LockItem) -> float:
    """The lease of a lock's holder; of a claim, infinity.

    Raises:
        DamagedItem: it is no whole number of milliseconds.
    """
    text: str | None = stored.lease_milliseconds
    if text is None:
        return math.inf
    # A longer text than that of the longest lease is not even read: it may have any length.
    if not (text.isascii() and text.isdigit() and len(text) <= 13):
        raise DamagedItem(LockItem.table(), stored.name, f"leaseDuration is {text[:40]!r}")
    return int(text) / 1000


class Watch:
    """One lock, watched by its record version until its holder is certainly gone."""

    def __init__(self) -> None:
        self.seen: LockItem | None = None
        #: When the holder's lease will have been watched as a whole, on `locks.clock`.
        self.ends_at = math.inf

    def look_at(self, stored: LockItem, seen_at: float) -> None:
        """Take note of what a consistent read returned; `seen_at` is when its reply was there.

        Raises:
            DamagedItem: the lease is no whole number of milliseconds.
        """
        if self.seen is None or stored.version != self.seen.version:
            self.ends_at = seen_at + lease_seconds_of(stored)
            self.seen = stored

    def is_over(self, now: float) -> bool:
        """Whether the holder did not renew for its whole lease, if nothing changed until `now`.

        Take the lock `over` what was seen (`locks.records.take`), or look at it once more.
        """
        return now >= self.ends_at
