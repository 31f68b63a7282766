"""Requests that do not depend on each other, sent at the same time.

A few threads serve all pages of a process. A call that finds none free is made by its caller, so no
page waits for another one's requests, and calls may be nested.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import Any

from dynamo._internal.processes import PerProcess

THREADS = 8

_pool = PerProcess(lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="together"))


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make `calls` at the same time and return their results, in order.

    They share the caller's deadline and tally. If some fail, the error of the first one is raised;
    later calls may then not have been made. None is under way when this ends.
    """
    first, *others = calls
    with ExitStack() as stack:
        waiting = []
        for call in others:
            future = _pool().submit(copy_context().run, call)
            stack.callback(_end, future)
            waiting.append(partial(_made, future, call))
        return [first(), *(result() for result in waiting)]


def _made(future: Future[Any], call: Callable[[], Any]) -> Any:
    return call() if future.cancel() else future.result()


def _end(future: Future[Any]) -> None:
    if not future.cancel():
        wait([future])
