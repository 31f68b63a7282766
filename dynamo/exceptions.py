"""What can go wrong on the way to DynamoDB.

DynamoError
├── Unavailable            no usable answer in time: unreachable, throttled, failing
│   └── Busy               this process had no capacity left in time; nothing was sent
├── Rejected               DynamoDB refused the request itself: rights, size, a malformed key
│   └── TableMissing       a table of ours is not there
├── ConditionFailed        the condition of a single write was false
├── TransactionCancelled   conditions of a transaction were false (`Transaction` translates it)
├── AlreadyDone            a write found done what it was to do; the others were not written
├── Hindered               another transaction or throttling was in the way: to be done afresh
├── TableMismatch          a table stands under our name, but with another key
├── DamagedItem            an item holds a value of another type than its model says
└── LocalEngineFailed      the local engine did not start

Refused (ExceptionGroup)   several writes of one transaction were refused, each with its error
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class DynamoError(Exception):
    """Base of every error that this package raises on its own account."""


class Unavailable(DynamoError):
    """DynamoDB gave no usable answer within the deadline.

    `maybe_written` is true where a write may have arrived all the same: its reply was lost.
    """

    def __init__(self, operation: str, reason: str, *, maybe_written: bool = False) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason
        self.maybe_written = maybe_written

    def __str__(self) -> str:
        text = f"DynamoDB gave no answer to {self.operation} in time ({self.reason})."
        return f"{text} It may have been written all the same." if self.maybe_written else text


class Busy(Unavailable):
    """This process already does as much of `work` as it may at once, and stayed so in time.

    Nothing was sent or written. A subclass of `Unavailable`, because callers do the same: they
    answer 503 and ask to try again.
    """

    def __init__(self, work: str) -> None:
        super().__init__(work, "too much at once")
        self.work = work

    def __str__(self) -> str:
        return f"This process is busy: {self.work} found no free slot in time."


class Rejected(DynamoError):
    """DynamoDB understood the request and will not do it, now or later."""

    def __init__(self, operation: str, code: str, message: str) -> None:
        super().__init__(operation, code, message)
        self.operation = operation
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"DynamoDB refused {self.operation}: {self.code}: {self.message}"


class TableMissing(Rejected):
    """A table is not there; `manage.py createtables` makes it."""

    def __str__(self) -> str:
        return "A DynamoDB table is missing: run manage.py createtables (and check --tag dynamodb)."


class ConditionFailed(DynamoError):
    """The condition of a single write was false, so nothing was written.

    `repeated` is true where an earlier attempt of the same write may have arrived: what made the
    condition false may then be our own work, and the caller looks. `stored` is the item as it
    stands, where the request asked for it (`ReturnValuesOnConditionCheckFailure` = ALL_OLD) and
    there is one.
    """

    def __init__(
        self, operation: str, *, repeated: bool, stored: dict[str, Any] | None = None
    ) -> None:
        super().__init__(operation)
        self.operation = operation
        self.repeated = repeated
        self.stored = stored


@dataclass(frozen=True)
class CancellationReason:
    """Why one action of a transaction was refused; `item` is what is stored, None if absent."""

    code: str
    message: str
    item: dict[str, Any] | None


class TransactionCancelled(DynamoError):
    """A transaction was refused for good; `reasons` has one entry per action, in their order."""

    def __init__(self, operation: str, reasons: list[CancellationReason]) -> None:
        super().__init__(operation, reasons)
        self.operation = operation
        self.reasons = reasons

    def __str__(self) -> str:
        codes = ", ".join(reason.code for reason in self.reasons)
        return f"{self.operation} was cancelled: {codes}"


class AlreadyDone(DynamoError):
    """A write found that the stored item is what it was to store, so nothing was written.

    The other writes of its transaction are not done, or not known to be.
    """

    def __str__(self) -> str:
        return "A part of this is done already, so nothing was written."


class Hindered(DynamoError):
    """A transaction met another one, or was throttled: nothing is written, nothing was judged.

    Only who asks for it sees it (`afresh`): all others have the same bytes repeated.
    """

    def __init__(self, operation: str, *, throttled: bool) -> None:
        super().__init__(operation)
        self.operation = operation
        self.throttled = throttled


class TableMismatch(DynamoError):
    """A table stands under our name, but with another key; only making it anew would help.

    Both keys are written as in `series (S), number (N)`.
    """

    def __init__(self, table: str, *, stored: str, declared: str) -> None:
        super().__init__(table, stored, declared)
        self.table = table
        self.stored = stored
        self.declared = declared

    def __str__(self) -> str:
        return f"The table {self.table} has the key {self.stored}; the models need {self.declared}."


class DamagedItem(DynamoError):
    """An item of `table` holds a value of another type than its model says; `key` is its key."""

    def __init__(self, table: str, key: str, attribute: str) -> None:
        super().__init__(table, key, attribute)
        self.table = table
        self.key = key
        self.attribute = attribute

    def __str__(self) -> str:
        return f"The item {self.key!r} of {self.table} is damaged: {self.attribute}."


class LocalEngineFailed(DynamoError):
    """The local engine did not start; the message says why in one line."""


class Refused(ExceptionGroup[Exception]):
    """Several writes of one transaction were refused: the `otherwise` error of each.

    A single refusal is raised as its own error, not in a group. `except*` catches both.
    """

    def derive(self, excs: Any) -> Refused:  # type: ignore[override]  # as the docs of Python show
        return Refused(self.message, excs)
