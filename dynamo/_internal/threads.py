"""Asynchronous calls: synchronous ones, made in threads of a pool of this library.

`sync_to_async` is not used: by default, calls of one request share one thread. There, callers of a
series would not share requests, and a lock that waits would block its own release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings

from dynamo._internal.processes import PerProcess

P = ParamSpec("P")
T = TypeVar("T")

# A call in it waits for replies only: not for another call, nor for a lock.
_pool = PerProcess(
    lambda: ThreadPoolExecutor(settings.DYNAMODB_MAX_CONNECTIONS, thread_name_prefix="dynamo")
)


def submit(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """Make a call in the pool, under the caller's deadline and counted on its tally."""
    return _pool().submit(copy_context().run, partial(call, *args, **kwargs))


async def in_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Make a call in the pool and wait for its result.

    If the waiting task is cancelled, a call under way is completed, and one that waits for a thread
    is not made.
    """
    return await asyncio.wrap_future(submit(call, *args, **kwargs))
