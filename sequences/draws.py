"""How numbers are drawn from a counter's item: the requests of both strategies.

Numbers travel as decimal text and never pass through floats: they are exact up to 38 digits, as
DynamoDB's are, and no further number is given out beyond.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from dynamo.client.deadline import operation_ends_at, within
from dynamo.client.sending import send
from dynamo.exceptions import ConditionFailed, Rejected
from dynamo.models import Item
from sequences.exceptions import CounterContended, NotACounter
from sequences.models import Counter

Strategy = Literal["atomic", "optimistic"]

#: The first whole number that needs more than DynamoDB's 38 digits.
NUMBERS_END = 10**38

#: The pause after a first collision: about what reading and writing takes.
FIRST_PAUSE_SECONDS = 0.004
LONGEST_PAUSE_SECONDS = 0.25


@dataclass(frozen=True)
class Counting:
    """A counter, and how it is to be counted: from where, in which steps, over which limit."""

    name: str
    initial_value: int
    increment: int
    reset_value: int | None
    strategy: Strategy

    @property
    def key(self) -> Item:
        """The key of the counter's item."""
        return key_of(self.name)

    @property
    def before(self) -> int:
        """What a counter that is not there counts from."""
        return self.initial_value - self.increment

    def ending_with(self, last: int, count: int) -> range:
        """The `count` numbers of which `last` is the last."""
        return range(last - (count - 1) * self.increment, last + self._sign, self.increment)

    def following(self, last: int | None, count: int) -> range:
        """The `count` numbers after `last`, None where the counter is not there."""
        first = self.initial_value if last is None else last + self.increment
        if self.reset_value is not None and (self.reset_value - first) * self._sign <= 0:
            first = self.initial_value
        return self.ending_with(first + (count - 1) * self.increment, count)

    @property
    def _sign(self) -> int:
        return 1 if self.increment > 0 else -1


def key_of(name: str) -> Item:
    """The key of a counter's item."""
    return {"counterName": {"S": name}}


def read(name: str) -> int | None:
    """The number that a counter gave out last, None where it is not there. 1 request, 1 read unit.

    Raises:
        NotACounter: it holds no whole number.
    """
    item = send("GetItem", {"TableName": Counter.table(), "Key": key_of(name)}).get("Item", {})
    return _whole_number(name, item["currentValue"]) if "currentValue" in item else None


def draw_atomically(counting: Counting, counts: Sequence[int]) -> list[range]:
    """Draw for several orders, all with one UpdateItem. 1 request, 1 write unit.

    Raises:
        NotACounter: the counter holds no whole number.
        OverflowError: it would pass 38 digits.
    """
    last = _add(counting, sum(counts))
    return _split(counting.ending_with(last, sum(counts)), counts)


def draw_or_start_over(counting: Counting, reset_value: int) -> int:
    """Draw one number from a counter that starts over at `reset_value`.

    Two conditional updates, of which exactly one can happen at any moment: the next number while
    that is within the limit, else the initial one. Costs 1 request and 1 write unit, at the limit
    2 of each; where others are faster at the limit, a read and the same again.

    Raises:
        NotACounter: the counter holds no whole number.
        OverflowError: it would pass 38 digits.
        CounterContended: others were faster each time until the deadline.
    """
    # Compared with what is stored, which is one step behind the number that it leads to.
    limit = {":limit": _number(reset_value - counting.increment)}
    before, beyond = ("<", ">=") if counting.increment > 0 else (">", "<=")
    within_limit = f"attribute_not_exists(currentValue) OR currentValue {before} :limit"
    ends_at = operation_ends_at()
    with within(ends_at - time.monotonic()):
        while True:
            try:
                return _add(counting, 1, condition=within_limit, values=limit)
            except ConditionFailed:
                if _set(counting, counting.initial_value, f"currentValue {beyond} :limit", limit):
                    return counting.initial_value
            # Another has started over since; or it is no number, which this says.
            read(counting.name)
            if time.monotonic() > ends_at:
                raise CounterContended(counting.name)


def draw_optimistically(counting: Counting, counts: Sequence[int]) -> list[range]:
    """Draw for several orders: read, then write if nobody wrote since.

    Costs 2 requests, 1 read and 1 write unit, and the same again for each collision.

    That a write is refused means that another's was not: somebody always gets on. So that it is
    everybody's turn in time, who was refused pauses, up to a ceiling that first doubles with each
    collision, as newcomers must spread, and shrinks with the fourth power of the time that is left
    until the deadline: who has waited long hardly pauses any more and tries more often than those
    who came later. It is a matter of chance all the same, and ends at the deadline.

    Raises:
        NotACounter: the counter holds no whole number.
        OverflowError: it would pass 38 digits.
        CounterContended: others were faster each time until the deadline.
    """
    began, ends_at = time.monotonic(), operation_ends_at()
    with within(ends_at - began):
        for collisions in itertools.count():
            last = read(counting.name)
            ranges: list[range] = []
            for count in counts:
                ranges.append(counting.following(ranges[-1][-1] if ranges else last, count))
            unchanged, values = "attribute_not_exists(currentValue)", {}
            if last is not None:
                unchanged, values = "currentValue = :last", {":last": _number(last)}
            after = _within_38_digits(counting.name, ranges[-1][-1])
            if _set(counting, after, unchanged, values):
                return ranges
            pause = _pause_seconds(collisions, began, ends_at)
            if time.monotonic() + pause > ends_at:
                break
            time.sleep(pause)
    raise CounterContended(counting.name)


def _pause_seconds(collisions: int, began: float, ends_at: float) -> float:
    left = max(0.0, (ends_at - time.monotonic()) / max(ends_at - began, 0.001))
    ceiling = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(collisions, 10))
    return random.uniform(0, ceiling * left**4)  # noqa: S311 - spreads load, guards no secret


def _add(
    counting: Counting,
    count: int,
    *,
    condition: str | None = None,
    values: dict[str, Any] | None = None,
) -> int:
    """Count up by so many numbers, and return the last of them."""
    request: dict[str, Any] = {
        "TableName": Counter.table(),
        "Key": counting.key,
        "UpdateExpression": "ADD currentValue :span",
        "ExpressionAttributeValues": {":span": _number(count * counting.increment)}
        | (values or {}),
        "ReturnValues": "UPDATED_NEW",
    }
    if counting.before:
        request["UpdateExpression"] = (
            "SET currentValue = if_not_exists(currentValue, :before) + :span"
        )
        request["ExpressionAttributeValues"][":before"] = _number(counting.before)
    if condition:
        request["ConditionExpression"] = condition
    try:
        answer = send("UpdateItem", request)
    except Rejected as error:
        # What the engines call it differs; what is stored says why it could not be added to.
        if error.code == "ValidationException":
            last = read(counting.name)
            _within_38_digits(counting.name, (last or 0) + count * counting.increment)
        raise
    last = _whole_number(counting.name, answer["Attributes"]["currentValue"])
    return _within_38_digits(counting.name, last)


def _set(counting: Counting, value: int, condition: str, values: dict[str, Any]) -> bool:
    """Whether the counter was set to `value`, under a condition."""
    request = {
        "TableName": Counter.table(),
        "Key": counting.key,
        "UpdateExpression": "SET currentValue = :value",
        "ConditionExpression": condition,
        "ExpressionAttributeValues": {":value": _number(value)} | values,
    }
    try:
        send("UpdateItem", request)
    except ConditionFailed:
        return False
    return True


def _split(numbers: range, counts: Sequence[int]) -> list[range]:
    ends = list(itertools.accumulate(counts))
    return [numbers[end - count : end] for count, end in zip(counts, ends, strict=True)]


def _number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def _whole_number(name: str, stored: dict[str, Any]) -> int:
    if "N" not in stored:
        raise NotACounter(name, stored)
    number = Decimal(stored["N"])
    if number != number.to_integral_value():
        raise NotACounter(name, stored)
    return int(number)


def _within_38_digits(name: str, value: int) -> int:
    if abs(value) >= NUMBERS_END:
        raise OverflowError(f"The counter {name!r} would pass the 38 digits of DynamoDB's numbers.")
    return value
