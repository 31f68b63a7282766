"""Deadlines: how long the requests of one operation, and of a whole page, are repeated.

A page sends several requests in a row. If each request had its own deadline, the visitor would wait
for the sum. Therefore, a page has one deadline, which all its operations share.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

#: An operation is repeated for this time. The last attempt may begin just before its end.
OPERATION_SECONDS = 5.0

#: DynamoDB completes a stalled transaction when it is sent again 5 s or more after its first
#: attempt: see `TransactionInProgressException` in
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
RECOVERY_SECONDS = 5.2

#: That attempt may begin this long after a deadline. With a page's 5.5 s and the time-outs of an
#: attempt (1 s to connect, 3 s to read) the page still answers within 10 s.
RECOVERY_GRACE_SECONDS = 0.4

#: `uncounted_seconds` lets a caller wait for this time when none is left.
LEAST_UNCOUNTED_SECONDS = 0.5

_ends_at: ContextVar[float | None] = ContextVar("dynamo_deadline", default=None)
_page_ends_at: ContextVar[float | None] = ContextVar("dynamo_page_deadline", default=None)
_last_at: ContextVar[float | None] = ContextVar("dynamo_last_deadline", default=None)


@contextmanager
def _ending(seconds: float, *deadlines: ContextVar[float | None]) -> Iterator[None]:
    """Set `deadlines` for the body, except where the current one is earlier."""
    ends_at = time.monotonic() + seconds
    tokens = []
    for deadline in deadlines:
        outer = deadline.get()
        tokens.append((deadline, deadline.set(ends_at if outer is None else min(outer, ends_at))))
    try:
        yield
    finally:
        for deadline, token in tokens:
            deadline.reset(token)


def at_most(seconds: float) -> AbstractContextManager[None]:
    """Give the body a page's deadline that cannot be moved, not even by `uncounted`.

    This is for a process that the system ends soon after the deadline.
    """
    return _ending(seconds, _last_at, _page_ends_at, _ends_at)


def page_deadline(seconds: float) -> AbstractContextManager[None]:
    """Give the body a page's deadline: its operations share it, and none begins after it.

    Inside another page, the earlier of the two deadlines counts.
    """
    return _ending(seconds, _page_ends_at, _ends_at)


def within(seconds: float) -> AbstractContextManager[None]:
    """Let all operations of the body share one deadline, `seconds` from now."""
    return _ending(seconds, _ends_at)


def page_is_over() -> bool:
    """Whether the deadline of the page has passed."""
    ends_at = _page_ends_at.get()
    return ends_at is not None and time.monotonic() > ends_at


def page_seconds_left() -> float | None:
    """The time that the page has left, at least 0; None outside a page."""
    ends_at = _page_ends_at.get()
    return None if ends_at is None else max(0.0, ends_at - time.monotonic())


@contextmanager
def uncounted() -> Iterator[None]:
    """Move the deadlines by the time of the body, which waits for something else.

    Otherwise a page that waits for a mail server would have no time left to store the result.
    Inside `at_most`, they are not moved beyond its end.
    """
    began = time.monotonic()
    try:
        yield
    finally:
        waited = time.monotonic() - began
        last_at = _last_at.get()
        for deadline in (_ends_at, _page_ends_at):
            if (ends_at := deadline.get()) is not None:
                moved = ends_at + waited
                deadline.set(moved if last_at is None else min(moved, last_at))


def uncounted_seconds(seconds: float) -> float:
    """The time, above 0, that the body of `uncounted` may wait if it needs `seconds`."""
    last_at = _last_at.get()
    if last_at is None:
        return seconds
    return min(seconds, max(LEAST_UNCOUNTED_SECONDS, last_at - time.monotonic()))


def operation_ends_at() -> float:
    """An operation that begins now starts no attempt after this `time.monotonic()`."""
    own = time.monotonic() + OPERATION_SECONDS
    shared = _ends_at.get()
    return own if shared is None else min(own, shared)


def seconds_until_recovery(began: float, last_began: float) -> float | None:
    """The time until the last attempt of a stalled transaction.

    None if that was made, or would be too late. The first attempt was made at `began`, the latest
    one at `last_began` (`time.monotonic()`).
    """
    now = time.monotonic()
    recovery = began + RECOVERY_SECONDS
    shared = _ends_at.get()
    is_too_late = shared is not None and max(recovery, now) > shared + RECOVERY_GRACE_SECONDS
    return None if is_too_late or last_began >= recovery else max(0.0, recovery - now)
