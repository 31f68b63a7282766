"""Processes that hold many items at a time, each by one lock.

A process holds one lock, and each item that it works on names that lock and its fencing token.
Therefore, one heartbeat keeps all of them, and a process that died is noticed once, not once per
item. Every write to such an item requires that the item names the writer. `uploads` and `outbox` do
this; `locks.registry.HolderWatch` tells others when a holder is gone.
"""

import logging
import threading
import uuid
from typing import NamedTuple

from dynamo import DynamoError
from locks.exceptions import LeaseLost
from locks.leases import Lease
from locks.lock import LEASE_SECONDS, Lock

log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """The process that an item names, by its lock and that lock's fencing token."""

    lease: str
    fence: int


class ProcessLease:
    """The lease of this process, on a lock whose name begins with `prefix`.

    When it is lost, the next one is on a new lock.

    Raises:
        ValueError: `lease_seconds` is out of range.
    """

    def __init__(self, prefix: str, lease_seconds: float = LEASE_SECONDS) -> None:
        self._prefix = prefix
        self._lease_seconds = lease_seconds
        # The first lock is made later, but wrong options are an error here.
        self._new_lock()
        self._lease: Lease | None = None
        self._changing = threading.Lock()

    def current(self) -> Lease:
        """The lease, which is acquired if there is none or it was lost.

        The new lock has a new name. Items claimed under a lost lease still name the old one, so
        other processes take them over. Costs nothing, or 1 request and 1 write unit, twice that to
        replace a lost lease.

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
        return Lock(name, lease_seconds=self._lease_seconds, wait_seconds=0)

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
