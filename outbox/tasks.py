"""The options of a task, and the context that it gets while it runs.

    @task
    def send_welcome(member_pk: str) -> None: …

    with Transaction() as write:
        ann = Member.create(email="ann@example.org", write=write)
        send_welcome.using(write=write).enqueue(ann.pk)

`task` is Django's decorator, for functions of any backend: with another backend than `TaskBackend`,
a task with `write=` is enqueued when the transaction has been committed.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypedDict, Unpack, overload

from django.utils.module_loading import import_string

from dynamo import Transaction, joined
from outbox.exceptions import NotFinished
from outbox.framework import base


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The rule for repeating failed attempts.

    - `attempts`: the most attempts; with 1, a failed attempt is not repeated.
    - `delay`: the longest pause before the second attempt, in seconds. It is doubled for each
      further attempt. The pause is random, between 0 and this limit.
    - `longest`: the longest pause.
    - `never`: errors after which the task is not repeated, as classes or their paths.

    Raises:
        ValueError: `attempts` is less than 1, or a time is negative.
        TypeError: `never` is a text, not a list.
    """

    attempts: int = 5
    delay: float = 10.0
    longest: float = 3600.0
    never: Iterable[type[BaseException] | str] = ()

    def __post_init__(self) -> None:
        if not (self.attempts >= 1 and self.delay >= 0 and self.longest >= 0):
            raise ValueError("Retry: attempts must be at least 1, and times not negative.")
        if isinstance(self.never, str):
            raise TypeError("Retry: never must be a list.")
        object.__setattr__(self, "never", tuple(self.never))

    def never_repeated(self, *, strict: bool = False) -> tuple[type[BaseException], ...]:
        """The classes in `never`.

        Classes that cannot be imported are left out, because they were not raised.

        Raises:
            ImportError: with `strict`, one of the paths is not that of an error class.
        """
        found = []
        for kind in self.never:
            try:
                error = import_string(kind) if isinstance(kind, str) else kind
                if not (isinstance(error, type) and issubclass(error, BaseException)):
                    raise ImportError(f"{kind} is not the class of an error")
                found.append(error)
            except ImportError:
                if strict:
                    raise
        return tuple(found)

    def pause(self, failures: int, error: BaseException) -> float | None:
        """The seconds until the next attempt after `failures` failed ones, the last with `error`.

        None means that the task has failed for good.
        """
        if failures >= self.attempts or isinstance(error, self.never_repeated()):
            return None
        # Full jitter, so that tasks that failed together are repeated at different times.
        return random.uniform(0, min(self.longest, self.delay * 2.0 ** (failures - 1)))  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(base.Task):
    """Django's Task, which can join a transaction, and be enqueued once.

    - `write`: the task is stored by this transaction, if that commits.
    - `request_id`: the same function with the same id is enqueued once, until the finished task is
      deleted; with other arguments it is RequestIdReused. Costs 4 write units.
    - `retry`: when failed attempts are repeated. OPTIONS["RETRY"] of the backend has precedence.
    """

    # The fields of Django's class have no defaults on 6.0.
    priority: int = 0
    queue_name: str = "default"
    backend: str = "default"
    run_after: datetime | None = None
    write: Transaction | None = field(default=None, compare=False)
    request_id: str | None = field(default=None, compare=False)
    retry: Retry | None = None

    def using(
        self, *, write: Transaction | None = None, request_id: object = None, **changes: Any
    ) -> "Task":
        """A copy of the task with other options, as in Django, or with `write` or `request_id`.

        Raises:
            ValueError: the request id is empty.
        """
        changed = base.Task.using(self, **changes)
        if write is not None:
            changed = replace(changed, write=write)
        if request_id is None:
            return changed
        if not str(request_id).strip():
            raise ValueError("The request id must not be empty.")
        return replace(changed, request_id=str(request_id))

    def enqueue(self, *args: object, **kwargs: object) -> base.TaskResult:
        """Like Django's method. With `write`, the task exists if the transaction commits.

        Raises:
            TypeError: it is called in the block of a transaction without `write`.
        """
        backend = self.get_backend()
        if getattr(backend, "joins_transactions", False):
            return backend.enqueue(self, args, kwargs)
        result = new_result(self, "", args, kwargs)

        def enqueue(_stored: object) -> None:
            made = backend.enqueue(result.task, args, kwargs)
            for name in {"id", *base.TASK_REFRESH_ATTRS}:
                object.__setattr__(result, name, getattr(made, name))

        with joined(self.write) as write:
            write.on_commit(result, enqueue)
        return result

    async def aenqueue(self, *args: object, **kwargs: object) -> base.TaskResult:
        """As in Django. With `write`, no request is sent."""
        if self.write is not None:
            return self.enqueue(*args, **kwargs)
        with joined(None):
            pass  # Raises TypeError in the block of a transaction, as `enqueue` does.
        return await self.get_backend().aenqueue(self, args, kwargs)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, as in Django. It gets our context with other backends as well."""
        if not self.takes_context or isinstance(args[0], TaskContext):
            return base.Task.call(self, *args, **kwargs)
        ending = Ending()
        context = TaskContext(task_result=args[0].task_result, end=ending.end)
        return ending.returned(base.Task.call(self, context, *args[1:], **kwargs), self.module_path)


def new_result(task: base.Task, id_: str, args: Any, kwargs: Any) -> base.TaskResult:
    """The result of a task that is to be enqueued.

    Raises:
        TypeError: the arguments are not JSON.
    """
    if isinstance(task, Task):
        task = replace(task, write=None, request_id=None)
    return base.TaskResult(
        task=task,
        id=id_,
        status=base.TaskResultStatus.READY,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[],
        **dict.fromkeys(("enqueued_at", "started_at", "finished_at", "last_attempted_at")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskContext(base.TaskContext):
    """Django's context. With it, a task can end in the transaction of its effect."""

    #: Whether this is the last attempt, so that none follows if it fails.
    is_last: bool = True
    #: Adds the end of the task to a transaction.
    end: Callable[[Transaction, object], object] = lambda _write, _value: None

    def finish(self, *, write: Transaction, return_value: object = None) -> None:
        """End this task by the transaction `write`, which then also has the effect of the task.

        Therefore, the effect happens once, even if the task is repeated. Commit the transaction
        before the function returns. Adds 2 writes, 4 write units; the end of the task then costs
        nothing more.

        Raises (from the commit):
            Stale, AlreadyExists, Refused: another worker has taken over the task. Nothing was
                written.
        """
        self.end(write, return_value)


@dataclass
class Ending:
    """The end of a task: the function calls `context.finish`, or returns a value."""

    #: The transaction that the function passed to `finish`.
    write: Transaction | None = None
    value: object = None
    #: Whether that transaction was committed.
    has_ended: bool = False

    def end(self, write: Transaction, value: object) -> None:
        """Does the work of `TaskContext.finish`."""
        self.write, self.value = write, value
        write.on_commit(self, lambda _stored: setattr(self, "has_ended", True))

    def returned(self, value: object, function: str) -> object:
        """The return value of the task, after its function has returned `value`.

        Raises:
            NotFinished: the transaction of `finish` was not committed.
        """
        if self.write is None:
            return value
        # A discarded transaction was committed by an earlier attempt, so only the task must end.
        if not (self.has_ended or self.write.is_discarded):
            raise NotFinished(function)
        return self.value


class Options(TypedDict, total=False):
    """The options of `task`."""

    priority: int
    queue_name: str
    backend: str
    takes_context: bool
    retry: Retry | None


@overload
def task(function: Callable[..., object], /) -> Task: ...


@overload
def task(**options: Unpack[Options]) -> Callable[[Callable[..., object]], Task]: ...


def task(function: Callable[..., object] | None = None, /, **options: Unpack[Options]) -> object:
    """Django's decorator, with the option `retry`.

    On any backend, the task can join transactions.
    """
    if unknown := options.keys() - Options.__annotations__.keys():
        raise TypeError(f"A function is not declared with {', '.join(unknown)}: see Task.using.")

    def decorated(function: Callable[..., object]) -> Task:
        return Task(func=function, **options)

    return decorated if function is None else decorated(function)
