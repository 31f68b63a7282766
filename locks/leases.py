"""A lease: the time for which a lock is ours, renewed by `locks.heartbeats` until it is released.

The holder counts its lease from before it sent the request that began or renewed it; a waiter
counts the same lease from when it had read the answer that shows it. So ours is over before
anyone else's begins, as long as two clocks run equally fast: to one part in a thousand, which the
holder gives away.
"""

from __future__ import annotations

import logging
import os
import threading
from enum import Enum
from typing import TYPE_CHECKING

from dynamo import tally
from dynamo.client.deadline import within
from dynamo.exceptions import DamagedItem, DynamoError, Unavailable
from dynamo.models import Item
from locks import heartbeats, records
from locks.clock import now
from locks.exceptions import LeaseLost
from locks.models import LockItem
from locks.signals import lease_lost

if TYPE_CHECKING:
    from dynamo.transactions import Transaction

log = logging.getLogger(__name__)

#: By how much one clock may run faster than another.
CLOCK_DRIFT = 0.001

#: A lease is renewed when this part of it has passed: every 5 s of 20, as the client for Java.
RENEWED_AFTER = 0.25

#: How many record versions a lease keeps in mind while its renewals get no answer. The heartbeat
#: makes fewer attempts in a lease (`heartbeats.MOST_FAILURES`). IN takes 100 operands, and DynamoDB
#: counts the one on its left:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MOST_VERSIONS = 99

_LATE = "it was not renewed in time"
_TAKEN = "another holds the lock, or it was broken"
_REASONS = {_LATE: "late", _TAKEN: "taken"}


class _State(Enum):
    HELD = "held"
    #: From the call of `release` on, whether or not it gets an answer.
    RELEASED = "released"
    LOST = "lost"


class Lease:
    """What `Lock.acquire` returns. Safe in threads; of no use in a forked child.

    `name`: the lock's. `owner`: ours. `fence`: the fencing token, higher than that of every lease
    before. `lease_seconds`: how long it lasts without a renewal. `data`: what was on the lock when
    we took it, or what we left on it since; None where nothing is.
    """

    def __init__(self, version: str, item: Item, lease_seconds: float, sent_at: float) -> None:
        """`item` is the lock as our request stored it, sent at `sent_at`, under `version`.

        Raises:
            DamagedItem: the fencing token is no whole number.
        """
        self.name: str = item["key"]["S"]
        self.owner: str = item["ownerName"]["S"]
        self.data: bytes | None = item.get("data", {}).get("B")
        try:
            self.fence = int(item["fencingToken"]["N"])
        except ValueError as error:
            raise DamagedItem(LockItem.table(), self.name, "fencingToken") from error
        #: Whose requests its renewals are.
        self.tally = tally.current()
        #: The lock as it was stored when we took it, on the wire.
        self.taken = item
        self.lease_seconds = lease_seconds
        #: Set when it is noticed that the lease is lost; released is not lost. A lease that ends
        #: without a renewal is noticed within about a second; `check` knows at once.
        self.lost = threading.Event()
        self._state = _State.HELD
        self._why_lost = ""
        # For changes of the two.
        self._changing = threading.Lock()
        self._pid = os.getpid()
        # The record versions that our requests may have stored; empty once the lock is not ours.
        self._versions = [version]
        # Renewals and the release go one after another: each needs the version of the one before.
        self._writing = threading.Lock()
        self._sent_at = sent_at

    def __repr__(self) -> str:
        return f"<Lease {self.name!r} fence={self.fence} {self._state.value}>"

    @property
    def released(self) -> bool:
        """Whether an answer said that the lock was given back."""
        return self._state is _State.RELEASED and not self._versions

    @property
    def remaining_seconds(self) -> float:
        """How long the lease lasts from now if no renewal arrives; 0 when it is over."""
        if self._state is not _State.HELD or not self._is_own_process():
            return 0.0
        return max(0.0, self._ends_at - now())

    @property
    def renewal_due_at(self) -> float:
        """When, on `locks.clock`, the lease should be renewed."""
        return self._sent_at + self.lease_seconds * RENEWED_AFTER

    @property
    def _ends_at(self) -> float:
        return self._sent_at + self.lease_seconds * (1 - CLOCK_DRIFT)

    def _is_own_process(self) -> bool:
        return os.getpid() == self._pid

    def check(self) -> None:
        """Return while the lock is certainly ours. Costs no request.

        Raises:
            LeaseLost: it may be another's by now; and so it stays, whatever arrives later.
        """
        if not self._is_own_process():
            raise LeaseLost(self.name, self.fence, "it belongs to the process that took it")
        self._notice_the_end()
        self._raise_if_lost()
        if self._state is _State.RELEASED:
            raise LeaseLost(self.name, self.fence, "it was given back")

    def _notice_the_end(self) -> None:
        if self._state is _State.HELD and now() >= self._ends_at:
            self._lose(_LATE)

    def _lose(self, why: str) -> None:
        # Several threads may notice it at once; it is logged once, with the first reason.
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
        """Make `write` depend on our holding the lock at the instant when it commits.

        One more action of the transaction, 2 write units.

        Raises:
            LeaseLost: we do not hold it any more; from the commit too.
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
        """Let the lease begin anew. Costs 1 request, 1 write unit; the heartbeat does it for you.

        Raises:
            LeaseLost: it was over, or the lock is another's.
            Unavailable: no answer; the lease goes on to the end that it had.
        """
        self._renew()

    def leave(self, data: bytes) -> None:
        """Leave `data` on the lock, for its next holders to read; renews the lease as well.

        Costs 1 request, 1 write unit per KB. Raises: as `renew`, and Rejected where it is more
        than an item holds (400 KB); TypeError where it is no bytes.
        """
        self._renew(records.checked_data(data))
        self.data = data

    def _renew(self, data: bytes | None = None) -> None:
        # Before waiting for the turn as well: a forked child would wait for ever.
        self.check()
        with self._writing:
            self.check()
            sent_at = now()
            known, version = self._note_next_version()
            # Within the lease: no attempt begins when it is over.
            with within(self.remaining_seconds):
                ours = records.renew(self.name, self.owner, known, version, data)
            if ours:
                self._versions = [version]
                self._sent_at = sent_at
            else:
                self._versions = []
                self._lose(_TAKEN)
                self._raise_if_lost()

    def _note_next_version(self) -> tuple[list[str], str]:
        """The versions that may be stored, and a new one, which from now on is one of them.

        It is noted before it is sent, so the stored version is recognized however the request
        ends: with a lost reply, or with an exception of a signal handler (Ctrl-C).
        """
        known, version = self._versions, records.new_version()
        first, *others = known
        self._versions = [first, *others[2 - MOST_VERSIONS :], version]
        return known, version

    def release(self, *, remove: bool = False, patience_seconds: float | None = None) -> None:
        """Give the lock back, so that another can have it at once. Releasing twice does nothing.

        From this call on the lease is over, whatever becomes of the request. `remove` deletes the
        lock's item: for a lock whose name is not used again, as its fencing token begins anew.
        With `patience_seconds` it waits no longer for a renewal that is under way. Costs 1
        request, 1 write unit.

        Raises:
            LeaseLost: the lease was lost before.
            Unavailable: no answer; may be called again, else the lock lapses by itself when the
                lease is over.
        """
        if not self._is_own_process():
            return
        self._notice_the_end()
        with self._changing:
            is_repeated = self._state is _State.RELEASED
            if self._state is _State.HELD:
                self._state = _State.RELEASED
        heartbeats.drop(self)
        if not self._writing.acquire(timeout=-1 if patience_seconds is None else patience_seconds):
            raise Unavailable("UpdateItem", "a renewal is not answered yet")
        try:
            if self._versions:
                self._give_back(remove=remove, is_repeated=is_repeated)
        finally:
            self._writing.release()
        self._raise_if_lost()

    def _give_back(self, *, remove: bool, is_repeated: bool) -> None:
        known, version = self._note_next_version()
        try:
            if remove:
                ours = records.remove(self.name, known)
            else:
                ours = records.release(self.name, self.owner, known, version)
        except DynamoError as error:
            self._raise_if_lost(error)
            raise
        self._versions = []
        # If an earlier release may have arrived, another may rightly have the lock by now.
        if not (ours or is_repeated):
            self._lose(_TAKEN)
