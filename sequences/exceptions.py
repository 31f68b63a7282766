"""Errors of counters and series.

SequenceError            a `dynamo.DynamoError`
├── ReservedName         the name belongs to the counter of a series
├── NotACounter          the stored value is not a whole number
├── CounterContended     other callers changed the counter at every try until the deadline
└── SeriesError
    ├── RequestIdReused  the request id issued an item with other contents
    ├── OutOfOrder       the series has an item with a later value of `ordered_by`
    ├── ItemTooLarge     the item does not fit into DynamoDB
    └── DamagedSeries    the counter and the items of a series contradict each other
"""

from __future__ import annotations

import dynamo.exceptions
from dynamo.exceptions import DynamoError


class SequenceError(DynamoError):
    """Base of every error of counters and series."""


class ReservedName(SequenceError):
    """A counter cannot have this name: it belongs to a series."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The name {self.name!r} is reserved for the counter of a series."


class NotACounter(SequenceError):
    """The value stored under this name is not a whole number."""

    def __init__(self, name: str, stored: object = None) -> None:
        super().__init__(name, stored)
        self.name = name
        self.stored = stored

    def __str__(self) -> str:
        return f"The counter {self.name!r} does not hold a whole number: {self.stored!r}."


class CounterContended(SequenceError):
    """Other callers changed the counter at every try until the deadline. No number was drawn."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"The counter {self.name!r} is too busy: other callers changed it at every try."


class SeriesError(SequenceError):
    """Base of every error of a series."""


class RequestIdReused(SeriesError, dynamo.exceptions.RequestIdReused):
    """The request id was used before, for item `number` of `series` with other contents."""

    def __init__(self, request_id: str, series: str, number: int) -> None:
        super().__init__(request_id)
        self.args = (request_id, series, number)
        self.series = series
        self.number = number

    def __str__(self) -> str:
        return (
            f"This request id issued number {self.number} of {self.series} before, with other "
            "contents. Use a new request id."
        )


class OutOfOrder(SeriesError):
    """The item has `value`, but the series already has `last`. Both are stored values."""

    def __init__(self, value: str, last: str) -> None:
        super().__init__(value, last)
        self.value = value
        self.last = last

    def __str__(self) -> str:
        return f"The series already has {self.last}, which is after {self.value}."


class ItemTooLarge(SeriesError):
    """The item has `size_bytes`; at most `limit_bytes` can be stored."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"The item is too large: it has {self.size_bytes:,} bytes; at most "
            f"{self.limit_bytes:,} can be stored."
        )


class DamagedSeries(SeriesError):
    """The counter and the items of `series` contradict each other; run `checkseries`."""

    def __init__(self, series: str) -> None:
        super().__init__(series)
        self.series = series

    def __str__(self) -> str:
        return f"The series {self.series} is damaged. Nothing was issued. Run checkseries."
