"""The one thread of a process that renews all its leases while they are held.

It is started by the first lease and ends with the process, or within a second of the last lease. A
forked child has no such thread and holds none of its parent's leases; it starts its own with its
first.

A process that ends gives back what it still holds, so that nobody waits for a lease to lapse: the
lease of a thread that ends with the process, say. It does so after `atexit`'s manner, and in the
workers of `multiprocessing` too, which some servers' are and in which `atexit` says nothing. One
that is killed by a signal gives back nothing.
"""

from __future__ import annotations

import logging
import os
import threading
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from dynamo.deadline import page, within
from dynamo.exceptions import DynamoError
from dynamo.retries import pause_seconds
from dynamo.tally import counted_on
from locks.clock import now
from locks.exceptions import LeaseLost, LockError

if TYPE_CHECKING:
    from locks.leases import Lease

log = logging.getLogger(__name__)


#: How long the thread waits at most before it looks again. Every clock that it could sleep on
#: stands still while the machine sleeps, and a thread that is there already saves starting one.
LOOK_SECONDS = 1.0

#: How many renewals of one lease may fail, about, before it is over.
MOST_FAILURES = 64

#: For so long an ending process begins requests that give its leases back. The last of them may
#: take `dynamo.client.READ_SECONDS` more.
ENDING_SECONDS = 2.0


class _Heartbeats:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        #: When each lease is to be renewed next, on `locks.clock`.
        self._due: dict[Lease, float] = {}
        self._failures: dict[Lease, int] = {}
        self._is_ending = False
        self._at_end: Finalize | None = None

    def keep(self, lease: Lease) -> None:
        due = lease.renewal_due_at
        with self._changed:
            if self._is_ending:
                raise LeaseLost(lease.name, lease.fence, "the process is ending")
            if self._at_end is None:
                self._at_end = Finalize(None, self.end, exitpriority=0)
            if self._thread is None:
                thread = threading.Thread(target=self._beat, name="lock heartbeats", daemon=True)
                thread.start()
                self._thread = thread
            elif due < self._wakes_at:
                self._changed.notify()
            self._due[lease] = due

    def drop(self, lease: Lease) -> None:
        # The thread is not woken for it: it looks soon anyway, and ends where nothing is left.
        with self._changed:
            self._due.pop(lease, None)
            self._failures.pop(lease, None)

    def end(self) -> None:
        with self._changed:
            self._is_ending = True
            leases = list(self._due)
        ends_at = now() + ENDING_SECONDS
        with page(ENDING_SECONDS):
            for lease in leases:
                try:
                    lease.release(patience_seconds=max(0.0, ends_at - now()))
                except (DynamoError, LockError) as error:
                    log.warning("At the end, the lock %r was not released: %s", lease.name, error)

    def _beat(self) -> None:
        try:
            while (lease := self._next()) is not None:
                self._renew(lease)
        finally:
            # After a fault of our own as well: the next lease finds no dead thread in its place.
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _next(self) -> Lease | None:
        """The lease whose turn it is, when it is; None when there is none any more."""
        with self._changed:
            while self._due:
                lease = min(self._due, key=self._due.__getitem__)
                left = self._due[lease] - now()
                if left <= 0:
                    return lease
                left = min(left, LOOK_SECONDS)
                self._wakes_at = now() + left
                self._changed.wait(left)
            self._thread = None
            return None

    def _renew(self, lease: Lease) -> None:
        try:
            # One that is not answered must not cost the others their time.
            with within(self._patience_seconds()), counted_on(lease.tally):
                lease.renew()
        except LeaseLost:
            self.drop(lease)
        except DynamoError as error:
            self._again(lease, error)
        else:
            self._put_off(lease, lease.renewal_due_at)

    def _patience_seconds(self) -> float:
        with self._changed:
            return min((lease.lease_seconds / 4 for lease in self._due), default=0.0)

    def _again(self, lease: Lease, error: DynamoError) -> None:
        """Try soon once more; the lease's own clock says when it is over."""
        failures = self._failures.get(lease, 0)
        if not failures:
            log.warning("The lease on %r is not renewed, so far: %s", lease.name, error)
        pause = max(pause_seconds(failures), lease.lease_seconds / MOST_FAILURES)
        self._put_off(lease, now() + min(pause, lease.remaining_seconds), failures + 1)

    def _put_off(self, lease: Lease, due: float, failures: int = 0) -> None:
        with self._changed:
            if lease in self._due:
                self._due[lease] = due
                self._failures[lease] = failures


_of_process = _Heartbeats()


def keep(lease: Lease) -> None:
    """Renew the lease from now on, until it is dropped or lost; give it back with the process.

    Raises:
        LeaseLost: the process is ending.
    """
    _of_process.keep(lease)


def drop(lease: Lease) -> None:
    """Renew the lease no more."""
    _of_process.drop(lease)


def _begin_anew() -> None:
    global _of_process
    _of_process = _Heartbeats()


os.register_at_fork(after_in_child=_begin_anew)
