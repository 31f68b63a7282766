"""Leases: the time for which a process holds a lock, and the threads that renew it.

The holder counts its lease from the time before it sent the request that began or renewed it. A
waiter counts the same lease from the time when it received the reply that showed it. Therefore, a
lease is over before the next one begins, if the rates of the two clocks differ by less than one
part in a thousand. The holder shortens its lease by this part.

One thread watches when each lease is due, and starts a thread for each renewal. Therefore, a
renewal without an answer delays no other lease. At most one renewal per lease is in progress. The
watching thread starts with the first lease and ends within a second of the release of the last one.
A forked child has neither the thread nor its parent's leases.

A process that ends releases the leases that it still holds, so that nothing waits for them to
expire. This also happens in workers of `multiprocessing` (some servers use them), where `atexit`
does not run. A process that is killed by a signal releases nothing.
"""

import logging
import os
import threading
from collections.abc import Callable
from enum import Enum

from dynamo import DamagedItem, DynamoError, Transaction, Unavailable
from dynamo.client import tally
from dynamo.client.retries import pause_seconds
from dynamo.runtime.altering import AltersData
from dynamo.runtime.clock import now
from dynamo.runtime.deadline import page_deadline, within
from dynamo.runtime.processes import PerProcess
from dynamo.signals import tables_emptied
from dynamo.wire.types import Item
from locks import requests
from locks.exceptions import LeaseLost
from locks.models import LockItem
from locks.signals import lease_lost

log = logging.getLogger(__name__)

#: The relative difference that the rates of two clocks may have.
CLOCK_DRIFT = 0.001

#: A lease is renewed after this part of it: 5 s of 20, as in the lock client for Java.
RENEWED_AFTER = 0.25

#: The most record versions that a lease remembers while its renewals get no answer. There are fewer
#: renewals in a lease (`MOST_FAILURES`). DynamoDB's IN takes 100 operands, the left one included:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MOST_VERSIONS = 99

_LATE = "it was not renewed in time"
_TAKEN = "another process holds the lock, or it was broken"
_REASONS = {_LATE: "late", _TAKEN: "taken"}

#: The longest sleep of the watching thread, because the clock of a sleep stops while the machine is
#: suspended. After the last lease, the thread also continues for this time. If the next lease comes
#: soon, no other thread is started.
LOOK_SECONDS = 1.0

#: About this many renewals of one lease may fail before it is over.
MOST_FAILURES = 64

#: An ending process starts requests that release leases for this time. The last one may take
#: `dynamo.client.sending.READ_SECONDS` more.
ENDING_SECONDS = 2.0


class _State(Enum):
    HELD = "held"
    #: `release` was called, even if its request got no answer.
    RELEASED = "released"
    LOST = "lost"


class Lease(AltersData):
    """The time for which this process holds a lock; returned by `Lock.acquire`.

    It is renewed in the background until it is released or lost. It can be used from any thread. In
    a forked child, it counts as ended.

    - `name`: the name of the lock.
    - `owner`: the name of this holder.
    - `fence`: the fencing token, higher than that of every lease before.
    - `lease_seconds`: how long the lease lasts without a renewal.
    - `data`: the bytes that the lock had when it was taken, or that `leave` stored; or None.
    - `lost`: an event that is set when the lease is found to be lost, but not by `release`. If
      renewals fail, this takes up to about a second more than the lease; `check` knows at once.
    """

    _alters_data = "hold_in renew leave release"

    def __init__(self, version: str, item: Item, lease_seconds: float, sent_at: float) -> None:
        """The request that was sent at `sent_at` stored `item`, the lock, under `version`.

        Raises:
            DamagedItem: the fencing token is not a whole number.
        """
        self.name: str = item["key"]["S"]
        self.owner: str = item["ownerName"]["S"]
        self.data: bytes | None = item.get("data", {}).get("B")
        try:
            self.fence = int(item["fencingToken"]["N"])
        except ValueError as error:
            raise DamagedItem(LockItem.table(), self.name, "fencingToken") from error
        #: The requests of its renewals count on this tally.
        self.tally = tally.current()
        #: The stored lock when it was taken, on the wire.
        self.taken = item
        self.lease_seconds = lease_seconds
        self.lost = threading.Event()
        #: The number of failed renewals in the background since the last success.
        self.failures = 0
        self._state = _State.HELD
        self._why_lost = ""
        # This lock is held to change `_state` and `_why_lost`.
        self._changing = threading.Lock()
        self._pid = os.getpid()
        # The record versions that our requests may have stored. Empty after an answer showed that
        # the lock is released or not ours.
        self._versions = [version]
        # Renewals and the release are sent one at a time: each needs the version of the last one.
        self._writing = threading.Lock()
        self._sent_at = sent_at

    def __repr__(self) -> str:
        return f"<Lease {self.name!r} fence={self.fence} {self._state.value}>"

    @property
    def is_held(self) -> bool:
        """Whether the lease was neither released nor found to be lost until now."""
        return self._state is _State.HELD

    @property
    def released(self) -> bool:
        """Whether an answer confirmed that the lock was released."""
        return self._state is _State.RELEASED and not self._versions

    @property
    def remaining_seconds(self) -> float:
        """The remaining time of the lease without a renewal; 0 if it is over."""
        if self._state is not _State.HELD or not self._is_own_process():
            return 0.0
        return max(0.0, self._ends_at - now())

    @property
    def renewal_due_at(self) -> float:
        """The time of the next renewal, on `dynamo.runtime.clock`."""
        return self._sent_at + self.lease_seconds * RENEWED_AFTER

    @property
    def _ends_at(self) -> float:
        return self._sent_at + self.lease_seconds * (1 - CLOCK_DRIFT)

    def _is_own_process(self) -> bool:
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise LeaseLost unless this process certainly still holds the lock. Costs no request.

        Call it before each step of long work. The lease may still end between the check and a write
        to another system. Pass the fencing token to such systems, and use `hold_in` for DynamoDB.

        Raises:
            LeaseLost: another process may hold the lock now. All later calls raise it as well.
        """
        if not self._is_own_process():
            raise LeaseLost(self.name, self.fence, "it belongs to the process that acquired it")
        self._notice_the_end()
        self._raise_if_lost()
        if self._state is _State.RELEASED:
            raise LeaseLost(self.name, self.fence, "it was released")

    def _notice_the_end(self) -> None:
        if self._state is _State.HELD and now() >= self._ends_at:
            self._lose(_LATE)

    def _lose(self, why: str) -> None:
        # Several threads may notice the loss at the same time. Only the first reason is logged.
        with self._changing:
            if self._state is _State.LOST:
                return
            self._state, self._why_lost = _State.LOST, why
        self.lost.set()
        lease_lost.send_robust(type(self), name=self.name, reason=_REASONS[why])
        log.warning("%s", LeaseLost(self.name, self.fence, why))

    def _raise_if_lost(self, cause: Exception | None = None) -> None:
        if self._state is _State.LOST:
            raise LeaseLost(self.name, self.fence, self._why_lost) from cause

    def hold_in(self, write: Transaction) -> None:
        """Let `write` commit only if the lease still holds the lock at that instant.

        Adds one action to the transaction; costs 2 write units.

        Raises:
            LeaseLost: the lock is not held any more; also raised by the commit.
        """
        self.check()
        held = (
            (LockItem.owner == self.owner)
            & (LockItem.fence == self.fence)
            & LockItem.released.does_not_exist()
        )
        lost = LeaseLost(self.name, self.fence, _TAKEN)
        write.check(LockItem(self.name), held, otherwise=lost)

    def renew(self) -> None:
        """Start the lease again from now. It is renewed in the background without this call.

        Costs 1 request, 1 write unit.

        Raises:
            LeaseLost: the lease was over, or another process holds the lock.
            Unavailable: no answer; the lease keeps its old end.
        """
        self._renew()

    def leave(self, data: bytes) -> None:
        """Store `data` with the lock, for its next holders to read, and renew the lease.

        Costs 1 request, 1 write unit per KB.

        Raises:
            LeaseLost, Unavailable: as in `renew`.
            Rejected: more than fits into an item of 400 KB.
            TypeError: `data` is not bytes.
        """
        self._renew(requests.checked_data(data))
        self.data = data

    def _renew(self, data: bytes | None = None) -> None:
        # This is also checked before the lock is taken, because a forked child would wait for it
        # forever.
        self.check()
        with self._writing:
            self.check()
            sent_at = now()
            known, version = self._note_next_version()
            # No attempt begins after the end of the lease.
            with within(self.remaining_seconds):
                ours = requests.renew(self.name, known, version, data)
            if ours:
                self._versions = [version]
                self._sent_at = sent_at
            else:
                self._versions = []
                self._lose(_TAKEN)
                self._raise_if_lost()

    def _note_next_version(self) -> tuple[list[str], str]:
        """Return the versions that may be stored, and a new one, which is added to them.

        It is added before it is sent. Therefore, the stored version is recognized even after a lost
        reply or an exception of a signal handler (Ctrl-C).
        """
        known = self._versions
        version = requests.new_version()
        first, *others = known
        self._versions = [first, *others[2 - MOST_VERSIONS :], version]
        return known, version

    def release(self, *, remove: bool = False, patience_seconds: float | None = None) -> None:
        """Release the lock, so that another process can have it at once.

        A second call has no effect.

        From this call on, the lease is over, even if the request fails. With `remove`, the lock's
        item is deleted. This is only for names that are not used again, because the fencing tokens
        of the next holder would start from the clock again. `patience_seconds` limits the wait for
        a renewal in progress. Costs 1 request, 1 write unit.

        Raises:
            LeaseLost: the lease was lost before.
            Unavailable: no answer. Call it again, or let the lease expire.
        """
        if not self._is_own_process():
            return
        self._notice_the_end()
        with self._changing:
            is_repeated = self._state is _State.RELEASED
            if self._state is _State.HELD:
                self._state = _State.RELEASED
        if not self._writing.acquire(timeout=-1 if patience_seconds is None else patience_seconds):
            raise Unavailable("UpdateItem", "a renewal has not been answered yet")
        try:
            if self._versions:
                self._send_release(remove=remove, is_repeated=is_repeated)
        finally:
            self._writing.release()
        self._raise_if_lost()

    def _send_release(self, *, remove: bool, is_repeated: bool) -> None:
        known, version = self._note_next_version()
        try:
            if remove:
                ours = requests.delete_held(self.name, known)
            else:
                ours = requests.release_held(self.name, known, version)
        except DynamoError as error:
            self._raise_if_lost(error)
            raise
        self._versions = []
        # If an earlier release arrived, another process may hold the lock now.
        if not (ours or is_repeated):
            self._lose(_TAKEN)


class _Heartbeats:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0
        #: The time of the next renewal of each lease, on `dynamo.runtime.clock`.
        self._due: dict[Lease, float] = {}
        self._is_ending = False
        self._at_end: object = None

    def keep(self, lease: Lease) -> None:
        with self._changed:
            if self._is_ending:
                raise LeaseLost(lease.name, lease.fence, "the process is ending")
            if self._at_end is None:
                # Imported here, because most processes never hold a lease.
                from multiprocessing.util import Finalize

                self._at_end = Finalize(None, self.end, exitpriority=0)
            if self._thread is None:
                self._thread = _start("lock heartbeats", self._beat)
            self._schedule(lease, lease.renewal_due_at)

    def drop_all(self) -> None:
        with self._changed:
            self._due.clear()

    def end(self) -> None:
        with self._changed:
            self._is_ending = True
            leases = [lease for lease in self._due if not lease.released]
        ends_at = now() + ENDING_SECONDS
        with page_deadline(ENDING_SECONDS):
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
                # The system cannot start a thread, or the interpreter is ending.
                self._retry_later(lease, error)

    def _wait_for_next(self) -> Lease | None:
        """Wait until a lease is due and return it; None if no lease is left."""
        with self._changed:
            while self._due:
                lease = min(self._due, key=self._due.__getitem__)
                left = self._due[lease] - now()
                if left <= 0 and lease.is_held:
                    # Until the renewal is answered, the next due time is the end of the lease.
                    self._due[lease] = now() + max(lease.remaining_seconds, LOOK_SECONDS)
                    return lease
                left = min(max(left, 0.0), LOOK_SECONDS)
                self._wakes_at = now() + left
                self._changed.wait(left)
                # It is removed only after the wait, so that one thread serves many short leases in
                # turn.
                self._due = {lease: due for lease, due in self._due.items() if lease.is_held}
            self._thread = None
            return None

    def _renew(self, lease: Lease) -> None:
        try:
            with tally.counted_on(lease.tally):
                lease.renew()
        except LeaseLost:
            with self._changed:
                self._due.pop(lease, None)
        except Exception as error:
            # Any error is retried, because the next attempt may succeed while the lease lasts.
            self._retry_later(lease, error)
        else:
            lease.failures = 0
            self._put_off(lease, lease.renewal_due_at)

    def _retry_later(self, lease: Lease, error: Exception) -> None:
        """Renew `lease` after a pause, which ends at the latest when the lease is over."""
        if not lease.failures:
            log.warning("The lease on %r is not renewed yet: %s", lease.name, error)
        pause = max(pause_seconds(lease.failures), lease.lease_seconds / MOST_FAILURES)
        lease.failures += 1
        self._put_off(lease, now() + min(pause, lease.remaining_seconds))

    def _put_off(self, lease: Lease, due: float) -> None:
        with self._changed:
            if lease in self._due:
                self._schedule(lease, due)

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
