"""Counts the requests to DynamoDB that something sends: a page, a command, a block of code.

    with collect() as tally:
        register(…)
    tally.requests, tally.write_units       1, 6.0

A request counts on the tally of its sender, and is counted once:

- A request in nested blocks counts on the tallies of both.
- Threads of a `CountingPool` count on the tally of the thread that submitted the work.
- Renewals of a lease count on the tally of the code that acquired it (`locks`).
- A request that serves several callers (`sequences`) counts on the tally of the one that
  sent it. The tallies of the others count an answer that they `joined`.

Therefore, the sum of all tallies is the number of requests.
"""

from __future__ import annotations

import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dynamo.client.retries import is_read, outcome_of
from dynamo.runtime.altering import AltersData
from dynamo.runtime.terminal import quantity
from dynamo.signals import request_sent

if TYPE_CHECKING:
    from types import FrameType

P = ParamSpec("P")
A = TypeVar("A")
T = TypeVar("T")

#: The most calls that a tally keeps.
MOST_CALLS = 500

_current: ContextVar[Tally | None] = ContextVar("dynamo_tally", default=None)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt, for a debug toolbar. `asked_by` is `file:line function`."""

    operation: str
    table: str
    outcome: str
    read_units: float
    write_units: float
    milliseconds: float
    asked_by: str


class Tally(AltersData):
    """The counts of one block. Thread-safe; threads that outlive the block still count on it."""

    _alters_data = "note note_joined"

    def __init__(self, outer: Tally | None = None, *, keep_calls: bool = False) -> None:
        """`keep_calls` keeps each call and the line that made it.

        It is slow, and meant for development.
        """
        #: The number of attempts, including retries.
        self.requests = 0
        self.retries = 0
        #: Attempts that failed because of another transaction on the same item.
        self.conflicts = 0
        #: Answers that came with another caller's request.
        self.joined = 0
        self.read_units = 0.0
        self.write_units = 0.0
        #: The sum of the attempts' times, even if they ran in parallel.
        self.seconds = 0.0
        self.calls: list[Call] = []
        self._keep_calls = keep_calls
        #: The tallies of outer blocks, on which these requests count as well.
        self._outer: tuple[Tally, ...] = (outer, *outer._outer) if outer else ()
        self._lock = threading.Lock()

    def note(
        self,
        operation: str,
        request: dict[str, object],
        response: dict[str, object],
        error: BaseException | None,
        retries: int,
        seconds: float,
        **_signal: object,
    ) -> None:
        """Count an attempt (see `request_sent`), here and on the tallies around this one."""
        outcome = "ok" if error is None else outcome_of(error)
        read = write = 0.0
        for _table, reads, writes in consumed_units(operation, response):
            read += reads
            write += writes
        call: Call | None = None
        if any(tally._keep_calls for tally in (self, *self._outer)):
            names = operation, table_names(request), outcome
            call = Call(*names, read, write, round(seconds * 1000, 2), _asked_by())
        for tally in (self, *self._outer):
            with tally._lock:
                tally.requests += 1
                tally.retries += retries > 0
                tally.conflicts += outcome == "conflict"
                tally.read_units += read
                tally.write_units += write
                tally.seconds += seconds
                if call is not None and tally._keep_calls and len(tally.calls) < MOST_CALLS:
                    tally.calls.append(call)

    def note_joined(self) -> None:
        """Count an answer that came with another caller's request."""
        for tally in (self, *self._outer):
            with tally._lock:
                tally.joined += 1

    def fields(self) -> dict[str, int | float]:
        """The counts for a structured log line."""
        return {
            "dynamodbRequests": self.requests,
            "readUnits": self.read_units,
            "writeUnits": self.write_units,
            "retries": self.retries,
            "conflicts": self.conflicts,
            "joined": self.joined,
        }

    def __str__(self) -> str:
        """The counts as text, without those that are 0: `2 requests, 1 RCU, 6 WCU`."""
        parts = [quantity(self.requests, "request")]
        parts += [f"{self.read_units:g} RCU"] if self.read_units else []
        parts += [f"{self.write_units:g} WCU"] if self.write_units else []
        parts += [quantity(self.retries, "retry", "retries")] if self.retries else []
        parts += [quantity(self.conflicts, "conflict")] if self.conflicts else []
        parts += [f"{self.joined:,} joined"] if self.joined else []
        return ", ".join(parts)


def current() -> Tally | None:
    """The tally that a request sent now counts on, if any."""
    return _current.get()


def _note(**sent: Any) -> None:
    if tally := _current.get():
        tally.note(**sent)


@cache
def _listen() -> None:
    # The first tally connects the receiver, so that a process without tallies does no work.
    request_sent.connect(_note, dispatch_uid="dynamo.client.tally")


@contextmanager
def collect(*, keep_calls: bool = False) -> Iterator[Tally]:
    """Yield a tally of the requests of the body."""
    _listen()
    tally = Tally(_current.get(), keep_calls=keep_calls)
    with counted_on(tally):
        yield tally


@contextmanager
def counted_on(tally: Tally | None) -> Iterator[None]:
    """Count the requests of the body on `tally`, in a thread that works for another one."""
    token = _current.set(tally)
    try:
        yield
    finally:
        _current.reset(token)


class CountingPool(ThreadPoolExecutor):
    """A pool whose threads count on the tally of the thread that submits the work.

    They share nothing else of its context, such as the deadline of a page.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return super().submit(counted_on(current())(fn), *args, **kwargs)

    def batches(
        self, call: Callable[[A], T], items: Iterable[A], size: int
    ) -> Iterator[list[tuple[A, T]]]:
        """The `items`, each with what `call` returns for it, in batches of `size`.

        `items` may be endless: only a batch is taken at once.
        """
        left = iter(items)
        while batch := list(islice(left, size)):
            yield list(zip(batch, self.map(call, batch), strict=True))


def table_names(request: Mapping[str, Any]) -> str:
    """The table that a request names; several are sorted and joined by `+`."""
    if name := request.get("TableName"):
        return str(name)
    if "TransactItems" in request:
        actions = (action for item in request["TransactItems"] for action in item.values())
        return "+".join(sorted({action["TableName"] for action in actions}))
    return "+".join(sorted(request.get("RequestItems", ())))


def consumed_units(
    operation: str, response: Mapping[str, object]
) -> list[tuple[str, float, float]]:
    """The name, the read units and the write units of each table in the response.

    A refusal of DynamoDB names none.
    """
    consumed = response.get("ConsumedCapacity") or []
    by_table = consumed if isinstance(consumed, list) else [consumed]
    return [_units_of(operation, item) for item in by_table]


def _units_of(operation: str, consumed: Mapping[str, Any]) -> tuple[str, float, float]:
    table = consumed.get("TableName", "")
    # Transactions name both kinds. A commit that is repeated with its token only reads.
    if "ReadCapacityUnits" in consumed or "WriteCapacityUnits" in consumed:
        read = consumed.get("ReadCapacityUnits", 0.0)
        return table, read, consumed.get("WriteCapacityUnits", 0.0)
    units = consumed.get("CapacityUnits", 0.0)
    return (table, units, 0.0) if is_read(operation) else (table, 0.0, units)


_NOT_ASKING = (
    *(str(Path(__file__).parents[2] / package) for package in ("dynamo", "locks", "sequences")),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen",
)


def _asked_by() -> str:
    """The nearest line of the call stack outside this library and the installed packages."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_ASKING):
        frame = frame.f_back
    if frame is None:
        return ""
    path = Path(frame.f_code.co_filename)
    return f"{'/'.join(path.parts[-2:])}:{frame.f_lineno} {frame.f_code.co_qualname}"
