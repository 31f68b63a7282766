"""Locks that processes on any machines share: at most one of them holds a lock at a time.

    with Lock("nightly-report", lease_seconds=20, wait_seconds=60) as lease:
        for page in pages:
            lease.check()
            …

A lock is one item of the table `locks`. A holder has it for a *lease*, which is renewed in the
background until it is released. If the holder crashes, another process gets the lock after it has
watched the item unchanged for one whole lease.

Each holder has a *fencing token*, higher than those of all holders before. A process can be stopped
for longer than its lease, and then write before it checks its clock. To prevent this, pass the
token to the system that the lock protects, and let it refuse tokens that are lower than the highest
one that it has seen. In DynamoDB, `Lease.hold_in` does the same for a transaction.

The items are compatible with the lock client for Java, so both can share a table and a lock. That
client drops the fencing token. After that, our next token starts from the clock again.

Sources: "Building Distributed Locks with the DynamoDB Lock Client", AWS Database Blog, 2017;
M. Kleppmann, "How to do distributed locking", 2016 (fencing tokens).
"""

import asyncio
import logging
import math
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cache

from dynamo import DynamoError, Unavailable
from dynamo.runtime.altering import AltersData
from dynamo.runtime.clock import now
from dynamo.runtime.deadline import within
from dynamo.runtime.processes import on_new_process
from dynamo.runtime.threads import submit
from dynamo.wire.types import Item
from locks import leases, requests
from locks.exceptions import LockTaken
from locks.leases import Lease
from locks.models import RELEASED, LockItem
from locks.registry import LONGEST_LEASE_SECONDS, Watch, lease_seconds_of
from locks.signals import lock_awaited

log = logging.getLogger(__name__)

LEASE_SECONDS = 20.0

#: A shorter lease could end before the reply: a request takes milliseconds, and at most 4 s.
SHORTEST_LEASE_SECONDS = 0.1

#: If its lease ended before the reply arrived, a lock is taken again this many times.
MOST_LATE_ANSWERS = 3

#: The mean time between two reads of a waiter. Each costs one read unit.
POLL_SECONDS = 1.0


class Lock(AltersData):
    """A lock with a name. Threads can share one object; each gets its own lease.

    - `name`: 1 to 2,048 bytes in UTF-8.
    - `lease_seconds`: how long others must wait for the lock if this process crashes.
    - `wait_seconds`: the longest wait of `acquire`; by default one lease and one poll. With less,
      it may give up before a crashed holder's lease has expired.
    - `poll_seconds`: the mean pause between two reads of a waiter. Pauses are random, from 0.5 to
      1.5 times this.
    - `data`: bytes to store with the lock. With None, the stored bytes are kept.
    - `owner`: the name that `listlocks` shows; by default host, process id and a random text.

    Use it in a `with` statement, which releases the lock at the end, or call `acquire`. It is not
    reentrant: a holder that acquires it again waits like any other process.
    """

    _alters_data = "acquire try_acquire"

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
        """Check the settings. Costs no request.

        Raises:
            BadLockName: a lock cannot have this name.
            ValueError: a duration is out of range.
            TypeError: `data` is not bytes.
        """
        self.name = requests.checked_name(name)
        if not SHORTEST_LEASE_SECONDS <= lease_seconds <= LONGEST_LEASE_SECONDS:
            raise ValueError("lease_seconds must be from 0.1 to 1,000,000,000 (30 years).")
        if not (math.isfinite(poll_seconds) and poll_seconds > 0):
            raise ValueError("poll_seconds must be a finite number above 0.")
        if wait_seconds is not None and not wait_seconds >= 0:
            raise ValueError("wait_seconds must not be negative.")
        # The lease is stored in whole milliseconds.
        self.lease_seconds = round(lease_seconds * 1000) / 1000
        self.poll_seconds = poll_seconds
        if wait_seconds is None:
            wait_seconds = lease_seconds + poll_seconds
        self.wait_seconds = wait_seconds
        self.data = None if data is None else requests.checked_data(data)
        self._owner = owner
        #: The leases of `with` statements, by the thread or task that entered them.
        self._held: dict[object, list[Lease]] = {}

    def acquire(self) -> Lease:
        """Acquire the lock, waiting for it if necessary; return its lease.

        The lease is renewed in the background until it is released.

        A free lock costs 1 request and 1 write unit. A waiter first sends the same write, which is
        refused. Then it reads the lock every `poll_seconds` on average (1 read unit each), and
        sends a write each time that it finds the lock free or has watched a whole lease. Therefore,
        50 waiters cost about 50 requests and read units a second, and after a release only those
        that look before the next holder has the lock send a write.

        Raises:
            LockTaken: another process held it until `wait_seconds` had passed.
            LeaseLost: it was acquired, but DynamoDB's replies take longer than a lease.
            DamagedItem, Rejected: the stored item is not that of a lock; `break_lock` repairs it.
            Unavailable: no answer. The lock may be held for one lease.
        """
        return self._acquire(self.wait_seconds)

    def try_acquire(self) -> Lease | None:
        """Acquire the lock if it is free; return None if it is not.

        A crashed holder's lock is not free until a waiter has watched it for a whole lease. Costs
        1 request, 1 write unit. Raises the errors of `acquire` except LockTaken.
        """
        try:
            return self._acquire(0)
        except LockTaken:
            return None

    def _acquire(self, wait_seconds: float) -> Lease:
        steps = self._acquiring(wait_seconds)
        while not isinstance(step := next(steps), Lease):
            time.sleep(step)
        return step

    async def _aacquire(self) -> Lease:
        steps = self._acquiring(self.wait_seconds)
        while True:
            # Only requests are sent in threads, so waiters cannot use up the pool.
            under_way = submit(next, steps)
            try:
                step = await asyncio.wrap_future(under_way)
            except asyncio.CancelledError:
                under_way.add_done_callback(_release_unclaimed)
                raise
            if isinstance(step, Lease):
                return step
            await asyncio.sleep(step)

    def _acquiring(self, wait_seconds: float) -> Iterator[float | Lease]:
        """Yields the seconds to wait before each next step, and at the end the lease."""
        asked_at = now()
        try:
            lease = yield from self._wait_for(wait_seconds)
        except LockTaken:
            self._tell("taken", now() - asked_at)
            raise
        self._tell("acquired", now() - asked_at)
        try:
            for _try in range(MOST_LATE_ANSWERS):
                if lease.remaining_seconds:
                    break
                fresh, _stored = self._take(instead_of=lease.taken)
                if fresh is None:
                    break
                lease = fresh
            lease.check()
            leases.keep(lease)
        except BaseException:
            # Otherwise, the lock would be held until the lease expires, although no caller has the
            # lease.
            with suppress(DynamoError):
                lease.release()
            raise
        yield lease

    def _tell(self, outcome: str, seconds: float) -> None:
        lock_awaited.send_robust(type(self), name=self.name, outcome=outcome, seconds=seconds)

    def _wait_for(self, wait_seconds: float) -> Generator[float, None, Lease]:
        """Take the lock as soon as it may be taken; yields the seconds of each pause.

        Each turn of the loop acts on `stored`, the lock in the last reply, and on `at`, a time
        after that reply:

        - The lock is free: take it.
        - The holder did not renew while its whole lease was watched: take the lock from it. If it
          renewed at the last moment, this write is refused.
        - The wait has ended: give up.
        - Otherwise pause and read the lock again.

        The wait and the first watch both begin with the first reply, so waiting for one lease is
        enough. If this process is stopped until both have ended, it acquires the lock.
        """
        lease, stored = self._take()
        at = now()
        gives_up_at = at + wait_seconds
        watch = Watch()
        while lease is None:
            if stored is None or stored.released == RELEASED:
                lease, stored = self._take()
            elif watch.saw_whole_lease(stored, at):
                lease, stored = self._take(instead_of=stored.stored)
            elif at >= gives_up_at:
                raise LockTaken(self.name, stored.owner or "", lease_seconds_of(stored))
            else:
                # The pause is random, because otherwise many waiters would read at the same time.
                pause = self.poll_seconds * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
                yield max(0.0, min(pause, min(watch.ends_at, gives_up_at) - now()))
                if now() < watch.ends_at:
                    stored = requests.read(self.name)
                # At the end of the wait, the lock is not read: the next turn takes it if it is
                # unchanged.
            at = now()
        return lease

    def _take(self, instead_of: Item | None = None) -> tuple[Lease | None, LockItem | None]:
        owner = _process_name() if self._owner is None else self._owner
        version = requests.new_version()
        milliseconds = round(self.lease_seconds * 1000)
        sent_at = now()
        try:
            taken, item = requests.take(
                self.name, owner, version, milliseconds, data=self.data, instead_of=instead_of
            )
        except DynamoError:
            raise
        except BaseException:
            # For example, a signal handler raised this: the lock may be taken, and no lease is
            # returned. It is released with one attempt, because the caller is about to end.
            with suppress(DynamoError), within(0):
                requests.release_held(self.name, [version], requests.new_version())
            raise
        if taken and item is not None:
            return Lease(version, item, self.lease_seconds, sent_at), None
        return None, LockItem.from_raw_data(item) if item else None

    def __enter__(self) -> Lease:
        return self._entered(threading.get_ident(), self.acquire())

    async def __aenter__(self) -> Lease:
        return self._entered(asyncio.current_task(), await self._aacquire())

    def _entered(self, holder: object, lease: Lease) -> Lease:
        self._held.setdefault(holder, []).append(lease)
        return lease

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        self._leave(threading.get_ident(), error)

    async def __aexit__(
        self, _kind: object, error: BaseException | None, _traceback: object
    ) -> None:
        # This is shielded, so that a task that is cancelled now still releases the lock.
        leaving = submit(self._leave, asyncio.current_task(), error)
        await asyncio.shield(asyncio.wrap_future(leaving))

    def _leave(self, holder: object, error: BaseException | None) -> None:
        lease = self._held[holder].pop()
        if not self._held[holder]:
            del self._held[holder]
        _release(lease, error)


def _release_unclaimed(step: Future[float | Lease]) -> None:
    """Release the lock if this step of a cancelled task acquired it."""
    if not step.cancelled() and not step.exception() and isinstance(lease := step.result(), Lease):
        # The pool sends the request, because this function may run in the event loop.
        submit(_release, lease)


def _release(lease: Lease, error: BaseException | None = None) -> None:
    """Release the lock after work that ended with `error`, which is not replaced by a new error."""
    try:
        lease.release()
    except DynamoError as problem:
        if error is not None:
            error.add_note(str(problem))
        elif isinstance(problem, Unavailable):
            # The work is done, and the lease will expire by itself.
            log.warning("The lock %r was not released: %s", lease.name, problem)
        else:
            raise


def claim_once(key: str) -> bool:
    """Return True to the first caller that claims `key`, and False to all others, for ever.

    A claim is a lock that is never released. Costs 1 request, 1 write unit.

    Source: "DynamoDBをロックマネージャーとして使う" (its `lock_key`).

    Raises:
        BadLockName: a lock cannot have this name.
        Unavailable: no answer. With `maybe_written`, this call may have made the claim, and no
            later call can find out.
    """
    return requests.claim(requests.checked_name(key), _process_name())


@cache
def _process_name() -> str:
    """A unique name for this host and process."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


on_new_process(_process_name.cache_clear)
