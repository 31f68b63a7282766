"""Errors of counters and series.

SequenceError            a `dynamo.DynamoError`
├── ReservedName         the name belongs to the counter of a series
├── NotACounter          the stored value is not a whole number
├── CounterContended     other callers changed the counter at every try until the deadline
└── SeriesError
    ├── RequestIdReused  the request id issued an item with other contents
    ├── OutOfOrder       the series has an item with a later value of `ordered_by`
    ├── SeriesStarted    the series has items, or begins at another number
    ├── ItemTooLarge     the item does not fit into DynamoDB
    └── DamagedSeries    the counter and the items of a series contradict each other
"""

import dynamo.exceptions
from dynamo.exceptions import DynamoError


class SequenceError(DynamoError):
    """Base of every error of counters and series."""


class ReservedName(SequenceError):
    """A counter cannot have this name: it belongs to a series."""

    name: str

    text = "The name {name!r} is reserved for the counter of a series."


class NotACounter(SequenceError):
    """The value stored under this name is not a whole number."""

    name: str
    stored: object = None

    text = "The counter {name!r} does not hold a whole number: {stored!r}."


class CounterContended(SequenceError):
    """Other callers changed the counter at every try until the deadline. No number was drawn."""

    name: str

    text = "The counter {name!r} is too busy: other callers changed it at every try."


class SeriesError(SequenceError):
    """Base of every error of a series."""


class RequestIdReused(SeriesError, dynamo.exceptions.RequestIdReused):
    """The request id was used before, for item `number` of `series` with other contents."""

    def __init__(self, request_id: str, series: str, number: int) -> None:
        super().__init__(request_id)
        self.args = (request_id, series, number)
        self.series = series
        self.number = number

    text = (
        "This request id issued number {number} of {series} before, with other contents. Use "
        "a new request id."
    )


class OutOfOrder(SeriesError):
    """The item has `value`, but the series already has the later `last`. Both are stored values."""

    value: str
    last: str

    text = "The series already has {last}, which is after {value}."


class SeriesStarted(SeriesError):
    """The series has items already, or begins at another number. Nothing was written."""

    series: str

    text = "The series {series} has begun already."


class ItemTooLarge(SeriesError):
    """The item has `size_bytes`; at most `limit_bytes` can be stored."""

    size_bytes: int
    limit_bytes: int

    text = (
        "The item is too large: it has {size_bytes:,} bytes; at most {limit_bytes:,} can be stored."
    )


class DamagedSeries(SeriesError):
    """The counter and the items of `series` contradict each other; run `checkseries`."""

    series: str

    text = "The series {series} is damaged. Nothing was issued. Run checkseries."
