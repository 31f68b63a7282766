"""Hands the files of a run to its threads, and those that others have in hand to later.

One thread decides everything: the caller's. It draws sources while threads are free, never has one
key in two hands, and looks after files whose rows other processes hold.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

from dynamo.tally import CountingPool
from dynamo.terminal import printable
from locks.clock import now
from uploads.claims import Holder
from uploads.destination import Destination
from uploads.exceptions import BadKey, Interrupted
from uploads.files import Source, Unusable
from uploads.holding import ProcessLease
from uploads.others import Others
from uploads.run import Ending, Result, Run
from uploads.storing import Job, store

#: How many files may wait for others before no more are drawn: the memory that they take.
MOST_ASIDE = 10_000

#: How soon a request to stop is noticed where nothing else happens.
TICK_SECONDS = 0.2


class Dispatcher:
    """One run. Its block's end, however it comes, ends the threads and removes the lock."""

    def __init__(
        self,
        sources: Iterable[Source | Unusable],
        destination: Destination,
        workers: int,
        lease_seconds: float,
        stop: threading.Event | None,
        on_bytes: Callable[[int], None],
    ) -> None:
        self._sources = iter(sources)
        self._is_drained = False
        self._destination = destination
        self._stop = stop or threading.Event()
        self._on_bytes = on_bytes
        self._files = CountingPool(workers, "uploads")
        self._parts = CountingPool(workers, "uploads parts")
        # Twice as many as there are threads, so that none waits for us.
        self._most_running = 2 * workers
        self._running = 0
        self._events: SimpleQueue[int | tuple[Job, Holder | None, Future[Ending | Holder]]] = (
            SimpleQueue()
        )
        self._others: Others[Job] = Others()
        #: The keys in hand or put aside, with the jobs that wait for the same key.
        self._keys: dict[str, deque[Job]] = {}
        self._behind = 0
        self._lease = ProcessLease(lease_seconds)
        self._run = Run(
            destination,
            self._lease,
            self._others.gone,
            self._parts,
            workers,
            threading.Event(),
            self._events.put,
            threading.Event(),
        )

    def __enter__(self) -> Self:
        # Now, so that it fails as a whole where there is no table.
        self._lease.current()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run.halt.set()
        self._files.shutdown(cancel_futures=True)
        self._parts.shutdown()
        self._lease.release()

    def results(self) -> Iterator[Result]:
        """What becomes of the sources, as it does."""
        while True:
            if self._stop.is_set():
                self._run.halt.set()
            else:
                yield from self._draw()
                yield from self._take_up_again()
            if not self._running and (self._stop.is_set() or self._is_done):
                return
            try:
                event = self._events.get(timeout=self._patience)
            except Empty:
                continue
            if isinstance(event, int):
                self._on_bytes(event)
            else:
                yield from self._ended(*event)

    @property
    def _is_done(self) -> bool:
        return self._is_drained and not self._keys

    @property
    def _patience(self) -> float:
        if self._stop.is_set():
            return TICK_SECONDS
        return max(0.0, min(TICK_SECONDS, self._others.next_look_at - now()))

    def _draw(self) -> Iterator[Result]:
        """Begin as many sources as there is room for; those that cannot be begun have an end."""
        while (
            not self._is_drained
            and not self._stop.is_set()
            and self._running < self._most_running
            and len(self._others) + self._behind < MOST_ASIDE
        ):
            source = next(self._sources, None)
            if source is None:
                self._is_drained = True
            elif isinstance(source, Unusable):
                yield Result(source.name, "", "failed", 0, source.reason)
            else:
                try:
                    key = self._destination.key_for(source.relative)
                except BadKey as error:
                    reason = str(error).removesuffix(".")
                    yield Result(printable(source.path), "", "failed", source.size, reason)
                else:
                    self._begin(Job(source, key))

    def _begin(self, job: Job) -> None:
        behind = self._keys.get(job.key)
        if behind is not None:
            behind.append(job)
            self._behind += 1
            return
        self._keys[job.key] = deque()
        self._submit(job, None)

    def _submit(self, job: Job, tried_for: Holder | None) -> None:
        self._running += 1
        future = self._files.submit(store, job, self._run)
        future.add_done_callback(lambda done: self._events.put((job, tried_for, done)))

    def _take_up_again(self) -> Iterator[Result]:
        """Try again what waits for others; what can wait for them no longer has an end."""
        looks = self._others.look()
        for holder, job in looks.worth_a_try:
            self._submit(job, holder)
        for job, error in looks.hopeless:
            self._free(job.key)
            yield _result_of(job, Ending("failed", job.source.size, str(error).removesuffix(".")))

    def _ended(
        self, job: Job, tried_for: Holder | None, future: Future[Ending | Holder]
    ) -> Iterator[Result]:
        self._running -= 1
        try:
            ending = future.result()
        except Interrupted:
            return
        if isinstance(ending, Holder) and ending == tried_for:
            self._others.still_held(ending, job)
            return
        if tried_for is not None and (following := self._others.settled(tried_for)) is not None:
            self._submit(following, tried_for)
        if isinstance(ending, Holder):
            self._others.put_aside(job, ending)
            return
        self._free(job.key)
        yield _result_of(job, ending)

    def _free(self, key: str) -> None:
        """Let the next source that has the key begin."""
        behind = self._keys.pop(key)
        if behind:
            self._behind -= 1
            following = behind.popleft()
            self._keys[key] = behind
            self._submit(following, None)


def _result_of(job: Job, ending: Ending) -> Result:
    return Result(printable(job.source.path), job.key, ending.outcome, ending.size, ending.reason)
