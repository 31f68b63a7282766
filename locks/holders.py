"""Processes that hold many items with one lock each.

A process holds one lock, and each item that it works on names that lock and its fencing token.
Therefore, one heartbeat keeps all of them, and a process that died is noticed once, not once per
item. Every write to such an item requires that the item names the writer. `uploads` and `outbox` do
this; `HolderWatch` tells others when a holder is gone.
"""

import logging
import math
import threading
import time
import uuid
from typing import NamedTuple

from dynamo import DynamoError
from dynamo.runtime.clock import now
from locks import requests
from locks.exceptions import LeaseLost, LockChanged
from locks.leases import Lease
from locks.lock import LEASE_SECONDS, Lock
from locks.models import RELEASED
from locks.registry import Watch

log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """The process that an item names, by its lock and the fencing token of the lock."""

    lease: str
    fence: int


class ProcessLease:
    """The lease of this process, on a lock whose name begins with `prefix`.

    If the lease is lost, the next one has a new lock.

    Raises:
        ValueError: `lease_seconds` is out of range.
    """

    def __init__(self, prefix: str, lease_seconds: float = LEASE_SECONDS) -> None:
        self._prefix = prefix
        self._lease_seconds = lease_seconds
        # The first lock is made later, but this raises errors about wrong options.
        self._new_lock()
        self._lease: Lease | None = None
        self._changing = threading.Lock()

    def current(self) -> Lease:
        """The lease, which is acquired if there is none or it was lost.

        The new lock has a new name. Items claimed under a lost lease still name the old one, so
        other processes take them over. Costs nothing if the lease is held, else 1 request and 1
        write unit; twice that to replace a lost lease.

        Raises:
            Unavailable: DynamoDB did not answer.
        """
        with self._changing:
            if self._lease is None or not self._lease.remaining_seconds:
                self._remove()
                self._lease = self._new_lock().acquire()
            return self._lease

    def _new_lock(self) -> Lock:
        name = f"{self._prefix}{uuid.uuid4()}"
        return Lock(name, lease_seconds=self._lease_seconds)

    def release(self) -> None:
        """Remove the lock, so that items that still name it are free at once."""
        with self._changing:
            self._remove()

    def _remove(self) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            lease.release(remove=True)
        except LeaseLost:
            return  # another process has removed it
        except DynamoError as error:
            log.warning("The lock %r was not removed: %s", lease.name, error)


class HolderWatch(Watch):
    """Watches a holder until it is gone.

    This is for a process that needs the items of the holder, not the lock itself.
    """

    def __init__(self, holder: Holder) -> None:
        super().__init__()
        self._holder = holder

    def is_gone(self) -> bool:
        """Read the lock once: did the holder release it, lose it, or let a whole lease pass?

        If so, it renews no more, and no transaction commits under its lease: after a whole lease
        the lock is deleted, because a holder that was only slow could still renew it. Costs 1
        request and 1 read unit; 1 request and 1 write unit more, once, to delete the lock.

        Raises:
            DamagedItem: the lock has no usable lease.
            Unavailable: no answer. Call it again.
        """
        lock = requests.read(self._holder.lease)
        if lock is None or lock.released == RELEASED or lock.fence != self._holder.fence:
            return True
        if not self.saw_whole_lease(lock, now()):
            return False
        try:
            requests.break_seen(self._holder.lease, lock.stored, delete=True)
        except LockChanged:
            # The holder has just renewed the lock.
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
