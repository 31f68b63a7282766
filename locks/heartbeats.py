"""Renews all leases of the process while they are held.

One thread watches when each lease is due, and starts a thread for each renewal. So a renewal that
gets no answer delays no other lease's: a process has at most as many renewals under way as leases.
The watching thread is started by the first lease and ends within a second of the last one. A forked
child has neither it nor its parent's leases; it starts its own with its first lease.

A process that ends gives back what it still holds, so that nobody waits for a lease to lapse: the
lease of a thread that ends with the process, say. It does so after `atexit`'s manner, and in the
workers of `multiprocessing` too, which some servers' are and in which `atexit` says nothing. One
that is killed by a signal gives back nothing.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import TYPE_CHECKING

from dynamo.client.deadline import page
from dynamo.client.retries import pause_seconds
from dynamo.exceptions import DynamoError
from dynamo.tally import counted_on
from locks.clock import now
from locks.exceptions import LeaseLost, LockError

if TYPE_CHECKING:
    from locks.leases import Lease

log = logging.getLogger(__name__)


#: How long the watching thread sleeps at most before it looks again. Every clock that it could
#: sleep on stands still while the machine sleeps, and a thread that is there already saves starting
#: one.
LOOK_SECONDS = 1.0

#: How many renewals of one lease may fail, about, before it is over.
MOST_FAILURES = 64

#: For so long an ending process begins requests that give its leases back. The last of them may
#: take `dynamo.client.sending.READ_SECONDS` more.
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
        with self._changed:
            if self._is_ending:
                raise LeaseLost(lease.name, lease.fence, "the process is ending")
            if self._at_end is None:
                self._at_end = Finalize(None, self.end, exitpriority=0)
            if self._thread is None:
                self._thread = _started("lock heartbeats", self._beat)
            self._schedule(lease, lease.renewal_due_at)

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
        while (lease := self._next()) is not None:
            try:
                _started("lock renewal", self._renew, lease)
            except RuntimeError as error:
                # The system has no thread left, or the interpreter is ending.
                self._retry_soon(lease, error)

    def _next(self) -> Lease | None:
        """The lease whose turn it is, when it is; None once there is none."""
        with self._changed:
            while self._due:
                lease = min(self._due, key=self._due.__getitem__)
                left = self._due[lease] - now()
                if left <= 0:
                    # Until its renewal is answered: once the lease is over, the next one notices.
                    self._due[lease] = now() + max(lease.remaining_seconds, LOOK_SECONDS)
                    return lease
                left = min(left, LOOK_SECONDS)
                self._wakes_at = now() + left
                self._changed.wait(left)
            self._thread = None
            return None

    def _renew(self, lease: Lease) -> None:
        try:
            with counted_on(lease.tally):
                lease.renew()
        except LeaseLost:
            self.drop(lease)
        except Exception as error:
            # Of any kind: while the lease lasts, the next attempt may succeed.
            self._retry_soon(lease, error)
        else:
            self._put_off(lease, lease.renewal_due_at)

    def _retry_soon(self, lease: Lease, error: Exception) -> None:
        """Renew it again after a pause; the lease's own clock says when it is over."""
        failures = self._failures.get(lease, 0)
        if not failures:
            log.warning("The lease on %r was not renewed yet: %s", lease.name, error)
        pause = max(pause_seconds(failures), lease.lease_seconds / MOST_FAILURES)
        self._put_off(lease, now() + min(pause, lease.remaining_seconds), failures + 1)

    def _put_off(self, lease: Lease, due: float, failures: int = 0) -> None:
        with self._changed:
            if lease in self._due:
                self._schedule(lease, due)
                self._failures[lease] = failures

    def _schedule(self, lease: Lease, due: float) -> None:
        self._due[lease] = due
        if due < self._wakes_at:
            self._changed.notify()


def _started(name: str, work: Callable[..., None], *arguments: Lease) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


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
