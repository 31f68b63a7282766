"""Errors of DynamoDB, of the client and of this library.

DynamoError
├── Taken                  another item has a unique value
├── Stale                  the item changed or was deleted since it was read
├── DoesNotExist           no item has this key or value
├── AlreadyExists          an item has this key
├── RequestIdReused        the request id was used with other values
├── BadCursor              a page's cursor was changed, or belongs to another query
├── Unavailable            no usable answer in time: unreachable, throttled, failing
│   └── Busy               this process had no free slot in time; nothing was sent
├── Rejected               DynamoDB refused the request itself: rights, size, a malformed key
│   └── TableMissing       a table does not exist
├── ConditionFailed        the condition of a single write was false
├── TransactionCancelled   conditions of a transaction were false (`Transaction` translates it)
├── TransactionConflict    another transaction or throttling was in the way; nothing was written
├── Refused                (also an ExceptionGroup) several writes of a transaction were refused
├── AlreadyDone            a write was done before; the other writes of its transaction were not
├── TableMismatch          a table or an index exists, but with another key
├── DamagedItem            an item holds a value of another type than its model declares
└── LocalEngineFailed      the local engine did not start
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from inspect import get_annotations
from typing import Any, ClassVar, dataclass_transform

from django.core.exceptions import ObjectDoesNotExist
from pynamodb.exceptions import DoesNotExist as PynamoDoesNotExist

from dynamo.wire.types import Item


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class ErrorWithValues(Exception):
    """An error with values, which are its annotated attributes, as in a dataclass.

    Its message is `text`, formatted with them.

        class LineTooLong(ErrorWithValues):
            line: int
            text = "Line {line} is too long."
    """

    text: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A class without additional values keeps the constructor of its base.
        dataclass(eq=False, repr=False, init=bool(get_annotations(cls)))(cls)

    def __post_init__(self) -> None:
        # The values that `repr` shows and pickle stores.
        self.args = tuple(getattr(self, item.name) for item in fields(self) if item.repr)  # type: ignore[arg-type]  # it is one in each subclass

    def __str__(self) -> str:
        return self.text.format(**vars(self))


class DynamoError(ErrorWithValues):
    """Base of the errors of the library."""


class Taken(DynamoError):
    """Other items have the unique values of this write. Nothing was written.

    `values` has the refused values by attribute name, `uniques` the attribute names of each taken
    `Unique`: `[("email",), ("club", "card")]`.
    """

    def __init__(self, noun: str, uniques: Mapping[tuple[str, ...], Mapping[str, object]]) -> None:
        self.args = (noun, uniques)
        self.noun = noun
        self.uniques = list(uniques)
        self.values = {name: value for values in uniques.values() for name, value in values.items()}

    def __str__(self) -> str:
        texts = [
            " with ".join(f"the {name.replace('_', ' ')} {self.values[name]}" for name in names)
            for names in self.uniques
        ]
        return f"Another {self.noun} has {' and '.join(texts)}."

    def add(self, other: Taken) -> None:
        """Add the values of `other`, so that one error reports all."""
        self.uniques += other.uniques
        self.values |= other.values


class Stale(DynamoError):
    """The item changed, or was deleted (`is_deleted`), since it was read. Nothing was written."""

    noun: str = "item"
    is_deleted: bool = False

    def __str__(self) -> str:
        what = "was deleted" if self.is_deleted else "changed"
        return f"The {self.noun} {what} since it was read. Nothing was written."


class DoesNotExist(DynamoError, PynamoDoesNotExist, ObjectDoesNotExist):
    """No item has the key or the unique values.

    `reference` is the attribute of another item that named it, if a write required that it exists.
    """

    msg: str = "There is no such item."
    reference: str = ""

    text = "{msg}"


class AlreadyExists(DynamoError):
    """An item has this key already. Nothing was written.

    If other items have unique values of this item as well, `taken` is that error.
    """

    noun: str = "item"
    taken: Taken | None = None

    def __str__(self) -> str:
        text = f"There is a {self.noun} with this key already."
        return text if self.taken is None else f"{text} {self.taken}"


class RequestIdReused(DynamoError):
    """The request id created an item before, with other values. Nothing was written."""

    request_id: str
    noun: str = "item"

    text = "This request id created another {noun} before. Use a new request id."


class BadCursor(DynamoError, ValueError):
    """The cursor of a page was changed, or belongs to another query or another user."""

    text = "This cursor does not belong to this list."


class Unavailable(DynamoError):
    """DynamoDB gave no usable answer within the deadline.

    `maybe_written` is true if a write may have been carried out: its reply was lost.
    """

    operation: str
    reason: str
    maybe_written: bool = False

    text = "DynamoDB gave no answer to {operation} in time ({reason})."

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} The write may have been carried out anyway." if self.maybe_written else text


class Busy(Unavailable):
    """This process had no free slot for `operation` in time. Nothing was sent or written.

    It is an `Unavailable`, because callers handle both in the same way: they answer 503.
    """

    reason: str = "too much at once"

    text = "This process is busy: {operation} found no free slot in time."


class Rejected(DynamoError):
    """DynamoDB refused the request, and would refuse it again."""

    operation: str
    code: str
    message: str

    text = "DynamoDB refused {operation}: {code}: {message}"


class TableMissing(Rejected):
    """A table does not exist; `manage.py createtables` creates it."""

    text = (
        "A DynamoDB table is missing. Run manage.py createtables: it creates the tables of the "
        "models of installed apps, and manage.py check --tag dynamodb names the missing ones."
    )


class ConditionFailed(DynamoError):
    """The condition of a single write was false, so nothing was written.

    `repeated` is true if an earlier attempt of the same write may have been carried out. That
    attempt may be the reason why the condition is false, so the caller has to read the item. `item`
    is the stored item as on the wire, if there is one and the request asked for it
    (`ReturnValuesOnConditionCheckFailure` = ALL_OLD).
    """

    operation: str
    repeated: bool
    # The item is never part of a text, because the item of an account has a password hash.
    item: Item | None = field(default=None, repr=False)
    model: Any = field(default=None, repr=False)

    text = "The condition of {operation} was false."

    @property
    def stored(self) -> Any:
        """The stored item as an object of its model; None if the request was not of a model.

        Raises:
            DamagedItem: a value does not have its attribute's type.
        """
        return self.model and self.model.from_raw_data(self.item)


@dataclass(frozen=True)
class CancellationReason:
    """Why one action of a transaction was refused; `item` is the stored item, None if absent."""

    code: str
    message: str
    item: Item | None = field(repr=False)


class TransactionCancelled(DynamoError):
    """Conditions of a transaction were false; `reasons` has one entry per action, in order.

    `repeated`: a reply was lost before. The request token shows that nothing was written, unless
    the engine has forgotten it, as a local engine does after a restart.
    """

    operation: str
    reasons: list[CancellationReason]
    repeated: bool = False

    def __str__(self) -> str:
        codes = ", ".join(reason.code for reason in self.reasons)
        return f"{self.operation} was canceled: {codes}"


class TransactionConflict(DynamoError):
    """A transaction conflicted with another one, or was throttled. Nothing was written or checked.

    Raised only for `repeat_conflicts=False`: otherwise the transaction is repeated.
    """

    operation: str
    throttled: bool

    text = "{operation} met another transaction or was throttled."


class AlreadyDone(DynamoError):
    """The stored item already has what the write should store. Nothing was written.

    The other writes of its transaction were not done, or it is unknown whether they were.
    """

    text = "Part of this was done before, so nothing was written."


class TableMismatch(DynamoError):
    """A table or an index exists, but with another key, or the index with another projection.

    Keys are written as in `series (S), number (N)`.
    """

    table: str
    stored: str
    declared: str

    text = "The table {table} has the {stored}; the models need {declared}."


class DamagedItem(DynamoError):
    """The item `key` of `table` holds a value of another type than its model declares.

    `attribute` is the stored name; it is empty if the item as a whole is damaged. `problem` may say
    more.
    """

    table: str
    key: str
    attribute: str
    problem: str = ""

    @property
    def what(self) -> str:
        """What is damaged."""
        return ": ".join(filter(None, (self.attribute, self.problem)))

    def __str__(self) -> str:
        return f"The item {self.key!r} of {self.table} is damaged: {self.what}."


class LocalEngineFailed(DynamoError):
    """The local engine did not start; `reason` says why in one line."""

    reason: str

    text = "{reason}"


class Refused(ExceptionGroup[Exception], DynamoError):
    """Several writes of one transaction were refused: `exceptions` has the error of each.

    A single refusal is raised as its own error, not in a group. `except* Taken` catches both.
    """

    def __str__(self) -> str:
        return " ".join(map(str, self.exceptions))

    def derive(self, excs: Sequence[Exception]) -> Refused:  # type: ignore[override]  # as in Python's documentation
        return Refused(self.message, excs)
