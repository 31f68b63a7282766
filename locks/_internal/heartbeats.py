"""Renews all leases of the process until they are released.

One thread watches when each lease is due, and starts a thread for each renewal. So a renewal
without an answer delays no other lease; at most one renewal per lease is under way. The watching
thread starts with the first lease and ends within a second of the release of the last one. A
forked child has neither the thread nor its parent's leases.

A process that ends releases the leases that it still holds, so that nothing waits for them to
expire. This also happens in workers of `multiprocessing` (some servers use them), where `atexit`
does not run. A process that a signal kills releases nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo._internal.client.deadline import page
from dynamo._internal.client.retries import pause_seconds
from dynamo._internal.clock import now
from dynamo._internal.processes import PerProcess
from dynamo._internal.tally import counted_on
from dynamo.exceptions import DynamoError
from dynamo.signals import tables_emptied
from locks._internal.leases import Lease
from locks.exceptions import LeaseLost

if TYPE_CHECKING:
    from multiprocessing.util import Finalize

log = logging.getLogger(__name__)

#: How long the watching thread sleeps at most before it looks again: the clocks that it can sleep
#: on stand still during suspend, and a thread that still runs need not be started again.
LOOK_SECONDS = 1.0

#: About how many renewals of one lease may fail before it is over.
MOST_FAILURES = 64

#: How long an ending process starts requests that release leases. The last one may take
#: `dynamo._internal.client.sending.READ_SECONDS` more.
ENDING_SECONDS = 2.0


class _Heartbeats:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        #: When each lease is to be renewed next, on `dynamo._internal.clock`.
        self._due: dict[Lease, float] = {}
        self._failures: dict[Lease, int] = {}
        self._is_ending = False
        self._at_end: Finalize | None = None

    def keep(self, lease: Lease) -> None:
        with self._changed:
            if self._is_ending:
                raise LeaseLost(lease.name, lease.fence, "the process is ending")
            if self._at_end is None:
                # Here, because most processes never hold a lease.
                from multiprocessing.util import Finalize

                self._at_end = Finalize(None, self.end, exitpriority=0)
            if self._thread is None:
                self._thread = _start("lock heartbeats", self._beat)
            self._schedule(lease, lease.renewal_due_at)

    def drop(self, lease: Lease) -> None:
        with self._changed:
            self._due.pop(lease, None)
            self._failures.pop(lease, None)

    def drop_all(self) -> None:
        for lease in list(self._due):
            self.drop(lease)

    def end(self) -> None:
        with self._changed:
            self._is_ending = True
            leases = [lease for lease in self._due if not lease.released]
        ends_at = now() + ENDING_SECONDS
        with page(ENDING_SECONDS):
            for lease in leases:
                try:
                    lease.release(patience_seconds=max(0.0, ends_at - now()))
                except DynamoError as error:
                    log.warning(
                        "The process ended without releasing the lock %r: %s", lease.name, error
                    )

    def _beat(self) -> None:
        while (lease := self._wait_for_next()) is not None:
            try:
                _start("lock renewal", self._renew, lease)
            except RuntimeError as error:
                # The system has no thread left, or the interpreter is ending.
                self._retry_later(lease, error)

    def _wait_for_next(self) -> Lease | None:
        """Wait until a lease is due and return it; None once no lease is left."""
        with self._changed:
            while self._due:
                lease = min(self._due, key=self._due.__getitem__)
                left = self._due[lease] - now()
                if left <= 0 and lease.is_held:
                    # It is due again when the lease is over, unless the renewal is answered before.
                    self._due[lease] = now() + max(lease.remaining_seconds, LOOK_SECONDS)
                    return lease
                left = min(max(left, 0.0), LOOK_SECONDS)
                self._wakes_at = now() + left
                self._changed.wait(left)
                # After the wait: the thread then serves many short leases, one after the other.
                for ended in [lease for lease in self._due if not lease.is_held]:
                    self.drop(ended)
            self._thread = None
            return None

    def _renew(self, lease: Lease) -> None:
        try:
            with counted_on(lease.tally):
                lease.renew()
        except LeaseLost:
            self.drop(lease)
        except Exception as error:
            # Whatever failed: while the lease lasts, the next attempt may succeed.
            self._retry_later(lease, error)
        else:
            self._put_off(lease, lease.renewal_due_at)

    def _retry_later(self, lease: Lease, error: Exception) -> None:
        """Renew `lease` after a pause; its own clock tells when it is over."""
        failures = self._failures.get(lease, 0)
        if not failures:
            log.warning("The lease on %r is not renewed yet: %s", lease.name, error)
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


def _start(name: str, work: Callable[..., None], *arguments: Lease) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, name=name, daemon=True)
    thread.start()
    return thread


_of_process = PerProcess(_Heartbeats)


def keep(lease: Lease) -> None:
    """Renew the lease until it is released or lost. Release it when the process ends.

    Raises:
        LeaseLost: the process is ending.
    """
    _of_process().keep(lease)


tables_emptied.connect(lambda **_signal: _of_process().drop_all(), weak=False)
