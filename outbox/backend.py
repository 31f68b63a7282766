"""The backends: tasks in DynamoDB, and tasks that the process itself runs at once.

System checks, the second under the tag `dynamodb` as those of `dynamo.tables`:

outbox.E001   OPTIONS in TASKS cannot be used
outbox.W001   a task has waited for long: most likely no worker runs
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from dynamo import DynamoError, Transaction, joined
from outbox import framework
from outbox.exceptions import UnknownQueue
from outbox.framework import BaseTaskBackend, base, signals, task_backends
from outbox.models import QUEUE_MAX_LENGTH, partition_of
from outbox.steps import LONG_SECONDS, find, result_of, store, waited_seconds
from outbox.tasks import Retry, Task, new_result

log = logging.getLogger(__name__)

DEFAULTS: dict[str, Any] = {"SHARDS": 8, "KEEP_DAYS": 7, "RETRY": {}, "SCHEDULE": {}}

#: An id has at most 64 characters (Django), of which three are for the shard.
LIMITS = {"SHARDS": range(1, 1_001), "KEEP_DAYS": range(36_501)}


class TaskBackend(BaseTaskBackend):
    """Tasks in the table `tasks`, which `manage.py runtasks` runs.

    OPTIONS:

    - `SHARDS`: the number of partitions of each queue, 8 by default. It can be increased at any
      time, and decreased when the queues are empty.
    - `KEEP_DAYS`: a finished task is kept for this time, 7 days by default.
    - `RETRY`: arguments of `outbox.Retry` by the path of a function; `*` stands for all others.
    - `SCHEDULE`: see `outbox.schedules`.
    """

    task_class = Task
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    #: A transaction in `write=` stores the task.
    joins_transactions = True
    #: The time of the next check whether tasks wait for a worker.
    _looks_at = monotonic() + LONG_SECONDS

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._unknown = params.keys() - {"BACKEND", "QUEUES", "OPTIONS"}
        self.options = DEFAULTS | self.options
        for app in ("locks", "outbox"):
            if apps.apps_ready and not apps.is_installed(app):
                raise ImproperlyConfigured(f"TASKS: add {app} to INSTALLED_APPS, for its table.")
        if not self.queues or not all(0 < len(name) <= QUEUE_MAX_LENGTH for name in self.queues):
            # Django takes an empty list as permission for queues of any name.
            raise ImproperlyConfigured(
                "TASKS: outbox.TaskBackend needs at least one name in QUEUES, and each has 1 to "
                f"{QUEUE_MAX_LENGTH} characters. Its workers look for no other queues."
            )

    def enqueue(
        self, task: base.Task, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> base.TaskResult:
        """Store the task. With `write` it exists if that transaction commits.

        Costs 1 request and 1 write unit per KB, 2 in a transaction; 4 with a request id.

        Raises:
            TypeError: the arguments are not JSON, or it is called in the block of a transaction
                without `write`.
            TaskTooLarge: they do not fit into an item.
            RequestIdReused: the request id enqueued the function with other arguments; with
                `write` raised by the commit.
            Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
        """
        self.validate_task(task)
        result = new_result(task, "", args, kwargs)
        write: Transaction | None = getattr(task, "write", None)
        request_id: str | None = getattr(task, "request_id", None)
        with joined(write) as own:
            item = store(result, request_id=request_id, write=own)
            result = replace(result, id=item.id, enqueued_at=item.enqueued_at)

            def tell(_stored: object) -> None:
                if own.refusal_of(item) is None:
                    signals.task_enqueued.send_robust(type(self), task_result=result)
                    self._look_for_workers(item.partition)

            own.on_commit(item, tell)
        # A refusal means that the task was enqueued before, for example by a request without a
        # reply.
        return self.get_result(item.id) if write is None and own.refusals else result

    def _look_for_workers(self, partition: str) -> None:
        """From time to time, log a warning if tasks wait and no worker runs them.

        A thread does this, so that no page waits for it.
        """
        cls = type(self)
        if monotonic() >= cls._looks_at:
            cls._looks_at = monotonic() + LONG_SECONDS
            threading.Thread(target=_warn_if_long, args=[partition], daemon=True).start()

    def get_result(self, result_id: str) -> base.TaskResult:
        """The task with this id, as it is stored.

        Costs 1 request and 1 read unit if it has finished, else 2 of each.

        Raises:
            TaskResultDoesNotExist: there is none, or it was deleted after `KEEP_DAYS`.
            UnknownTask: its function does not exist any more.
        """
        return result_of(find(result_id))

    def retry_of(self, function: str) -> Retry:
        """The rule for repeating the function: that in OPTIONS, or else that of the task."""
        retries: Mapping[str, Mapping[str, Any]] = self.options["RETRY"]
        own: Retry | None = None
        # This process may not know the function, or may be unable to import it.
        with suppress(Exception):
            own = getattr(import_string(function), "retry", None)
        if own is not None and function not in retries:
            return own
        return Retry(**retries.get(function, retries.get("*", {})))

    def schedules(self) -> Any:
        """The schedules in `SCHEDULE`. They need cronsim."""
        from outbox.schedules import Schedules

        return Schedules(self.alias, self.options["SCHEDULE"])

    def check(self, **kwargs: object) -> list[checks.CheckMessage]:
        """Django's system check."""
        faults = [f"{name} is unknown" for name in self.options.keys() - DEFAULTS.keys()]
        for name, allowed in LIMITS.items():
            value = self.options[name]
            if not isinstance(value, int) or value not in allowed:
                limits = f"from {allowed[0]} to {allowed[-1]:,}"
                faults.append(f"{name} must be a whole number {limits}")
        for function in self.options["RETRY"]:
            try:
                if function != "*":
                    import_string(function)
                self.retry_of(function).never_repeated(strict=True)
            except Exception as error:
                # Importing a module from a setting can raise any error.
                faults.append(f"RETRY of {function}: {error}")
        try:
            faults += self.schedules().faults() if self.options["SCHEDULE"] else []
        except Exception as error:
            # For example, cronsim is missing, which only the extra `tasks` installs.
            faults.append(f"SCHEDULE: {error}")
        texts = [f"TASKS[{self.alias!r}]: {name} is unknown." for name in sorted(self._unknown)]
        texts += [f"TASKS[{self.alias!r}], OPTIONS: {fault}." for fault in faults]
        hint = f"There are BACKEND, QUEUES and OPTIONS; the options are {', '.join(DEFAULTS)}."
        errors = [checks.Error(text, hint=hint, id="outbox.E001") for text in texts]
        return [*super().check(**kwargs), *errors]


def own_backends() -> list[TaskBackend]:
    return [backend for backend in task_backends.all() if isinstance(backend, TaskBackend)]


def partitions(queues: Iterable[str] = ()) -> list[str]:
    """The partitions of `queues`, by default of all queues of all `TaskBackend`s.

    Raises:
        UnknownQueue: no `TaskBackend` has the queue.
    """
    wanted = {*queues} or {*all_queues()}
    for queue in sorted(wanted.difference(all_queues())):
        raise UnknownQueue(queue)
    found = {
        partition_of(queue, shard)
        for backend in own_backends()
        for queue in wanted & backend.queues
        for shard in range(backend.options["SHARDS"])
    }
    return sorted(found)


def all_queues() -> list[str]:
    return sorted({queue for backend in own_backends() for queue in backend.queues})


@checks.register("dynamodb", deploy=True)
def check_workers(**_options: object) -> list[checks.CheckMessage]:
    """Whether tasks wait and nothing runs them. Costs half a read unit per shard."""
    try:
        waits = max(map(waited_seconds, partitions()), default=0)
    except DynamoError:
        # The check of `dynamo.tables.checks` reports the error.
        return []
    if waits < LONG_SECONDS:
        return []
    text = f"A task has waited for {waits:,.0f} seconds."
    return [checks.Warning(text, hint="Run manage.py runtasks.", id="outbox.W001")]


def _warn_if_long(partition: str) -> None:
    with suppress(DynamoError):
        if (waits := waited_seconds(partition)) >= LONG_SECONDS:
            log.warning("A task has waited for %d s. Does manage.py runtasks run?", waits)


class ImmediateBackend(framework.ImmediateBackend):
    """Django's backend, whose tasks can join transactions: the process runs them after the commit.

    It is for tests, and for projects without a worker. If the process dies before a task has run,
    the task is lost. A request id does not prevent a task from running again.
    """

    task_class = Task
