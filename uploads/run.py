"""A run, which uploads files to S3, each exactly once, with several threads.

    destination = Destination.parse("s3://bucket/prefix")
    summary = upload_files(walk(["logs"], destination), destination, on_result=print)

Any number of processes may be given the same files. Each file is claimed by one of them, and each
process ends when every file is uploaded, skipped, conflicting or failed.

Source: "DynamoDBをロックマネージャーとして使う" (claims in DynamoDB before an upload to S3).
"""

import math
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Self

from dynamo import DynamoError, TableMissing, Unavailable
from dynamo.client.tally import CountingPool
from dynamo.runtime.clock import now
from locks.holders import Holder, HolderWatch, ProcessLease
from locks.lock import LEASE_SECONDS
from uploads import claims
from uploads.exceptions import Interrupted
from uploads.signals import file_done
from uploads.sources import Destination, Result, Source
from uploads.transfer import Job, Run, Summary, store

#: While this many files wait for other processes or files, no more are drawn. This limits the
#: memory.
MOST_WAITING = 10_000

#: A request to stop is noticed after at most this time if nothing else happens.
TICK_SECONDS = 0.2


def upload_files(
    sources: Iterable[Source | Result],
    destination: Destination,
    *,
    workers: int = 8,
    lease_seconds: float = LEASE_SECONDS,
    on_result: Callable[[Result], object],
    on_bytes: Callable[[int], object] = lambda _count: None,
    stop: threading.Event | None = None,
    is_dry: bool = False,
) -> Summary:
    """Upload every source; or, in a dry run, predict the results (see `uploads.transfer`).

    `sources` are drawn when threads become free, so any number of them needs the same memory.
    `on_result` is called for each source; `on_bytes` with the number of bytes that reached S3 (or
    were found there), part by part, for files that are being uploaded. Both are called in the
    calling thread.

    After `stop` is set, no file is started. Small files in progress are finished. Large ones stop
    between two parts, and the next run continues them. The other sources get no result.

    A new small file costs 2 requests, 2 write units and 1 PutObject (see `uploads.transfer`). A run
    costs 1 request and 1 write unit at its start, at its end and per quarter of its lease, and 2
    requests a second for each other process that it waits for.

    Raises:
        BucketMissing: the bucket does not exist.
        StorageFailed: no request to S3 succeeded, and S3 does not list the bucket.
        TableMissing: a table does not exist.
        Unavailable, Rejected: the lease of the run could not be acquired.
    """
    summary = Summary()
    options = (destination, workers, lease_seconds, on_bytes, stop, is_dry)
    with _Dispatcher(sources, *options) as dispatcher:
        for result in dispatcher.results():
            summary.add(result)
            if not is_dry:
                file_done.send(None, outcome=result.outcome, size=result.size)
            on_result(result)
    return summary


class _Dispatcher:
    """Gives the files of a run to its threads. The end of the block ends the threads and the lease.

    All decisions are made in the caller's thread. It draws sources while threads are free, never
    starts two files of one key at once, and keeps the files whose rows other processes hold.
    """

    def __init__(
        self,
        sources: Iterable[Source | Result],
        destination: Destination,
        workers: int,
        lease_seconds: float,
        on_bytes: Callable[[int], object],
        stop: threading.Event | None,
        is_dry: bool,
    ) -> None:
        self._sources = iter(sources)
        self._stop = stop or threading.Event()
        self._on_bytes = on_bytes
        self._files = CountingPool(workers, "uploads")
        self._parts = CountingPool(workers, "uploads parts")
        # Twice the number of threads, so that no thread waits for this one.
        self._most_running = 2 * workers
        self._running = 0
        #: Numbers of bytes that reached S3, and ended jobs with the holders of their files.
        self._events: SimpleQueue[int | tuple[Job, Holder | None, Future[Result | Holder]]] = (
            SimpleQueue()
        )
        self._held = _HeldFiles()
        #: The keys that are worked on or held.
        self._keys: set[str] = set()
        #: Sources with one of these keys, and those that are to be drawn again.
        self._repeated: deque[Source] = deque()
        self._again: deque[Source] = deque()
        self._lease = ProcessLease(claims.LOCK_PREFIX, lease_seconds)
        self._halt = threading.Event()
        self._run = Run(
            destination,
            self._lease,
            self._held.gone,
            self._parts,
            workers,
            self._halt,
            self._events.put,
            is_dry,
        )

    def __enter__(self) -> Self:
        if not self._run.is_dry:
            # The lease is acquired here, so that the run fails as a whole if the table is missing.
            self._lease.current()
        return self

    def __exit__(self, *_error: object) -> None:
        self._halt.set()
        self._files.shutdown(cancel_futures=True)
        self._parts.shutdown()
        self._lease.release()

    def results(self) -> Iterator[Result]:
        """The result of each source, as it ends."""
        while True:
            if self._stop.is_set():
                self._halt.set()
            else:
                yield from self._draw()
                yield from self._retry_held()
            is_done = not (self._keys or self._repeated)
            if not self._running and (self._stop.is_set() or is_done):
                return
            try:
                left = math.inf if self._stop.is_set() else self._held.next_look_at - now()
                event = self._events.get(timeout=max(0.0, min(TICK_SECONDS, left)))
            except Empty:
                continue
            if isinstance(event, int):
                self._on_bytes(event)
            else:
                yield from self._end(*event)

    def _draw(self) -> Iterator[Result]:
        """Start as many sources as there is room for. Yields those that cannot be started."""
        if not self._keys:
            self._again.extend(self._repeated)
            self._repeated.clear()
        while (
            not self._stop.is_set()
            and self._running < self._most_running
            and len(self._held) + len(self._repeated) < MOST_WAITING
        ):
            source = self._again.popleft() if self._again else next(self._sources, None)
            if source is None:
                return
            if isinstance(source, Result):
                yield source
            elif source.key in self._keys:
                self._repeated.append(source)
            else:
                self._keys.add(source.key)
                self._submit(Job(source), None)

    def _submit(self, job: Job, tried_for: Holder | None) -> None:
        self._running += 1
        future = self._files.submit(store, job, self._run)
        future.add_done_callback(lambda done: self._events.put((job, tried_for, done)))

    def _retry_held(self) -> Iterator[Result]:
        """Try files that other processes held. Yields those that cannot be waited for."""
        for holder, job, error in self._held.look():
            if error is None:
                self._submit(job, holder)
            else:
                self._keys.remove(job.key)
                yield job.result("failed", job.source.size, error)

    def _end(
        self, job: Job, tried_for: Holder | None, future: Future[Result | Holder]
    ) -> Iterator[Result]:
        self._running -= 1
        try:
            ended = future.result()
        except Interrupted:
            return
        # After a holder has released one file, it may have released the next one, too.
        if ended != tried_for and (following := self._held.next_of(tried_for)):
            self._submit(following, tried_for)
        if isinstance(ended, Holder):
            self._held.add(job, ended)
            return
        self._keys.remove(job.key)
        yield ended


@dataclass
class _HolderQueue:
    """The files that one process holds, except those that are being tried."""

    watch: HolderWatch
    waiting: deque[Job] = field(default_factory=deque)
    look_at: float = -math.inf


class _HeldFiles:
    """Files whose rows other processes hold.

    About once a second, the lock of each process is read, and one of its files is tried, regardless
    of how many files it holds. All files of a process that is gone are tried at once.
    """

    def __init__(self) -> None:
        self._queues: dict[Holder, _HolderQueue] = {}
        #: Processes whose rows may be taken over: their lease has ended. Read by all threads.
        self.gone: set[Holder] = set()

    def __len__(self) -> int:
        return sum(len(queue.waiting) for queue in self._queues.values())

    def add(self, job: Job, holder: Holder) -> None:
        if holder not in self._queues:
            self._queues[holder] = _HolderQueue(HolderWatch(holder))
        self._queues[holder].waiting.append(job)

    def next_of(self, holder: Holder | None) -> Job | None:
        """Remove and return the file of this holder that has waited longest."""
        queue = self._queues.get(holder) if holder else None
        return queue.waiting.popleft() if queue and queue.waiting else None

    @property
    def next_look_at(self) -> float:
        """The time of the next look, on `dynamo.runtime.clock`; infinity if no file is held."""
        looks = (queue.look_at for queue in self._queues.values() if queue.waiting)
        return min(looks, default=math.inf)

    def look(self) -> Iterator[tuple[Holder, Job, DynamoError | None]]:
        """Look at each process that is due.

        Yields the jobs to try, and with an error the jobs to give up.

        Costs 1 request and 1 read unit for each process; 1 write unit once, if its lock is removed.

        Raises:
            TableMissing: the table of locks does not exist.
        """
        for holder, queue in list(self._queues.items()):
            if not queue.waiting or queue.look_at > now():
                continue
            pause = claims.POLL_SECONDS * random.uniform(0.5, 1.5)  # noqa: S311 - guards no secret
            queue.look_at = now() + pause
            is_gone, unreadable = holder in self.gone, None
            try:
                is_gone = is_gone or queue.watch.is_gone()
                queue.look_at = min(queue.look_at, queue.watch.ends_at)
            except TableMissing:
                raise
            except Unavailable:
                pass  # the job that is tried next reports the error
            except DynamoError as error:
                # Most likely, the lock is damaged. The files of other holders are not affected.
                unreadable = error
            if is_gone:
                self.gone.add(holder)
            if is_gone or unreadable:
                del self._queues[holder]
                yield from ((holder, job, unreadable) for job in queue.waiting)
            else:
                yield holder, queue.waiting.popleft(), None
