"""Locks that machines share: at most one holds the lock, for a lease that it renews.

    with Lock("nightly-report", lease_seconds=20, wait_seconds=60) as lease:
        for page in pages:
            lease.check()
            …

A lock is one item of the table `locks`. Taking it is one conditional UpdateItem; a holder that
crashed is recognised by its record version, which stands still for a whole lease. Each holder has
a fencing token, higher than that of every holder before: hand it to what the lock protects, and
let that refuse a token lower than the highest it saw. Only so is a holder harmless that was
stopped for longer than its lease and writes before it looks at its clock.

Items are those of the lock client for Java, so both can share a table and a lock; that client
knows no fencing token and drops it, and the next one of ours begins from the clock again.

Sources: "Building Distributed Locks with the DynamoDB Lock Client", AWS Database Blog, 2017;
M. Kleppmann, "How to do distributed locking", 2016 (fencing tokens).
"""

from __future__ import annotations

import logging
import math
import os
import random
import socket
import threading
import time
import uuid
from contextlib import suppress
from functools import cache
from types import TracebackType

from dynamo.client.deadline import within
from dynamo.exceptions import DynamoError, Unavailable
from dynamo.models import Item
from locks import heartbeats, records
from locks.clock import now
from locks.exceptions import LeaseLost, LockError, LockTaken
from locks.leases import Lease
from locks.models import LockItem
from locks.signals import lock_awaited
from locks.watching import LONGEST_LEASE_MILLISECONDS, Watch, is_free, lease_seconds_of

log = logging.getLogger(__name__)

LEASE_SECONDS = 20.0

#: Less is over before it is known: a request of DynamoDB's takes milliseconds, with a bad day 4 s.
SHORTEST_LEASE_SECONDS = 0.1
LONGEST_LEASE_SECONDS = LONGEST_LEASE_MILLISECONDS / 1000

#: How often we take our own lock anew whose lease was over before the answer came.
MOST_LATE_ANSWERS = 3

#: How often a waiter looks, on average: one read unit each time.
POLL_SECONDS = 1.0


class Lock:
    """A lock by its name. One object serves any number of threads, each with its own lease.

    `name`: 1 to 2,048 bytes. `lease_seconds`: how long the lock stays ours when we crash.
    `wait_seconds`: how long to wait for it; by default one lease and a poll: less does not
    outwait a crashed holder. `data`: bytes to leave on the lock; None keeps what is there.
    `poll_seconds`: the mean pause between two looks of a waiter, each of which is spread from
    half to one and a half of it. `owner`: what `listlocks` shows; by default the host, the
    process's id and a random text.

    It is not reentrant: who holds it and asks again waits in vain.
    """

    def __init__(
        self,
        name: str,
        *,
        lease_seconds: float = LEASE_SECONDS,
        wait_seconds: float | None = None,
        poll_seconds: float = POLL_SECONDS,
        data: bytes | None = None,
        owner: str | None = None,
    ) -> None:
        """Keep the settings; costs no request.

        Raises:
            BadLockName: no lock can have this name.
            ValueError: a duration that makes no sense.
            TypeError: `data` is no bytes.
        """
        self.name = records.checked_name(name)
        if not SHORTEST_LEASE_SECONDS <= lease_seconds <= LONGEST_LEASE_SECONDS:
            raise ValueError("A lease lasts a tenth of a second at least, and 30 years at most.")
        if not (math.isfinite(poll_seconds) and poll_seconds > 0):
            raise ValueError("The pause between two looks is a time above 0.")
        if wait_seconds is not None and not wait_seconds >= 0:
            raise ValueError("Nobody can wait for less than no time.")
        # As it is stored: in whole milliseconds.
        self.lease_seconds = round(lease_seconds * 1000) / 1000
        self.poll_seconds = poll_seconds
        if wait_seconds is None:
            wait_seconds = lease_seconds + poll_seconds
        self.wait_seconds = wait_seconds
        self.data = None if data is None else records.checked_data(data)
        self._owner = owner
        self._held = threading.local()

    def __repr__(self) -> str:
        return f"<Lock {self.name!r}>"

    def acquire(self) -> Lease:
        """Take the lock, and renew it from then on until it is released.

        A free lock costs 1 request and 1 write unit. A waiter's first look is that same write,
        refused; then it sends, per second, 1/`poll_seconds` reads of 1 unit on average and twice
        that at most, and 1 write for each try to take the lock: one for each time that it finds
        it free, and one for each lease that it has watched to its end. Fifty waiters so cost 50
        requests and read units a second, spread by chance, and one release brings those few to
        write who look before the next holder has it.

        Raises:
            LockTaken: another held it all the time.
            LeaseLost: we have it, but DynamoDB's answers take longer than a lease.
            DamagedItem, Rejected: the stored item is none of a lock's; `break_lock` mends that.
            Unavailable: no answer; the lock may be ours all the same, until its lease is over.
        """
        return self._acquire(self.wait_seconds)

    def try_acquire(self) -> Lease | None:
        """Take the lock if it is free, without waiting; None where it is not.

        Costs 1 request, 1 write unit. A crashed holder's lock is not free before somebody has
        watched it for a whole lease. Raises: as `acquire`, but for LockTaken.
        """
        try:
            return self._acquire(0)
        except LockTaken:
            return None

    def _acquire(self, wait_seconds: float) -> Lease:
        asked_at = now()
        try:
            lease = self._wait_for(wait_seconds)
        except LockTaken:
            self._tell("taken", now() - asked_at)
            raise
        self._tell("acquired", now() - asked_at)
        try:
            lease = self._alive(lease)
            heartbeats.keep(lease)
        except BaseException:
            # Nobody would renew it, and nobody can release it but us.
            with suppress(DynamoError, LockError):
                lease.release()
            raise
        return lease

    def _tell(self, outcome: str, seconds: float) -> None:
        lock_awaited.send_robust(type(self), name=self.name, outcome=outcome, seconds=seconds)

    def _wait_for(self, wait_seconds: float) -> Lease:
        lease, stored = self._take()
        gives_up_at = math.inf
        watch = Watch()
        while lease is None:
            seen_at = now()
            # From the first answer on, so that one lease is long enough for a lease.
            gives_up_at = min(gives_up_at, seen_at + wait_seconds)
            if stored is None or is_free(stored):
                lease, stored = self._take()
                continue
            watch.look_at(stored, seen_at)
            looked_at = now()
            if watch.seen is not None and watch.is_over(looked_at):
                lease, stored = self._take(over=watch.seen.stored)
                continue
            # At the same moment: a process that stood still between two would give up before.
            if looked_at >= gives_up_at:
                raise LockTaken(self.name, stored.owner or "", lease_seconds_of(stored))
            time.sleep(self._pause_seconds(min(watch.ends_at, gives_up_at)))
            if not watch.is_over(now()):
                stored = records.read(self.name)
        return lease

    def _alive(self, lease: Lease) -> Lease:
        """The lease, or one in its place where it was over before its answer came."""
        for _try in range(MOST_LATE_ANSWERS):
            if lease.remaining_seconds:
                return lease
            fresh, _stored = self._take(over=lease.taken)
            if fresh is None:
                break
            lease = fresh
        if not lease.remaining_seconds:
            # Frees the lock, and says that the lease is lost.
            lease.release()
        return lease

    def _pause_seconds(self, at_most_until: float) -> float:
        # Spread, so that many waiters do not all look at the moment of a release.
        pause = self.poll_seconds * random.uniform(0.5, 1.5)  # noqa: S311 - guards no secret
        return max(0.0, min(pause, at_most_until - now()))

    def _take(self, over: Item | None = None) -> tuple[Lease | None, LockItem | None]:
        owner = _process_name() if self._owner is None else self._owner
        version = records.new_version()
        milliseconds = round(self.lease_seconds * 1000)
        sent_at = now()
        try:
            taken, item = records.take(
                self.name, owner, version, milliseconds, data=self.data, over=over
            )
        except DynamoError:
            raise
        except BaseException:
            # A signal's, say: the request may be done, and nobody would know of the lease.
            self._give_up(owner, version)
            raise
        if taken and item is not None:
            return Lease(version, item, self.lease_seconds, sent_at), None
        return None, LockItem.from_raw_data(item) if item else None

    def _give_up(self, owner: str, version: str) -> None:
        """Release what we may have taken under `version`; one attempt, as we are to end."""
        with suppress(DynamoError), within(0):
            records.release(self.name, owner, [version], records.new_version())

    def __enter__(self) -> Lease:
        lease = self.acquire()
        self._held.leases = [*getattr(self._held, "leases", ()), lease]
        return lease

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        lease: Lease = self._held.leases.pop()
        try:
            lease.release()
        except (DynamoError, LeaseLost) as problem:
            if error is not None:
                error.add_note(str(problem))
            elif isinstance(problem, Unavailable):
                # What the body did is done; the lock lapses by itself.
                log.warning("The lock %r was not released: %s", self.name, problem)
            else:
                raise


def claim_once(key: str) -> bool:
    """Whether we are the first to claim `key`, ever: a lock that nobody releases.

    Of any number of callers, on any machines, exactly one is told True, once. Costs 1 request, 1
    write unit. Source: "DynamoDBをロックマネージャーとして使う" (its `lock_key`).

    Raises:
        BadLockName: no lock can have this name.
        Unavailable: no answer; where it may have been written, the claim may be ours, and no
            later call tells.
    """
    return records.claim(records.checked_name(key), _process_name())


def _process_name() -> str:
    return _name_of(os.getpid())


@cache
def _name_of(pid: int) -> str:
    """This host and process, made unlike every other by chance."""
    return f"{socket.gethostname()}:{pid}:{uuid.uuid4().hex[:12]}"


# A grandchild may get the number of a process that has ended.
os.register_at_fork(after_in_child=_name_of.cache_clear)
