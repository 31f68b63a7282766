"""Counters that many callers share: each number is given out once, whoever asks at the same time.

    next_value("tickets")                   1, then 2, then 3 …
    next_values(100, "tickets")             range(4, 104)
    next_value("seconds", 0, reset_value=60)
    for number in Sequence("tickets", increment=10): …

Two strategies behind one call:

*atomic*, the usual one: one UpdateItem that adds and answers with the sum; no read. Costs 1
request and 1 write unit, for one number or for thousands. A request whose reply is lost may have
counted, so it is not repeated: its numbers are burned, and the caller gets Unavailable.

*optimistic*: read, then write under the condition that nobody wrote meanwhile, with jitter between
tries. Costs 2 requests, 1 read and 1 write unit, and the same again for each collision. A write
whose reply is lost is repeated; where it had counted, the repetition is refused, its numbers are
burned, and the next try draws others: the caller notices nothing.

Under both, callers of this process who wait for one counter, counted in the same way, share a
request: 16 waiting threads cost as much as one. Where the request of one of them fails, the others
send theirs; what the failed one may have counted is burned.

So a plain counter never gives a number twice (unless it is deleted, or starts over), but may skip
some; and callers who share a counter may not see their numbers in the order in which they asked.
For numbers that must not skip, see `sequences.series`. Counters belong in one region: a global
table that is written in two gives numbers twice.

Names are any text of up to 2,048 bytes in UTF-8, except those of the counters of series: the table
of a numbered model and `#`, such as `invoices#…`. Numbers are exact up to 38 digits, and refused
beyond.

Sources: "DynamoDBとPythonでユニークな連番を採番する" (atomic counters from Python), "How to
autoincrement in DynamoDB if you really need to" (both strategies), django-sequences 3.1 (the API).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from operator import index
from typing import get_args

from dynamo.client.sending import send
from dynamo.models import PARTITION_KEY_MAX_BYTES
from sequences.combining import Caller, Combiner
from sequences.draws import (
    NUMBERS_END,
    Counting,
    Strategy,
    draw_atomically,
    draw_optimistically,
    draw_or_start_over,
    key_of,
    read,
)
from sequences.exceptions import ReservedName
from sequences.models import Counter, is_counter_of_series
from sequences.signals import numbers_given

#: Orders that move a counter less than this share a request. A larger one might pass the 38 digits
#: of the numbers, and then it alone is to be refused.
SHARED_SPAN = 10**18


def next_value(
    name: str,
    initial_value: int = 1,
    *,
    increment: int = 1,
    reset_value: int | None = None,
    strategy: Strategy = "atomic",
) -> int:
    """The next number of a counter, which begins with `initial_value` where it is not there.

    With a `reset_value` it starts over at `initial_value` instead of reaching that value. All
    callers of a counter should then name the same two.

    Costs 1 request and 1 write unit (atomic), or 2 requests, 1 read and 1 write unit (optimistic),
    for all callers who wait together. With a `reset_value` atomic callers do not share, and
    starting over costs 2 requests and 2 write units.

    Raises:
        ReservedName: the name is reserved for a series.
        NotACounter: what is stored is no whole number. Where it is a fraction, atomic has added to
            it all the same.
        CounterContended: others were faster until the deadline (optimistic, or at `reset_value`).
        Unavailable: no answer in time; with `maybe_written` the number may be burned.
        OverflowError: the counter would pass 38 digits; it gives no number any more.
        ValueError: a name that is no key, no increment, a `reset_value` on the wrong side of
            `initial_value`, a number of more than 38 digits.
        TypeError: a name that is no text, a number that is no whole one.
    """
    counting = _counting(name, initial_value, increment, reset_value, strategy)
    if reset_value is not None and strategy == "atomic":
        value = draw_or_start_over(counting, reset_value)
        numbers_given.send_robust(sender=None, kind="counter", callers=1, numbers=1)
        return value
    return _draw(counting, 1)[0]


def next_values(
    count: int,
    name: str,
    initial_value: int = 1,
    *,
    increment: int = 1,
    strategy: Strategy = "atomic",
) -> range:
    """The next `count` numbers of a counter, without another's between them.

    Costs and raises what `next_value` does, and ValueError where `count` is below 1.
    """
    counting = _counting(name, initial_value, increment, None, strategy)
    count = index(count)
    if count < 1:
        raise ValueError(f"count must be 1 or more, not {count}.")
    if count * abs(increment) >= NUMBERS_END:
        raise ValueError(f"{count} numbers in steps of {increment} pass 38 digits.")
    return _draw(counting, count)


def last_value(name: str) -> int | None:
    """The number that a counter gave out last; None where it never did.

    By the time of the answer others may have drawn more. Costs 1 request and 1 read unit.

    Raises:
        ReservedName: the name is reserved for a series.
        NotACounter: what is stored is no whole number.
        ValueError: a name that is no key.
    """
    return read(checked_name(name))


def delete(name: str) -> bool:
    """Forget a counter, so that it begins anew and gives its numbers again; whether it was there.

    The request is repeated where its reply is lost, and then may answer that nothing was there.
    Costs 1 request and 1 write unit.

    Raises:
        ReservedName: the name is reserved for a series.
        ValueError: a name that is no key.
    """
    request = {
        "TableName": Counter.table(),
        "Key": key_of(checked_name(name)),
        "ReturnValues": "ALL_OLD",
    }
    return bool(send("DeleteItem", request).get("Attributes"))


@dataclass(frozen=True)
class Sequence:
    """A counter with the way it is counted, as an iterator that never ends.

    Each step draws a number, with the costs and errors of `next_value`.

    Raises:
        ReservedName: the name is reserved for a series.
        ValueError: as `next_value` says.
    """

    name: str
    initial_value: int = 1
    increment: int = 1
    reset_value: int | None = None
    strategy: Strategy = "atomic"

    def __post_init__(self) -> None:
        _counting(self.name, self.initial_value, self.increment, self.reset_value, self.strategy)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return self.next_value()

    def next_value(self) -> int:
        """As the function `next_value`."""
        return next_value(
            self.name,
            self.initial_value,
            increment=self.increment,
            reset_value=self.reset_value,
            strategy=self.strategy,
        )

    def next_values(self, count: int) -> range:
        """As the function `next_values`; a sequence that starts over has none."""
        if self.reset_value is not None:
            raise ValueError("A sequence with a reset_value gives its numbers one by one.")
        return next_values(
            count,
            self.name,
            self.initial_value,
            increment=self.increment,
            strategy=self.strategy,
        )

    def last_value(self) -> int | None:
        """As the function `last_value`."""
        return last_value(self.name)

    def delete(self) -> bool:
        """As the function `delete`."""
        return delete(self.name)


def checked_name(name: str) -> str:
    """`name`, where a counter can have it; costs no request.

    Raises:
        ReservedName: the name is reserved for a series.
        ValueError: it is empty, too long, or no text that UTF-8 can write.
        TypeError: it is no text at all.
    """
    if not isinstance(name, str):
        raise TypeError(f"A counter's name must be text, not {name!r}.")
    if is_counter_of_series(name):
        raise ReservedName(name)
    try:
        size_bytes = len(name.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"A counter's name must be text, not {name!r}.") from error
    if not 1 <= size_bytes <= PARTITION_KEY_MAX_BYTES:
        limit = f"1 to {PARTITION_KEY_MAX_BYTES:,} bytes"
        raise ValueError(f"A counter's name has {limit}; this one has {size_bytes:,}.")
    return name


def _counting(
    name: str, initial_value: int, increment: int, reset_value: int | None, strategy: Strategy
) -> Counting:
    """How to count, where that makes sense.

    Raises:
        ReservedName: the name is reserved for a series.
        ValueError: something about it contradicts itself.
        TypeError: a name that is no text, a number that is no whole one.
    """
    checked_name(name)
    if strategy not in get_args(Strategy):
        raise ValueError(f"strategy must be atomic or optimistic, not {strategy!r}.")
    if increment == 0:
        raise ValueError("increment must not be 0.")
    if reset_value is not None and (reset_value - initial_value) * increment <= 0:
        raise ValueError(
            f"reset_value must lie beyond initial_value: {reset_value} is not reached from "
            f"{initial_value} in steps of {increment}."
        )
    counting = Counting(
        name,
        index(initial_value),
        index(increment),
        None if reset_value is None else index(reset_value),
        strategy,
    )
    if not all(
        -NUMBERS_END < number < NUMBERS_END
        for number in (initial_value, increment, counting.before, reset_value or 0)
    ):
        raise ValueError("A counter's numbers have 38 digits at most.")
    return counting


def _draw(counting: Counting, count: int) -> range:
    """Draw `count` numbers, together with others who wait."""
    if count * abs(counting.increment) >= SHARED_SPAN:
        return _draw_together(counting, [count])[0]
    return _combiner(counting, count)


def _draw_together(counting: Counting, counts: SequenceOf[int]) -> list[range]:
    draw = draw_atomically if counting.strategy == "atomic" else draw_optimistically
    drawn = draw(counting, counts)
    numbers_given.send_robust(sender=None, kind="counter", callers=len(counts), numbers=sum(counts))
    return drawn


def _serve(counting: Counting, callers: list[Caller[int, range]]) -> None:
    callers = [caller for caller in callers if caller.is_here()]
    drawn = _draw_together(counting, [caller.ask for caller in callers])
    for caller, numbers in zip(callers, drawn, strict=True):
        caller.serve(numbers)


_combiner: Combiner[Counting, int, range] = Combiner(_serve)
