"""A process that enqueues tasks or runs them: with `outbox`, django-tasks-db or Celery.

    python -m benchmarks.task_worker CONTENDER enqueue|pace|work|setup|empty …

`enqueue` is a worker of `benchmarks.harness`. `pace` enqueues tasks at a steady rate. `work` runs
tasks until TERM, with the contender's own worker and its defaults. Each task writes when it was
enqueued and when it began into a file of its process in the folder BENCH_NOTES.

Of this project it imports `outbox` alone, because the others run in an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.worker import Cost, postgres_settings, work

#: How many tasks a second `pace` enqueues: the worker is busy, and keeps up.
PER_SECOND = 50


def note(enqueued_at: float) -> None:
    """The task of all contenders."""
    began = time.time()
    with Path(os.environ["BENCH_NOTES"], str(os.getpid())).open("a", encoding="utf-8") as file:
        file.write(f"{enqueued_at} {began}\n")


class DjangosTasks:
    """A contender with the interface of Django's tasks, whose `task` is in `package`."""

    def __init__(self, package: str, worker: str, **settings: Any) -> None:
        import django
        from django.conf import settings as configured

        configured.configure(USE_TZ=True, LOGGING_CONFIG=None, **settings)
        django.setup()
        self.note: Any = import_module(package).task(note)
        # Workers find the task by the path of its function.
        vars(sys.modules["__main__"])["note"] = self.note
        self._worker = worker

    def enqueue(self) -> None:
        self.note.enqueue(time.time())

    def work(self) -> None:
        _command(self._worker)


class Outbox(DjangosTasks):
    def __init__(self) -> None:
        super().__init__(
            "outbox",
            "runtasks",
            INSTALLED_APPS=["dynamo", "locks", "outbox"],
            TASKS={"default": {"BACKEND": "outbox.TaskBackend"}},
            DEBUG=False,
        )


class DjangoTasksDb(DjangosTasks):
    def __init__(self) -> None:
        super().__init__(
            "django_tasks",
            "db_worker",
            INSTALLED_APPS=["django_tasks", "django_tasks_db"],
            TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
            DATABASES=postgres_settings(CONN_MAX_AGE=None),
        )

    def setup(self) -> None:
        _command("migrate", verbosity=0)

    def empty(self) -> None:
        import_module("django_tasks_db.models").DBTaskResult.objects.all().delete()


class Celery:
    def __init__(self) -> None:
        redis = os.environ["BENCH_REDIS"]
        self.app: Any = import_module("celery").Celery("bench", broker=redis, backend=redis)
        self.note: Any = self.app.task(name="note")(note)

    def enqueue(self) -> None:
        self.note.delay(time.time())

    def work(self) -> None:
        concurrency = os.environ["BENCH_CONCURRENCY"]
        self.app.worker_main(["worker", "--loglevel=ERROR", f"--concurrency={concurrency}"])

    def empty(self) -> None:
        import_module("redis").Redis.from_url(os.environ["BENCH_REDIS"]).flushall()


CONTENDERS: dict[str, Any] = {"outbox": Outbox, "django-tasks-db": DjangoTasksDb, "celery": Celery}


def _command(name: str, **options: Any) -> None:
    from django.core.management import call_command

    call_command(name, **options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("action", choices=["enqueue", "pace", "work", "setup", "empty"])
    parser.add_argument("--threads", type=int)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--name")
    options = parser.parse_args()
    contender = CONTENDERS[options.contender]()
    if options.action == "enqueue":
        work(lambda _name: contender.enqueue(), options, Cost())
    elif options.action == "pace":
        began = time.perf_counter()
        for number in range(options.operations):
            time.sleep(max(0.0, began + number / PER_SECOND - time.perf_counter()))
            contender.enqueue()
    else:
        getattr(contender, options.action)()


if __name__ == "__main__":
    main()
