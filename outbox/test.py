"""Tasks in tests: `run_tasks()` runs the enqueued tasks."""

from collections.abc import Iterable

from outbox.worker import Ran, Worker


def run_tasks(queues: Iterable[str] = (), *, raise_errors: bool = True) -> list[Ran]:
    """Run the tasks that are due, and those that they enqueue. Returns the attempts.

    This is for `TaskBackend`, in tests with the tables of `dynamo.test`. Raises the first error of
    a task after all tasks have run, unless `raise_errors` is False.
    """
    ran: list[Ran] = []
    Worker(queues, threads=1, on_ran=ran.append).run(once=True)
    for attempt in ran:
        if raise_errors and attempt.error is not None:
            raise attempt.error
    return ran
