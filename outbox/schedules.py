"""Schedules: tasks that are enqueued at the times of cron expressions.

    "SCHEDULE": {"nightly": {"task": "staff.tasks.report", "cron": "0 3 * * *", "args": ["all"]}}

Each worker compares the schedules with its clock and enqueues the tasks that are due. Each schedule
has an item with the time that was enqueued last. It changes in the transaction that stores the
task, so each time is enqueued once. If several times passed while no worker ran, only the latest
one is enqueued. A new schedule, or a changed cron expression, begins with its next time. Times are
in TIME_ZONE.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from cronsim import CronSim
from django.utils import timezone
from django.utils.module_loading import import_string

from dynamo import AlreadyExists, Refused, Stale, Transaction
from outbox.framework import base
from outbox.models import TaskItem, now
from outbox.tasks import Task, new_result

log = logging.getLogger(__name__)

#: The option has, for each name, the path of a task, a cron expression, and optional arguments.
Schedule = Mapping[str, Mapping[str, Any]]

#: The sort key of the item of a schedule.
SLOT = "slot"

#: After an error, a schedule is tried again after this pause.
AGAIN_AFTER = timedelta(minutes=1)


class Schedules:
    """The schedules of one backend, and their next times by this worker's clock."""

    def __init__(self, alias: str, schedule: Schedule) -> None:
        self._alias = alias
        self._schedule = schedule
        self._due: dict[str, datetime] = {}

    def enqueue_due(self) -> None:
        """Enqueue the tasks that are due. Errors are logged.

        Each time of a schedule costs 1 read unit, and once 4 write units.
        """
        at = timezone.localtime(now())
        for name, options in self._schedule.items():
            if name in self._due and at < self._due[name]:
                continue
            try:
                # A microsecond is added, so that a time that equals `at` counts as due.
                until = at.replace(microsecond=1)
                self._enqueue(name, options, next(CronSim(options["cron"], until, reverse=True)))
                self._due[name] = next(CronSim(options["cron"], at))
            except Exception:
                log.exception("The schedule %s cannot be enqueued, and is tried again later.", name)
                self._due[name] = at + AGAIN_AFTER

    def _enqueue(self, name: str, options: Mapping[str, Any], slot: datetime) -> None:
        """Enqueue the task of a time, unless it was enqueued before."""
        partition = f"schedule#{self._alias}#{name}#{options['cron']}"
        item = TaskItem.get_or_none(partition, SLOT)
        task = self._task_of(options)
        args, kwargs = _arguments(options)
        try:
            if item is None:
                TaskItem.create(
                    partition=partition,
                    sort=SLOT,
                    id=partition,
                    function=options["task"],
                    arguments=[args, kwargs],
                    queue=task.queue_name,
                    backend=self._alias,
                    status=base.TaskResultStatus.READY,
                    enqueued_at=now(),
                    run_after=slot,
                )
            elif item.run_after < slot:
                with Transaction() as write:
                    item.change(run_after=slot, write=write)
                    task.using(write=write).enqueue(*args, **kwargs)
        except (AlreadyExists, Stale, Refused):
            # Another worker has enqueued the task.
            pass

    def _task_of(self, options: Mapping[str, Any]) -> Task:
        task = import_string(options["task"])
        if not isinstance(task, Task):
            raise ImportError(f"{options['task']} is not a task of outbox.TaskBackend.")
        return task.using(backend=self._alias)

    def faults(self) -> list[str]:
        """The errors of the option, for the system check."""
        faults = []
        for name, options in self._schedule.items():
            try:
                CronSim(options["cron"], now())
                task = self._task_of(options)
                args, kwargs = _arguments(options)
                if not (isinstance(args, list | tuple) and isinstance(kwargs, dict)):
                    raise TypeError("args is a list, and kwargs a dictionary")
                new_result(task, "", args, kwargs)
                if unknown := options.keys() - {"task", "cron", "args", "kwargs"}:
                    raise KeyError(*unknown)
            except Exception as error:
                # The import of a module that a setting names can raise anything.
                faults.append(f"the schedule {name}: {error!r}")
        return faults


def _arguments(options: Mapping[str, Any]) -> tuple[Any, Any]:
    return options.get("args", []), options.get("kwargs", {})
