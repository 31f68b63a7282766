"""The worker: it looks for tasks that are due, claims and runs them, and records how they ended.

One thread looks for tasks. It reads all shards at the same time, without consistency, because the
claim decides. Other threads claim and run the tasks that it found. While nothing is found, the
pauses get longer, up to `LONGEST_PAUSE`. A task that this process enqueues is looked for at once.

All tasks that a worker runs name one lock. The worker holds it while it runs tasks, and for one
lease after that. If it dies, other workers see that the lock is not renewed, and place its tasks
again.
"""

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from traceback import format_exception_only

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from dynamo import DamagedItem, DynamoError
from dynamo.runtime.clock import now as clock_now
from dynamo.runtime.threads import together
from dynamo.wire.types import Item
from locks.holders import Holder, HolderWatch, ProcessLease
from locks.lock import LEASE_SECONDS
from outbox import steps
from outbox.backend import all_queues, own_backends, partitions
from outbox.exceptions import TaskTooSlow, WorkerLost
from outbox.framework import base, signals
from outbox.models import FAILED, TaskItem, bounds, now
from outbox.signals import task_ran, tasks_looked_for
from outbox.steps import LOST, Attempt, backend_of
from outbox.tasks import TaskContext

log = logging.getLogger(__name__)

LOCK_PREFIX = "outbox#"

#: The pauses between two looks that found nothing.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 5.0

#: A request to stop is noticed after at most this time.
TICK_SECONDS = 0.2

#: The most tasks of a shard that one look finds.
FOUND_PER_SHARD = 10

#: A worker logs a damaged task once. It remembers at most this many.
MOST_DAMAGED = 1_000

#: After this time all shards are read again, because more urgent tasks may have come.
LOOK_SECONDS = 1.0

#: A worker that is stopped waits for running tasks for this time before it gives them back.
GRACE_SECONDS = 25.0


@dataclass(frozen=True)
class Ran:
    """One attempt. `outcome`: successful, repeated, failed or lost.

    A worker reports its own attempts, and those of workers that are gone.
    """

    id: str
    function: str
    outcome: str
    attempt: int
    seconds: float
    error: BaseException | None = None

    @property
    def shown_error(self) -> str:
        """The error in one line; empty without one."""
        return _shown(self.error) if self.error else ""


def _shown(error: BaseException) -> str:
    # Unlike `str(error)`, this function does not fail if the error's own `__str__` fails.
    return format_exception_only(error)[-1].strip()


class Worker:
    """Runs the tasks of `queues`; by default of all queues of all `TaskBackend`s.

    `on_ran` is called after each attempt, in the thread that made it. If it raises an error, the
    worker stops, and `run` raises it. After `stop` is set, nothing is claimed. Running tasks may
    end within `grace_seconds`, and the others are given back. If a task has run for
    `counted_seconds` by then, this counts as a failed attempt.

    Raises:
        ImproperlyConfigured: there is no `TaskBackend`.
        UnknownQueue: none has one of the queues.
        ValueError: `lease_seconds` is out of range.
    """

    def __init__(
        self,
        queues: Iterable[str] = (),
        *,
        threads: int = 4,
        lease_seconds: float = LEASE_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        counted_seconds: float = math.inf,
        on_ran: Callable[[Ran], object] = lambda _ran: None,
        stop: threading.Event | None = None,
    ) -> None:
        self._partitions = partitions(queues)
        if not self._partitions:
            raise ImproperlyConfigured(
                "No backend in TASKS is an outbox.TaskBackend, whose tasks workers run. "
                'Set TASKS = {"default": {"BACKEND": "outbox.TaskBackend"}}.'
            )
        self._schedules = [item.schedules() for item in own_backends() if item.options["SCHEDULE"]]
        self._lease = ProcessLease(LOCK_PREFIX, lease_seconds)
        self._lease_seconds = lease_seconds
        self._holder: Holder | None = None
        self._grace_seconds = grace_seconds
        self._counted_seconds = counted_seconds
        self._on_ran = on_ran
        self._error: Exception | None = None
        self._free = threading.Semaphore(threads)
        #: The tasks that this worker runs or is about to claim, by id.
        self._running: dict[str, Attempt | None] = {}
        #: Whether a shard had more tasks than a look reads. If so, the next look reads only the
        #: deferred tasks. They come last, and would otherwise never run under load.
        self._is_full = self._only_deferred = False
        #: The error of the last claim, if DynamoDB refused it. In this case, the pauses get longer.
        self._refusal: DynamoError | None = None
        self._watches: dict[Holder, HolderWatch] = {}
        self._log_once = lru_cache(MOST_DAMAGED)(log.error)
        self._wake = threading.Event()
        self._stopping = stop or threading.Event()
        self._used_at = clock_now()

    def run(self, *, once: bool = False) -> None:
        """Run tasks until `stop` is set; with `once` until no more are due.

        With `once`, it also waits, for at most a lease, until it knows which other workers with
        tasks are alive.

        An idle worker costs half a read unit per look and shard. See `steps` for what tasks cost.

        Raises:
            TableMissing, Rejected, Unavailable: with `once`, if tasks cannot be read, or not be
                claimed for some seconds. Otherwise, errors are logged, and the worker continues.
        """
        signals.task_enqueued.connect(self._look_soon)
        pause = SHORTEST_PAUSE
        try:
            while not self._stopping.is_set():
                self._wake.clear()
                # This is read before the look, because a task that ends later may have enqueued
                # another one.
                was_idle = not self._running
                for schedules in self._schedules:
                    schedules.enqueue_due()
                try:
                    has_found = self._look(once=once)
                except Exception:
                    if once:
                        raise
                    log.exception("The worker looks again later.")
                    has_found = False
                if has_found and self._refusal is None:
                    pause = SHORTEST_PAUSE
                    continue
                others_live = all(item.has_renewed for item in self._watches.values())
                if once and was_idle and others_live and not has_found:
                    break
                if once and self._refusal is not None and pause >= LONGEST_PAUSE:
                    raise self._refusal
                self._release_unused()
                has_enqueued = self._wait_for(self._wake.wait, pause)
                pause = SHORTEST_PAUSE if has_enqueued else min(2 * pause, LONGEST_PAUSE)
        finally:
            signals.task_enqueued.disconnect(self._look_soon)
            self._end()
        if self._error is not None:
            raise self._error

    def _look_soon(self, **_signal: object) -> None:
        self._wake.set()

    def _wait_for(self, event: Callable[..., bool], seconds: float) -> bool:
        """Wait for `event`, but not after this worker is stopped. Returns whether it happened."""
        ends_at = clock_now() + seconds
        while not self._stopping.is_set() and (left := ends_at - clock_now()) > 0:
            if event(timeout=min(left, TICK_SECONDS)):
                return True
        return False

    def _look(self, *, once: bool) -> bool:
        """Let threads run what can be claimed. Returns whether to look again at once.

        The most urgent tasks are first. Tasks whose worker is gone are placed again, and count as
        well.
        """
        self._only_deferred, self._is_full = self._is_full, False
        # The order is random, so that workers rarely read the same partition at the same time.
        random.shuffle(self._partitions)
        found = self._find(self._partitions, once)
        has_recovered = self._recover([item for item in found if item.lease], at_once=once)
        waiting = [item for item in found if not item.lease]
        if not self._only_deferred:
            longest = max((item.due_seconds for item in waiting), default=0.0)
            tasks_looked_for.send_robust(Worker, seconds=longest)
        has_given = self._hand_out(self._waiting(waiting, once))
        return has_given or has_recovered or self._only_deferred

    def _find(self, partitions: list[str], is_consistent: bool) -> list[TaskItem]:
        """The tasks of the partitions that are due, except those that this worker runs."""
        # A read may return tasks that have ended in the meantime, so `running` is copied before it.
        running = {*self._running}
        failed: dict[str, DynamoError] = {}
        looks = together(*(partial(self._read, name, is_consistent, failed) for name in partitions))
        running |= self._running.keys()
        if failed:
            # This is one line for all, because most likely DynamoDB does not answer at all.
            names, error = ", ".join(sorted(failed)), next(iter(failed.values()))
            log.warning("Tasks of %s cannot be read: %s", names, error)
        return [item for look in looks for item in look if item.id not in running]

    def _read(
        self, partition: str, is_consistent: bool, failed: dict[str, DynamoError]
    ) -> list[TaskItem]:
        """The first tasks of a partition that are due: those that run, and some that wait."""
        due = TaskItem.sort.between(*bounds(now(), only_deferred=self._only_deferred))
        found: list[TaskItem] = []
        waiting = 0
        try:
            for item in TaskItem.query(
                partition,
                due,
                damaged=lambda _stored, error: self._log_once("A task is left out: %s", str(error)),
                page_size=FOUND_PER_SHARD,
                consistent_read=is_consistent,
            ):
                found.append(item)
                waiting += not item.lease
                if waiting == FOUND_PER_SHARD:
                    break
        except DynamoError as error:
            if is_consistent:
                raise
            failed[partition] = error
        if waiting == FOUND_PER_SHARD and not self._only_deferred:
            self._is_full = True
        return found

    def _waiting(self, found: list[TaskItem], is_consistent: bool) -> Iterator[TaskItem]:
        """The tasks to claim, by priority, and then shard by shard.

        Each shard is read again before its tasks are claimed, because other workers may have run
        them.
        """
        places = {(item.rank, item.partition): None for item in found}
        for rank, partition in sorted(places, key=lambda place: place[0]):
            for item in self._find([partition], is_consistent):
                if item.rank == rank and not item.lease:
                    yield item

    def _hand_out(self, items: Iterator[TaskItem]) -> bool:
        """Give tasks to free threads. Returns whether there is more to do at once.

        If no thread becomes free, this ends before the next look, which also serves schedules and
        the tasks of workers that are gone.
        """
        look_at = clock_now() + LOOK_SECONDS
        has_given = False
        while self._wait_for(self._free.acquire, LONGEST_PAUSE):
            # The slot remains free, because only this thread takes slots.
            self._free.release()
            is_over = self._stopping.is_set() or (has_given and clock_now() > look_at)
            item = None if is_over else next(items, None)
            if item is None:
                return has_given
            self._free.acquire()
            self._running[item.id] = None
            has_given = True
            threading.Thread(target=self._work, args=[item], daemon=True).start()
        return True

    def _work(self, item: TaskItem) -> None:
        try:
            self._claim_and_run(item)
        except Exception as error:
            is_bug = not isinstance(error, DynamoError)
            log.warning("The task %s is left to be repeated: %s", item.id, error, exc_info=is_bug)
        finally:
            del self._running[item.id]
            self._used_at = clock_now()
            self._free.release()
            # The task may have opened connections to other databases, and this thread ends.
            connections.close_all()

    def _claim_and_run(self, item: TaskItem) -> None:
        try:
            lease = self._lease.current()
            self._holder = Holder(lease.name, lease.fence)
            attempt = steps.claim(item, lease)
        except DynamoError as error:
            self._refusal = error
            raise
        self._refusal = None
        if attempt is not None:
            self._running[item.id] = attempt
            self._report(item, *_run(attempt))

    def _report(self, item: TaskItem, outcome: str, error: BaseException | None) -> None:
        seconds = (now() - item.last_attempted_at).total_seconds()
        ran = Ran(item.id, item.function, outcome, len(item.workers), seconds, error)
        task_ran.send_robust(Worker, ran=ran)
        try:
            self._on_ran(ran)
        except Exception as failure:
            self._error = failure
            self._stopping.set()

    def _recover(self, held: list[TaskItem], *, at_once: bool) -> bool:
        """Place tasks again whose worker is gone. Returns whether there were any.

        Costs one read for each other worker per lease; with `at_once`, one for each call.
        """
        by_holder: dict[Holder, list[TaskItem]] = {}
        for item in held:
            by_holder.setdefault(Holder(item.lease, item.fence), []).append(item)
        has_seen_all = not (self._is_full or self._only_deferred)
        watches = {holder: self._watches.get(holder) or HolderWatch(holder) for holder in by_holder}
        self._watches = ({} if has_seen_all else self._watches) | watches
        has_recovered = False
        for holder, items in by_holder.items():
            try:
                if self._is_gone(holder, at_once):
                    for item in items:
                        if outcome := _recover(item):
                            has_recovered = True
                            self._report(item, outcome, WorkerLost(item.lease))
            except Exception as error:
                # A task that cannot be placed again must not stop the other ones, or keep a run
                # with `once` from ending.
                is_bug = not isinstance(error, DynamoError)
                text = "Tasks of the worker %s are left to be repeated: %s"
                log.warning(text, holder.lease, error, exc_info=is_bug)
                if is_bug:
                    del self._watches[holder]
        return has_recovered

    def _is_gone(self, holder: Holder, at_once: bool) -> bool:
        if holder == self._holder:
            # A request of this worker got no answer, so the task still names it as the holder.
            return True
        watch = self._watches[holder]
        is_new = watch.ends_at == math.inf
        return (at_once or is_new or clock_now() >= watch.ends_at) and watch.is_gone()

    def _release_unused(self) -> None:
        """Release the lease of an idle worker, which needs none."""
        if not self._running and clock_now() > self._used_at + self._lease_seconds:
            self._lease.release()

    def _end(self) -> None:
        ends_at = clock_now() + self._grace_seconds
        while self._running and clock_now() < ends_at:
            time.sleep(0.02)
        for attempt in [*self._running.values()]:
            if attempt is None:
                continue
            try:
                self._give_back(attempt.item)
            except (*LOST, DynamoError) as refusal:
                log.warning("The task %s was not given back: %s", attempt.item.id, refusal)
        self._lease.release()

    def _give_back(self, claimed: TaskItem) -> None:
        """Place a task again that a thread of this worker still runs."""
        # The task is read again, because that thread may be changing `claimed`.
        item = TaskItem.get_or_none(claimed.partition, claimed.sort)
        if item is None or item.workers != claimed.workers or not steps.is_unfinished(item):
            return
        seconds = (now() - item.last_attempted_at).total_seconds()
        if seconds >= self._counted_seconds:
            error = TaskTooSlow(seconds)
            self._report(item, _fail(item, error), error)
        else:
            steps.place_again(item, pause=0)
            log.warning("The task %s was given back.", item.id)


def stored_tasks(
    damaged: Callable[[Item, DamagedItem], object] | None = None,
) -> Iterator[TaskItem]:
    """The tasks that have failed for good, wait or run. Costs 1 read unit per 4 KB."""
    failed = (f"{FAILED}#{queue}" for queue in all_queues())
    for partition in (*failed, *partitions()):
        yield from TaskItem.query(partition, damaged=damaged)


def _recover(item: TaskItem) -> str | None:
    """Place a task again whose worker is gone.

    Returns the outcome; None if another worker did it.
    """
    with suppress(*LOST):
        if steps.is_unfinished(item):
            return _fail(item, WorkerLost(item.lease))
    return None


def _run(attempt: Attempt) -> tuple[str, BaseException | None]:
    """Run a claimed task and record how it ended. Returns the outcome, and the error."""
    item = attempt.item
    try:
        result = steps.result_of(item)
        task = result.task
        signals.task_started.send_robust(type(backend_of(item)), task_result=result)
        arguments = result.args
        if task.takes_context:
            is_last = item.failures + 1 >= backend_of(item).retry_of(item.function).attempts
            context = TaskContext(task_result=result, is_last=is_last, end=attempt.end)
            arguments = [context, *arguments]
        value = attempt.returned(task.call(*arguments, **result.kwargs), item.function)
        if not attempt.has_ended:
            steps.succeed(item, value)
    except BaseException as error:
        if attempt.has_ended:
            log.warning("The task %s raised this after it had ended.", item.id, exc_info=True)
        else:
            try:
                return _fail(item, error), error
            except LOST:
                # The error may be that the end of the task got no answer.
                if steps.recorded_end(item) != base.TaskResultStatus.SUCCESSFUL:
                    return "lost", error
    _tell_end(item)
    return "successful", None


def _fail(item: TaskItem, error: BaseException) -> str:
    """Let the task be repeated, or fail for good. Returns the outcome.

    Raises:
        one of `LOST`: it has ended, or was placed again.
    """
    pause = steps.fail(item, error)
    if pause is None:
        _tell_end(item)
        return "failed"
    text = "The task %s failed and is due again in %.0f s: %s"
    log.warning(text, item.id, pause, _shown(error))
    return "repeated"


def _tell_end(item: TaskItem) -> None:
    """Tell receivers how a task has ended, as its record says."""
    try:
        result = steps.result_of(item.record or item)
    except Exception as error:
        # The attempt failed for this reason.
        log.error("The task %s has failed: %s", item.id, error)
        return
    signals.task_finished.send_robust(type(backend_of(item)), task_result=result)
