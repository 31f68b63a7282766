"""Calls in threads of this library: asynchronous ones, and several at the same time.

`sync_to_async` is not used: by default, calls of one request share one thread. In that thread,
callers of a series would not share requests, and a caller that waits for a lock would block the
release of the lock.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, overload

from django.conf import settings

from dynamo.runtime.processes import PerProcess

THREADS = 8

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

# The threads are shared by all pages of a process. If no thread is free, the caller makes the call
# itself. Therefore, no page waits for the requests of another one, and calls may be nested.
_together = PerProcess(lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="together"))

# A call in this pool waits only for replies, not for another call or a lock.
_pool = PerProcess(
    lambda: ThreadPoolExecutor(settings.DYNAMODB_MAX_CONNECTIONS, thread_name_prefix="dynamo")
)


def submit(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Make a call in the pool, under the caller's deadline and counted on its tally."""
    return _pool().submit(copy_context().run, partial(call, *args, **kwargs))


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Make a call in the pool and wait for its result.

    If the waiting task is cancelled, a call in progress is completed, and a call that waits for a
    thread is not made.
    """
    return await asyncio.wrap_future(submit(call, *args, **kwargs))


def asynchronous(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The asynchronous form of a function or a method.

    If a subclass overrides the method, it calls that.
    """
    name, is_method = function.__name__, "." in function.__qualname__

    @wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if is_method:
            return await in_thread(getattr(args[0], name), *args[1:], **kwargs)
        return await in_thread(function, *args, **kwargs)

    call.__name__, call.__doc__ = f"a{name}", f"As `{name}`."
    return call


@overload
def together(one: Callable[[], A], two: Callable[[], B], /) -> tuple[A, B]: ...


@overload
def together(*calls: Callable[[], T]) -> tuple[T, ...]: ...


def together(*calls: Callable[[], object]) -> tuple[object, ...]:
    """Make `calls` at the same time and return their results, in order.

    They share the caller's deadline and tally. If some fail, the error of the first one is raised;
    later calls may then not have been made. All calls have ended when this returns.
    """
    first, *others = calls
    futures: list[Future[object]] = []
    try:
        for call in others:
            futures.append(_together().submit(copy_context().run, call))
        return first(), *map(_made, futures, others)
    finally:
        wait([future for future in futures if not future.cancel()])


def _made(future: Future[T], call: Callable[[], T]) -> T:
    return call() if future.cancel() else future.result()
