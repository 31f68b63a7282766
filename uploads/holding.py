"""The lock that a process holds while it uploads: the rows that it works on name it.

So a process that died is watched once, by its lock, and not once for each of its rows; and so one
heartbeat keeps all its claims.
"""

from __future__ import annotations

import logging
import threading
import uuid

from dynamo.exceptions import DynamoError
from locks.exceptions import LeaseLost
from locks.leases import Lease
from locks.lock import Lock

log = logging.getLogger(__name__)

LOCK_PREFIX = "uploads#"

#: How long a process that died holds up the files that it had in hand, for all others.
LEASE_SECONDS = 20.0


class ProcessLease:
    """A lease on a lock of our own; when it is lost, on another one."""

    def __init__(self, lease_seconds: float = LEASE_SECONDS) -> None:
        self._lease_seconds = lease_seconds
        self._lease: Lease | None = None
        self._changing = threading.Lock()

    def current(self) -> Lease:
        """Our lease; a new one where there is none yet, or the old one was lost.

        The name is new as well, so what we claimed under the old lease is another's, who is gone.
        Costs nothing, or 1 request and 1 write unit, and as much again to remove a lost one.

        Raises:
            Unavailable: no answer.
        """
        with self._changing:
            if self._lease is not None:
                try:
                    self._lease.check()
                except LeaseLost:
                    self._remove(self._lease)
                    self._lease = None
            if self._lease is None:
                name = f"{LOCK_PREFIX}{uuid.uuid4()}"
                self._lease = Lock(
                    name, lease_seconds=self._lease_seconds, wait_seconds=0
                ).acquire()
            return self._lease

    def release(self) -> None:
        """Remove the lock, so that rows that still name it are free at once."""
        with self._changing:
            if self._lease is not None:
                self._remove(self._lease)
                self._lease = None

    def _remove(self, lease: Lease) -> None:
        try:
            lease.release(remove=True)
        except LeaseLost:
            return  # it is removed all the same, or was by another
        except DynamoError as error:
            log.warning("The lock %r was not removed: %s", lease.name, error)
