"""Errors of tasks.

OutboxError            a `dynamo.DynamoError`
├── TaskTooLarge       the arguments do not fit into an item
├── TaskTooSlow        the task had not ended when the time of its function on Lambda was over
├── InvalidReturnValue the task ran, but what it returned cannot be stored
├── UnknownTask        the function of a stored task does not exist any more
├── UnknownQueue       a worker is to run a queue that is not in TASKS
├── NotFailed          a task that is to be restarted or discarded has not failed for good
├── NotFinished        `context.finish` was called, but its transaction was not committed
└── WorkerLost         a worker died, or stood still for too long, while it ran the task
"""

from dynamo.exceptions import DynamoError


class OutboxError(DynamoError):
    """Base of every error of tasks."""


class TaskTooLarge(OutboxError):
    """The arguments of a task do not fit into an item of DynamoDB (400 KB)."""

    function: str
    size: int
    most: int

    text = (
        "The task {function} has {size:,} bytes with its arguments; at most {most:,} fit into an "
        "item of DynamoDB. Store the data elsewhere, and give the task its key."
    )


class TaskTooSlow(OutboxError):
    """The task had not ended when its worker was stopped, which counts as a failed attempt."""

    seconds: float

    text = "The task had not ended after {seconds:,.0f} seconds, when its worker was stopped."


class InvalidReturnValue(OutboxError):
    """The task ran, but its return value cannot be stored. It is not repeated."""

    function: str
    problem: str

    text = "{function} ran, but its return value cannot be stored: {problem}."


class UnknownTask(OutboxError):
    """There is no task under the stored path: the function was renamed or removed."""

    function: str

    text = "There is no task {function}. Was it renamed or removed?"


class UnknownQueue(OutboxError):
    """No `TaskBackend` in TASKS has the queue."""

    queue: str

    text = "No backend in TASKS is an outbox.TaskBackend with the queue {queue!r}. Is it in QUEUES?"


class NotFailed(OutboxError):
    """No task with this id has failed for good, so none can be restarted or discarded."""

    id: str

    text = "No task with the id {id!r} has failed for good."


class NotFinished(OutboxError):
    """`context.finish` was called, but the transaction was not committed."""

    function: str

    text = (
        "{function} called context.finish(write=…), but its transaction was not committed when "
        "the function returned."
    )


class WorkerLost(OutboxError):
    """A worker died, or did not renew its lease, while it ran the task."""

    worker: str

    text = "The worker {worker} died, or did not renew its lease in time."
