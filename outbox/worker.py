"""The worker: it looks for tasks that are due, claims and runs them, and records how they ended.

One thread looks. It asks all shards at the same time, without consistency, because the claim
decides. Other threads claim and run what it found. While nothing is found the looks get rarer, up
to one in `LONGEST_PAUSE`; a task that this process enqueues is looked for at once.

All tasks that a worker runs name one lock, which it holds while it runs tasks and for a lease
longer. If it dies, other workers see that the lock is not renewed, and place its tasks again.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from typing import Any

from dynamo import DamagedItem, DynamoError, Rejected
from dynamo.runtime.clock import now as clock_now
from dynamo.runtime.threads import together
from dynamo.wire.types import Item
from locks.holders import Holder, ProcessLease
from locks.lock import LEASE_SECONDS
from locks.registry import HolderWatch
from outbox import steps
from outbox.backend import TaskBackend
from outbox.exceptions import NotFinished
from outbox.framework import base, normalize_json, signals, task_backends
from outbox.models import FAILED, TaskItem, bounds, now, partition_of, place_time, rank_of
from outbox.signals import task_ran, tasks_looked_for
from outbox.steps import LOST, Attempt, holder_of
from outbox.tasks import TaskContext

log = logging.getLogger(__name__)

LOCK_PREFIX = "outbox#"

#: The pauses between two looks that found nothing.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 5.0

#: How soon a request to stop is noticed.
TICK_SECONDS = 0.2

#: How many tasks of a shard are found at most by one look.
FOUND_PER_SHARD = 10

#: What was found so long ago is looked for again: others may have run it, or more urgent ones came.
FRESH_SECONDS = 1.0

#: How long a worker that is stopped waits for tasks that run, before it gives them back.
GRACE_SECONDS = 25.0


@dataclass(frozen=True)
class Ran:
    """One attempt that this worker made. `outcome`: successful, repeated, failed or lost."""

    id: str
    function: str
    outcome: str
    attempt: int
    seconds: float
    error: BaseException | None = None

    @property
    def shown_error(self) -> str:
        """The error in one line; empty without one."""
        return f"{type(self.error).__name__}: {self.error}" if self.error else ""


@dataclass
class Found:
    """What one look found: tasks that can be claimed, and those that other workers run."""

    waiting: list[TaskItem] = field(default_factory=list)
    held: list[TaskItem] = field(default_factory=list)
    #: Whether some of these were placed again, because their worker is gone.
    has_recovered: bool = False


class Worker:
    """Runs the tasks of `queues`; by default of all queues of all `TaskBackend`s.

    `on_ran` is called after each attempt, in the thread that made it. Once `stop` is set nothing is
    claimed. Tasks that run may end within `grace_seconds`; the others are given back.
    """

    def __init__(
        self,
        queues: Iterable[str] = (),
        *,
        threads: int = 4,
        lease_seconds: float = LEASE_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        on_ran: Callable[[Ran], object] = lambda _ran: None,
        stop: threading.Event | None = None,
    ) -> None:
        self._partitions = partitions(queues)
        self._threads = threads
        self._lease = ProcessLease(LOCK_PREFIX, lease_seconds)
        self._lease_seconds = lease_seconds
        self._holder: Holder | None = None
        self._grace_seconds = grace_seconds
        self._on_ran = on_ran
        self._free = threading.Semaphore(threads)
        self._handed: SimpleQueue[TaskItem | None] = SimpleQueue()
        self._changing = threading.Lock()
        #: What this worker runs or is about to claim, by id.
        self._running: dict[str, Attempt | None] = {}
        #: The partitions in which another worker was faster since the last look.
        self._contended: set[str] = set()
        #: Those whose last look found as much as it may: their deferred tasks come next.
        self._full: set[str] = set()
        self._watches: dict[Holder, HolderWatch] = {}
        self._wake = threading.Event()
        self._stopping = stop or threading.Event()
        self._schedules = _schedules()
        self._used_at = clock_now()

    def run(self, *, once: bool = False) -> None:
        """Run tasks until `stop` is set; with `once` until no more are due.

        With `once` it also waits until it knows of each other worker that has tasks whether that is
        alive, for at most a lease.

        An idle worker costs half a read unit per look and shard. See `steps` for what tasks cost.

        Raises:
            TableMissing: with `once`. Otherwise errors are logged, and the worker goes on.
        """
        wake = partial(_set, self._wake)
        signals.task_enqueued.connect(wake)
        for number in range(self._threads):
            threading.Thread(target=self._work, name=f"outbox {number}", daemon=True).start()
        try:
            pause = SHORTEST_PAUSE
            while not self._stopping.is_set():
                self._wake.clear()
                # One that ends now may have enqueued another one after the look.
                was_idle = not self._running
                self._enqueue_scheduled()
                try:
                    found = self._look(once=once)
                    has_found = self._hand_out(found.waiting) or found.has_recovered
                except Exception:
                    if once:
                        raise
                    log.exception("The worker looks again later.")
                    has_found = False
                if has_found:
                    pause = SHORTEST_PAUSE
                    continue
                if once and was_idle and all(item.has_renewed for item in self._watches.values()):
                    break
                self._release_unused()
                pause = SHORTEST_PAUSE if self._wait(pause) else min(2 * pause, LONGEST_PAUSE)
        finally:
            signals.task_enqueued.disconnect(wake)
            self._end()

    def _enqueue_scheduled(self) -> None:
        for schedules in self._schedules:
            try:
                schedules.enqueue_due()
            except Exception:
                log.exception("A schedule cannot be enqueued.")

    def _wait(self, seconds: float) -> bool:
        """Wait until this process enqueues a task; whether it did."""
        ends_at = clock_now() + seconds
        while not self._stopping.is_set() and (left := ends_at - clock_now()) > 0:
            if self._wake.wait(min(left, TICK_SECONDS)):
                return True
        return False

    def _look(self, *, once: bool) -> Found:
        """What can be claimed, the most urgent first."""
        found = Found()
        self._contended.clear()
        running = {*self._running}
        looks = (partial(self._read, partition, found, once) for partition in self._partitions)
        together(*looks)
        self._recover(found, running, once)
        waits = (now() - place_time(item.sort) for item in found.waiting)
        oldest = max((wait.total_seconds() for wait in waits), default=0.0)
        tasks_looked_for.send_robust(Worker, seconds=oldest)
        # In another order each time, so that workers meet less often.
        order = {partition: random.random() for partition in self._partitions}  # noqa: S311 - no secret
        found.waiting.sort(key=lambda item: (rank_of(item.sort), order[item.partition], item.sort))
        return found

    def _read(self, partition: str, found: Found, is_consistent: bool) -> None:
        between = TaskItem.sort.between(
            *bounds(now(), only_deferred=partition in self._full and random.random() < 0.25)  # noqa: S311 - no secret
        )
        waiting: list[TaskItem] = []
        try:
            for item in TaskItem.query(
                partition,
                between,
                damaged=_left_out,
                page_size=FOUND_PER_SHARD,
                consistent_read=is_consistent,
            ):
                (found.held if item.lease else waiting).append(item)
                if len(waiting) == FOUND_PER_SHARD:
                    break
        except DynamoError as error:
            if is_consistent:
                raise
            log.warning("Tasks of %s cannot be read: %s", partition, error)
        (self._full.add if len(waiting) == FOUND_PER_SHARD else self._full.discard)(partition)
        found.waiting += [item for item in waiting if item.id not in self._running]

    def _hand_out(self, items: list[TaskItem]) -> bool:
        """Give `items` to threads as they get free. Returns whether one was given."""
        fresh_until = clock_now() + FRESH_SECONDS
        has_given = False
        for item in items:
            if item.partition in self._contended:
                continue
            while not self._free.acquire(timeout=TICK_SECONDS):
                if self._stopping.is_set():
                    return True
            if self._stopping.is_set() or (has_given and clock_now() > fresh_until):
                self._free.release()
                return True
            with self._changing:
                self._running[item.id] = None
            has_given = True
            self._handed.put(item)
        return has_given

    def _work(self) -> None:
        while (item := self._handed.get()) is not None:
            try:
                self._claim_and_run(item)
            except DynamoError as error:
                log.warning("The task %s is left to be repeated: %s", item.id, error)
            except Exception:
                log.exception("The task %s is left to be repeated", item.id)
            finally:
                with self._changing:
                    self._running.pop(item.id, None)
                    self._used_at = clock_now()
                self._free.release()

    def _claim_and_run(self, item: TaskItem) -> None:
        lease = self._lease.current()
        self._holder = Holder(lease.name, lease.fence)
        attempt = steps.claim(item, lease)
        if attempt is None:
            self._contended.add(item.partition)
            return
        with self._changing:
            self._running[item.id] = attempt
        began = time.perf_counter()
        outcome, error = _run(attempt)
        seconds = time.perf_counter() - began
        ran = Ran(item.id, item.function, outcome, len(item.workers), seconds, error)
        task_ran.send_robust(Worker, ran=ran)
        self._on_ran(ran)

    def _recover(self, found: Found, running: set[str], at_once: bool) -> None:
        """Place tasks again whose worker is gone.

        Costs one look at each other worker per lease, or `at_once` one each time.
        """
        by_holder: dict[Holder, list[TaskItem]] = {}
        for item in found.held:
            if (holder := holder_of(item)) and item.id not in running | self._running.keys():
                by_holder.setdefault(holder, []).append(item)
        self._watches = {
            holder: self._watches.get(holder) or HolderWatch(*holder) for holder in by_holder
        }
        for holder, items in by_holder.items():
            try:
                if self._is_gone(holder, at_once):
                    for item in items:
                        found.has_recovered |= _recover(item)
            except DynamoError as error:
                log.warning("The worker %s cannot be watched: %s", holder.lease, error)

    def _is_gone(self, holder: Holder, at_once: bool) -> bool:
        if holder == self._holder:
            # A claim or an end of this worker got no answer.
            return True
        watch = self._watches[holder]
        is_new = watch.ends_at == math.inf
        return (at_once or is_new or clock_now() >= watch.ends_at) and watch.is_gone()

    def _release_unused(self) -> None:
        """An idle worker does not renew a lease."""
        with self._changing:
            unused = not self._running and clock_now() > self._used_at + self._lease_seconds
        if unused:
            self._lease.release()

    def _end(self) -> None:
        ends_at = clock_now() + self._grace_seconds
        while self._running and clock_now() < ends_at:
            time.sleep(0.02)
        for _thread in range(self._threads):
            self._handed.put(None)
        with self._changing:
            left = [attempt for attempt in self._running.values() if attempt is not None]
        for attempt in left:
            try:
                steps.place_again(attempt.item, attempt.record, due=now())
                log.warning("The task %s was given back.", attempt.item.id)
            except (*LOST, DynamoError) as error:
                log.warning("The task %s was not given back: %s", attempt.item.id, error)
        self._lease.release()


def own_backends() -> list[TaskBackend]:
    return [backend for backend in task_backends.all() if isinstance(backend, TaskBackend)]


def _schedules() -> list[Any]:
    scheduled = [item for item in own_backends() if item.options.get("SCHEDULE")]
    if not scheduled:
        return []
    # It needs cronsim.
    from outbox.schedules import Schedules

    return [Schedules(backend.alias, backend.options["SCHEDULE"]) for backend in scheduled]


def partitions(queues: Iterable[str] = ()) -> list[str]:
    """The partitions of `queues`, by default of all queues of all `TaskBackend`s."""
    wanted = {*queues}
    found = {
        partition_of(queue, shard)
        for backend in own_backends()
        for queue in wanted or backend.queues
        if not backend.queues or queue in backend.queues
        for shard in range(backend.shards)
    }
    return sorted(found)


def stored_tasks(
    queues: Iterable[str] = (), damaged: Callable[[Item, DamagedItem], Any] | None = None
) -> Iterator[TaskItem]:
    """The tasks that have failed for good, wait or run. Costs 1 read unit per 4 KB of them."""
    known = {queue for backend in own_backends() for queue in backend.queues}
    failed = (f"{FAILED}#{queue}" for queue in sorted({*queues} or known))
    for partition in (*failed, *partitions(queues)):
        yield from TaskItem.query(partition, damaged=damaged)


def _set(event: threading.Event, **_signal: object) -> None:
    event.set()


def _left_out(_stored: Item, error: DynamoError) -> None:
    log.error("A task is left out: %s", error)


def _recover(item: TaskItem) -> bool:
    task = None
    # It is placed again also if this worker does not know its function.
    with suppress(Exception):
        task = steps.task_of(item)
    try:
        is_placed = steps.recover(item, _backend(item).retry_of(item.function, task))
    except LOST:
        # Another worker did it.
        return False
    if is_placed:
        log.warning("The worker %s of the task %s is gone.", item.lease, item.id)
    return is_placed


def _run(attempt: Attempt) -> tuple[str, BaseException | None]:
    """Run a claimed task and record how it ended. Returns the outcome, and the error."""
    item = attempt.item
    result = None
    try:
        task = steps.task_of(item)
        result = steps.result_of(item, attempt.record, task)
        signals.task_started.send_robust(_sender(item), task_result=result)
        arguments = result.args
        if task.takes_context:
            is_last = item.failures + 1 >= _backend(item).retry_of(item.function, task).attempts
            context = TaskContext(task_result=result, is_last=is_last, end=attempt.end)
            arguments = [context, *arguments]
        value = normalize_json(task.call(*arguments, **result.kwargs))
        if attempt.ends_itself and not attempt.has_ended:
            raise NotFinished(item.function)
    except BaseException as error:
        if not attempt.has_ended:
            return _fail(attempt, result, error)
        log.exception("The task %s raised this after it had ended.", item.id)
        value = None
    if not attempt.has_ended:
        try:
            steps.succeed(attempt, value)
        except LOST as error:
            if not steps.was_recorded(attempt):
                return "lost", error
        except (TypeError, ValueError, Rejected) as error:
            # The value cannot be stored.
            return _fail(attempt, result, error)
    _tell_end(item, result, base.TaskResultStatus.SUCCESSFUL, _return_value=value)
    return "successful", None


def _fail(
    attempt: Attempt, result: base.TaskResult | None, error: BaseException
) -> tuple[str, BaseException | None]:
    item = attempt.item
    retry = _backend(item).retry_of(item.function, result.task if result else None)
    pause = retry.pause(item.failures + 1, error)
    due = None if pause is None else now() + timedelta(seconds=pause)
    try:
        steps.place_again(item, attempt.record, due=due, error=error)
    except LOST as lost:
        # The error may be that the end of the task got no answer.
        return ("successful", None) if steps.was_recorded(attempt) else ("lost", lost)
    if due is None:
        _tell_end(item, result, base.TaskResultStatus.FAILED, error)
        return "failed", error
    shown = f"{type(error).__name__}: {error}"
    log.warning("The task %s failed and is due again at %s: %s", item.id, due, shown)
    return "repeated", error


def _tell_end(
    item: TaskItem,
    result: base.TaskResult | None,
    status: base.TaskResultStatus,
    error: BaseException | None = None,
    **values: object,
) -> None:
    if result is None:
        log.error("The task %s has failed: %s", item.id, error)
        return
    if error is not None:
        result.errors.append(steps.task_error(*steps.error_texts(error)))
    for name, value in {"status": status, "finished_at": now(), **values}.items():
        object.__setattr__(result, name, value)
    signals.task_finished.send_robust(_sender(item), task_result=result)


def _backend(item: TaskItem) -> TaskBackend:
    backend = task_backends[item.backend]
    assert isinstance(backend, TaskBackend)  # noqa: S101
    return backend


def _sender(item: TaskItem) -> type[TaskBackend]:
    return type(_backend(item))
