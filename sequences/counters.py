"""Counters: each number is given out once, even if many callers ask at the same time.

    next_value("tickets")                       1, then 2, then 3 …
    next_values(100, "tickets")                 range(4, 104)
    next_value("seconds", 0, reset_value=60)    0, 1 … 59, then 0 again
    for number in Sequence("tickets", increment=10): …

A counter is one item. There are two strategies to change it:

- *atomic*, the default: one UpdateItem adds to the counter and returns the sum. Costs 1 request
  and 1 write unit, for one number or for thousands. A request whose reply is lost may have counted,
  so it is not repeated: its numbers are skipped, and the caller gets Unavailable.
- *optimistic*: a read, then a write under the condition that the counter has not changed, and a
  random pause after each collision. Costs 2 requests, 1 read and 1 write unit; each collision costs
  the same again. A write whose reply is lost is repeated. If the first one counted, its numbers are
  skipped, and the next try returns others without an error.

Threads of a process that wait for the same counter, with the same settings, share a request: 16
waiting threads cost as much as one.

A counter never issues a number twice, unless it is deleted or starts over. It may skip numbers, and
callers that ask at the same time may get theirs in any order. If numbers must not be skipped, use
`series`. Write a counter in one region only. A global table that is written in two regions issues
numbers twice.

A name is any text of 1 to 2,048 bytes in UTF-8. Names that begin with the table of a numbered model
and `#`, such as `invoices#…`, are reserved for the counters of its series. To be safe with models
that you add later, use names without `#`.

Numbers are exact up to 38 digits. If a counter would exceed them, OverflowError is raised.

Sources: "DynamoDBとPythonでユニークな連番を採番する" (atomic counters from Python), "How to
autoincrement in DynamoDB if you really need to" (both strategies), django-sequences 3.1 (the API).
"""

import itertools
import time
from collections.abc import Iterator, Sequence as SequenceOf
from dataclasses import dataclass
from decimal import Decimal
from operator import index
from typing import Literal, get_args

from dynamo.client.retries import pause_seconds
from dynamo.client.sending import read_item, send, write_one
from dynamo.exceptions import ConditionFailed, Rejected
from dynamo.runtime.altering import AltersData
from dynamo.runtime.deadline import operation_ends_at, within
from dynamo.runtime.threads import asynchronous
from dynamo.wire.types import Item, Typed
from dynamo.wire.updates import Update
from dynamo.wire.values import fits_key, typed_number
from sequences.combining import Caller, Combiner
from sequences.exceptions import CounterContended, NotACounter, ReservedName
from sequences.models import Counter, is_counter_of_series
from sequences.signals import numbers_given

Strategy = Literal["atomic", "optimistic"]

#: The first whole number with more than DynamoDB's 38 digits.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
NUMBERS_END = 10**38

#: Only calls that move a counter by less than this share a request. A larger move may exceed 38
#: digits, and then only this call must be refused.
SHARED_SPAN = 10**18


@dataclass(frozen=True)
class Sequence(AltersData):
    """A counter and its settings, as an iterator without an end.

    Each step returns the next number, with the costs and errors of the function `next_value`. The
    counter begins with `initial_value` and moves by `increment`, which may be negative. With a
    `reset_value` it starts over at `initial_value` instead of reaching that value. Use the same
    settings in all places that share a counter.

    Raises:
        ReservedName, ValueError, TypeError: as in `next_value`; no request is sent.
    """

    _alters_data = "next_value next_values delete"

    name: str
    initial_value: int = 1
    increment: int = 1
    reset_value: int | None = None
    strategy: Strategy = "atomic"

    def __post_init__(self) -> None:
        checked_name(self.name)
        if self.strategy not in get_args(Strategy):
            raise ValueError(f"strategy must be atomic or optimistic, not {self.strategy!r}.")
        for setting in ("initial_value", "increment", "reset_value"):
            if (number := getattr(self, setting)) is not None or setting != "reset_value":
                object.__setattr__(self, setting, index(number))
        start = self.initial_value
        step = self.increment
        reset = self.reset_value
        if step == 0:
            raise ValueError("increment must not be 0.")
        if reset is not None and (reset - start) * step <= 0:
            raise ValueError(
                f"reset_value must lie beyond initial_value: {reset} is not reached from {start} "
                f"in steps of {step}."
            )
        if any(abs(number) >= NUMBERS_END for number in (start, step, start - step, reset or 0)):
            raise ValueError("A counter's numbers have at most 38 digits.")

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self.next_value()

    def next_value(self) -> int:
        """Return the next number; see the function `next_value`."""
        return _draw(self, 1)[0]

    def next_values(self, count: int) -> range:
        """Return the next `count` numbers; see the function `next_values`.

        Raises:
            ValueError: also if the sequence has a `reset_value`.
        """
        if self.reset_value is not None:
            raise ValueError("A sequence with a reset_value gives its numbers one by one.")
        count = index(count)
        if count < 1:
            raise ValueError(f"count must be 1 or more, not {count}.")
        if count * abs(self.increment) >= NUMBERS_END:
            raise ValueError(f"{count} numbers in steps of {self.increment} pass 38 digits.")
        return _draw(self, count)

    def last_value(self) -> int | None:
        """Return the last number that was given out; see the function `last_value`."""
        return last_value(self.name)

    def delete(self) -> bool:
        """Delete the counter; see `delete_counter`."""
        return delete_counter(self.name)


def next_value(
    name: str,
    initial_value: int = 1,
    *,
    increment: int = 1,
    reset_value: int | None = None,
    strategy: Strategy = "atomic",
) -> int:
    """Return the next number of a counter; the settings are those of `Sequence`.

    Costs 1 request and 1 write unit (atomic), or 2 requests, 1 read and 1 write unit (optimistic),
    for all threads that wait together. With a `reset_value`, calls are not combined, and atomic
    ones that start over cost 2 requests and 2 write units.

    Raises:
        ReservedName: the name belongs to the counter of a series.
        NotACounter: the stored value is not a whole number. If it is a fraction, an atomic call has
            added to it.
        CounterContended: other callers changed the counter at every try until the deadline
            (optimistic, or atomic at the `reset_value`).
        Unavailable: no answer in time; with `maybe_written` a number may have been skipped.
        OverflowError: the counter would pass 38 digits.
        ValueError: the name cannot be a key, `increment` is 0, `reset_value` is on the wrong side
            of `initial_value`, or a number has more than 38 digits.
        TypeError: the name is not text, or a number is not whole.
    """
    return Sequence(name, initial_value, increment, reset_value, strategy).next_value()


#: The asyncio tasks that wait for the same counter share a request.
anext_value = asynchronous(next_value)


def next_values(
    count: int,
    name: str,
    initial_value: int = 1,
    *,
    increment: int = 1,
    strategy: Strategy = "atomic",
) -> range:
    """Return the next `count` numbers of a counter, with no other caller's number between them.

    Has the costs and errors of `next_value`, and raises ValueError if `count` is below 1.
    """
    return Sequence(name, initial_value, increment, strategy=strategy).next_values(count)


def last_value(name: str) -> int | None:
    """Return the last number of a counter; None if it has given out none.

    Other callers may draw more at any moment. Costs 1 request and 1 read unit.

    Raises:
        ReservedName: the name belongs to the counter of a series.
        NotACounter: the stored value is not a whole number.
        ValueError, TypeError: the name cannot be a key.
    """
    return _read(checked_name(name))


def delete_counter(name: str) -> bool:
    """Delete a counter, so that it starts again; return whether it existed.

    If a reply is lost, the request is repeated, and may return False although it deleted the
    counter. Costs 1 request and 1 write unit.

    Raises:
        ReservedName: the name belongs to the counter of a series.
        ValueError, TypeError: the name cannot be a key.
    """
    request = Counter.address(checked_name(name)) | {"ReturnValues": "ALL_OLD"}
    return bool(send("DeleteItem", request).get("Attributes"))


def checked_name(name: str) -> str:
    """Return `name` if a counter can have it. Costs no request.

    Raises:
        ReservedName: the name belongs to the counter of a series.
        ValueError: it is empty, too long, or cannot be encoded in UTF-8.
        TypeError: it is not text.
    """
    if not isinstance(name, str):
        raise TypeError(f"A counter's name must be text, not {name!r}.")
    if is_counter_of_series(name):
        raise ReservedName(name)
    if not fits_key(name):
        raise ValueError("A counter's name must be text of 1 to 2,048 bytes in UTF-8.")
    return name


# Callers that share a request --------------------------------------------------------------------


def _draw(sequence: Sequence, count: int) -> range:
    if sequence.reset_value is not None or count * abs(sequence.increment) >= SHARED_SPAN:
        return _draw_together(sequence, [count])[0]
    return _combiner(sequence, count)


def _draw_for_all(sequence: Sequence, callers: list[Caller[int, range]]) -> None:
    callers = [caller for caller in callers if caller.mark_sent()]
    drawn = _draw_together(sequence, [caller.ask for caller in callers])
    for caller, numbers in zip(callers, drawn, strict=True):
        caller.decide(numbers)


def _draw_together(sequence: Sequence, counts: SequenceOf[int]) -> list[range]:
    total = sum(counts)
    if sequence.strategy == "optimistic":
        first = _draw_optimistically(sequence, total)
    elif sequence.reset_value is None:
        first = _add(sequence, total) - (total - 1) * sequence.increment
    else:
        first = _draw_or_start_over(sequence, sequence.reset_value)
    numbers_given.send_robust(sender=None, kind="counter", callers=len(counts), numbers=total)
    numbers = range(first, first + total * sequence.increment, sequence.increment)
    ends = itertools.accumulate(counts)
    return [numbers[end - count : end] for count, end in zip(counts, ends, strict=True)]


_combiner: Combiner[Sequence, int, range] = Combiner(_draw_for_all)


# Requests ----------------------------------------------------------------------------------------
# Numbers are sent and read as decimal text, never as floats.


def _draw_or_start_over(sequence: Sequence, reset_value: int) -> int:
    """Draw one number from a counter that starts over at `reset_value`.

    There are two conditional updates, of which exactly one can succeed at any moment: the next
    number below the limit, or the initial number at the limit. Costs 1 request and 1 write unit; at
    the limit 2 of each, and if other callers are faster there, a read and the same again.
    """
    # The limit is compared with the stored number, which is one step behind the next one.
    limit = {":limit": typed_number(reset_value - sequence.increment)}
    before, beyond = ("<", ">=") if sequence.increment > 0 else (">", "<=")
    within_limit = f"attribute_not_exists(currentValue) OR currentValue {before} :limit"
    ends_at = operation_ends_at()
    with within(ends_at - time.monotonic()):
        while True:
            try:
                return _add(sequence, 1, within_limit, limit)
            except ConditionFailed:
                if _set(sequence, sequence.initial_value, f"currentValue {beyond} :limit", limit):
                    return sequence.initial_value
            # Another caller has reset the counter. If its value is not a number, this read raises.
            _read(sequence.name)
            if time.monotonic() > ends_at:
                raise CounterContended(sequence.name)


def _draw_optimistically(sequence: Sequence, count: int) -> int:
    """Read the counter, and set it if it did not change; return the first of `count` numbers.

    Costs 2 requests, 1 read and 1 write unit, and the same again for each collision. A write is
    refused only if another one succeeded, so some caller always makes progress.
    """
    step = sequence.increment
    reset = sequence.reset_value
    ends_at = operation_ends_at()
    with within(ends_at - time.monotonic()):
        for collisions in itertools.count():
            last = _read(sequence.name)
            first = sequence.initial_value if last is None else last + step
            if reset is not None and (reset - first) * step <= 0:
                first = sequence.initial_value
            after = _within_38_digits(sequence.name, first + (count - 1) * step)
            unchanged, values = "attribute_not_exists(currentValue)", {}
            if last is not None:
                unchanged, values = "currentValue = :last", {":last": typed_number(last)}
            if _set(sequence, after, unchanged, values):
                return first
            pause = pause_seconds(collisions)
            if time.monotonic() + pause > ends_at:
                break
            time.sleep(pause)
    raise CounterContended(sequence.name)


def _read(name: str) -> int | None:
    item = read_item(Counter.address(name)) or {}
    return _whole_number(name, item["currentValue"]) if "currentValue" in item else None


def _add(sequence: Sequence, count: int, condition: str = "", values: Item | None = None) -> int:
    """Count up by `count` numbers, if any `condition` holds; return the last of them."""
    before = sequence.initial_value - sequence.increment
    span = typed_number(count * sequence.increment)
    update = Update(add={"currentValue": span})
    if before:
        update = Update(count={"currentValue": (typed_number(before), span)})
    request = update.request(Counter.address(sequence.name), condition, values=values)
    request["ReturnValues"] = "UPDATED_NEW"
    try:
        # `write_one` is not used: most calls have no condition, and nothing can be refused.
        answer = send("UpdateItem", request)
    except Rejected as error:
        # Engines name this error differently, so the stored value shows the reason.
        if error.code == "ValidationException":
            last = _read(sequence.name)
            _within_38_digits(sequence.name, (last or 0) + count * sequence.increment)
        raise
    last = _whole_number(sequence.name, answer["Attributes"]["currentValue"])
    return _within_38_digits(sequence.name, last)


def _set(sequence: Sequence, value: int, condition: str, values: Item) -> bool:
    """Set the counter to `value` if `condition` holds; return whether it did."""
    update = Update(set={"currentValue": typed_number(value)})
    request = update.request(Counter.address(sequence.name), condition, values=values)
    return bool(write_one("UpdateItem", request))


def _whole_number(name: str, stored: Typed) -> int:
    number = Decimal(stored.get("N", "NaN"))
    if not number.is_finite() or number != number.to_integral_value():
        raise NotACounter(name, stored)
    return int(number)


def _within_38_digits(name: str, value: int) -> int:
    if abs(value) >= NUMBERS_END:
        raise OverflowError(f"The counter {name!r} would pass the 38 digits of DynamoDB's numbers.")
    return value
