"""Whether the holder of a lock is gone, for who wants what it worked on and not the lock itself.

A holder that crashed cannot say so: its lock is watched for one whole lease (`locks.watching`), and
is then removed. Only that makes it certain, as one that was merely slow cannot renew it any more.
"""

from __future__ import annotations

import math
import time

from locks import records
from locks.clock import now
from locks.exceptions import LockChanged
from locks.watching import Watch, is_free


class HolderWatch:
    """Who held the lock `name` under the fencing token `fence`, watched until it is gone."""

    def __init__(self, name: str, fence: int) -> None:
        self._name = name
        self._fence = fence
        self._watch = Watch()
        #: Whether it renewed its lease between two of our looks.
        self.has_renewed = False

    @property
    def ends_at(self) -> float:
        """When its lease will have been watched as a whole, on `locks.clock`.

        Infinity before the first look, and where there is no lease that could end.
        """
        return self._watch.ends_at

    def is_gone(self) -> bool:
        """Look once: whether it has given the lock up, lost it, or let a whole lease pass.

        Then it renews no more, and no transaction commits under its lease. Costs 1 request and 1
        read unit; 1 request and 1 write unit more, once, to remove the lock after a whole lease.

        Raises:
            DamagedItem: the lock says nothing of its lease.
            Unavailable: no answer; a later look tells.
        """
        lock = records.read(self._name)
        seen_at = now()
        if lock is None or is_free(lock) or lock.fence != self._fence:
            return True
        before = self._watch.seen
        self.has_renewed |= before is not None and before.version != lock.version
        self._watch.look_at(lock, seen_at)
        # It may renew in this very moment, and then its lock is not removed.
        if not self._watch.is_over(seen_at):
            return False
        try:
            records.delete(self._name, lock.stored)
        except LockChanged:
            return False
        return True

    def is_outwaited(self, poll_seconds: float) -> bool:
        """Look until it is known: True where it is gone, False where it renewed or never lapses.

        Takes one lease at most; costs a look (see `is_gone`) each `poll_seconds`. Raises: as that.
        """
        while not self.is_gone():
            if self.has_renewed or self.ends_at == math.inf:
                return False
            time.sleep(max(0.0, min(poll_seconds, self.ends_at - now())))
        return True
