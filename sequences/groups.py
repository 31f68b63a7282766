"""One transaction of a series: its counter, and an item and a guard item for each caller.

counter   <table>#<series>          n → n+k                  if it is n
item      <series>, n+1 … n+k       put                      if absent
guard     requestId#<scope>#<id>    put, naming its item     if absent
          whatever a caller adds by `also`                   under its own condition
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from dynamo.client.sending import send
from dynamo.exceptions import DamagedItem
from dynamo.models import Item
from dynamo.transactions import Transaction, Write, read_together
from sequences.combining import Caller
from sequences.exceptions import DamagedSeries, OutOfOrder, RequestIdReused, SeriesError
from sequences.models import NumberedItem

Numbered = TypeVar("Numbered", bound=NumberedItem)
Model = type[NumberedItem]

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
MAX_ACTIONS = 100
#: Below the 4 MB of a transaction, whose sizes DynamoDB counts a little differently.
MAX_BYTES = 3_000_000
#: A partition takes 1,000 write units a second: a group must not use up more than half of one.
MAX_UNITS = 500


@dataclass(frozen=True)
class Head:
    """How far a series has come: its last number, and its last value of `ordered_by`, if any."""

    number: int = 0
    last: tuple[str, str] | None = None


@dataclass(eq=False)
class Ask(Generic[Numbered]):
    """One caller's item, complete but for its number.

    `wire` is the item as on the wire, made by each caller for itself while another transaction is
    under way. `guard_key` is the partition key of its guard item. With `is_alone` it shares its
    transaction with no other.
    """

    item: Numbered
    wire: Item
    guard_key: str
    digest: str
    size_bytes: int
    also: Sequence[Write] = ()
    is_alone: bool = False

    @property
    def request_id(self) -> str:
        """The request id, which is always set here."""
        return str(self.item.request_id)

    @property
    def order(self) -> tuple[str, str] | None:
        """The attribute that orders the series, as on the wire: its type and its value."""
        name = self.item.ordered_by
        return None if name is None else next(iter(self.wire[name].items()))


def is_before(order: tuple[str, str] | None, other: tuple[str, str] | None) -> bool:
    """Whether `order` comes before `other`; without either there is no order."""
    if order is None or other is None:
        return False
    return bool(rank(order) < rank(other))


def _out_of_order(order: tuple[str, str] | None, last: tuple[str, str] | None) -> OutOfOrder:
    return OutOfOrder(order[1] if order else "", last[1] if last else "")


def rank(order: tuple[str, str] | None) -> Any:
    """What to sort by, of a value that `NumberedItem.check_order` takes."""
    if order is None:
        return ""
    kind, value = order
    return Decimal(value) if kind == "N" else value


def write_units(size_bytes: int) -> int:
    """What a write of so many bytes costs in a transaction."""
    return 2 * math.ceil(size_bytes / 1024)


Asking = Caller[Ask[Any], Any]


class Group:
    """One transaction that issues the items of `callers` on a series, after `head`."""

    def __init__(self, model: Model, series: str, head: Head, callers: list[Asking]) -> None:
        self._model = model
        self._series = series
        self._head = head
        self._callers = callers
        self.head_after = Head(head.number + len(callers), callers[-1].ask.order or head.last)
        self._write = Transaction(afresh=True)

    def commit(self) -> bool:
        """Send the transaction; return whether it is committed. Its callers are served then.

        Raises:
            Hindered: another transaction or throttling was in the way; nothing is committed.
            Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
        """
        refused = SeriesError()
        self._write.add(Write(self, {"Update": self._counter_update()}, refused))
        for number, caller in enumerate(self._callers, self._head.number + 1):
            ask = caller.ask
            guard = {
                "series": {"S": ask.guard_key},
                "number": {"N": "0"},
                "owner": {"S": f"{self._series}#{number}"},
                "digest": {"S": ask.digest},
            }
            item = ask.wire | {"number": {"N": str(number)}}
            self._write.add(self._put(item, caller, refused), self._put(guard, ask, refused))
            self._write.add(*ask.also)
        if self._write.try_commit():
            return False
        for number, caller in enumerate(self._callers, self._head.number + 1):
            item = caller.ask.item
            item.number = number
            item.stored = caller.ask.wire | {"number": {"N": str(number)}}
            caller.serve(item)
        return True

    def _put(self, item: Item, about: object, refused: Exception) -> Write:
        action = {
            "TableName": self._model.table(),
            "Item": item,
            "ConditionExpression": "attribute_not_exists(series)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return Write(about, {"Put": action}, refused)

    def _counter_update(self) -> dict[str, Any]:
        values = {
            ":before": {"N": str(self._head.number)},
            ":number": {"N": str(self.head_after.number)},
        }
        update = "SET currentValue = :number"
        if self.head_after.last is not None:
            kind, value = self.head_after.last
            values[":last"] = {kind: value}
            update += ", lastDate = :last"
        unchanged = "currentValue = :before"
        if self._head.last is not None:
            # A counter that was restored or made again can have the same number and another value.
            kind, value = self._head.last
            values[":lastBefore"] = {kind: value}
            unchanged += " AND lastDate = :lastBefore"
        if not self._head.number:
            unchanged = f"attribute_not_exists(currentValue) OR {unchanged}"
        return {
            **key_of_counter(self._model, self._series),
            "UpdateExpression": update,
            "ConditionExpression": unchanged,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def answer_the_refused(self) -> None:
        """Serve the callers whose request id is stored, then those whose `also` was refused."""
        for caller in self._callers:
            ask = caller.ask
            refusal = self._write.refusal_of(ask)
            if refusal is not None:
                earlier = issued_before(ask, refusal.stored)
                if earlier is not None:
                    caller.serve(earlier)
                continue
            for error in (each.error for each in self._write.refusals if each.write in ask.also):
                caller.serve(error)

    def true_head(self) -> Head | None:
        """How far the series really is, if that is why the group was refused.

        It is no further than `head` if an item is stored beyond the counter.
        """
        refusal = self._write.refusal_of(self)
        if refusal is not None:
            return head_of(self._series, self._model, refusal.stored)
        for number, caller in enumerate(self._callers, self._head.number + 1):
            if self._write.refusal_of(caller) is not None:
                return _head_beside(self._model, self._series, number)
        return None


def choose(callers: list[Asking], head: Head) -> list[Asking]:
    """The callers of the next transaction, in their order. Those that come too early are served.

    Of two with one request id the second waits, as do those that no longer fit, or that add a
    write of an item which another one writes: a transaction takes each item once. Nobody whose
    order is later overtakes one that waits, as that would then come too late.
    """
    chosen: list[Asking] = []
    held_back: Asking | None = None
    keys: set[Any] = set()
    actions, size_bytes, units = 1, 0, 2
    for caller in sorted(callers, key=lambda each: rank(each.ask.order)):
        ask = caller.ask
        if caller.is_served:
            continue
        if is_before(ask.order, head.last):
            caller.serve(issued_before(ask) or _out_of_order(ask.order, head.last))
            continue
        if held_back is not None and is_before(held_back.ask.order, ask.order):
            break
        own_keys = [ask.guard_key, *(write.key for write in ask.also)]
        if not keys.isdisjoint(own_keys):
            held_back = caller
            continue
        actions += 2 + len(ask.also)
        size_bytes += ask.size_bytes + 1024
        units += write_units(ask.size_bytes) + 2 * (1 + len(ask.also))
        too_much = actions > MAX_ACTIONS or size_bytes > MAX_BYTES or units > MAX_UNITS
        if chosen and (too_much or ask.is_alone):
            break
        chosen.append(caller)
        keys.update(own_keys)
        if ask.is_alone:
            break
    return chosen


def issued_before(ask: Ask[Numbered], guard: Item | None = None) -> Numbered | Exception | None:
    """What the same request id issued: the stored item, or why it cannot be the answer.

    None if it issued nothing. `guard` is its guard item, if a refusal showed it. Costs 1 request
    and 4 read units for items of up to 4 KB; without `guard` 1 request and 2 units more.
    """
    model = type(ask.item)
    if guard is None:
        [guard] = read_together([model.at(ask.guard_key, 0)])
    if guard is None:
        return None
    place = model.place_of(guard)
    if place is None or not place.number:
        return DamagedSeries(ask.item.series)
    # Guard and item at one instant.
    guard, stored = read_together([model.at(ask.guard_key, 0), model.at(*place)])
    if guard is None or stored is None or stored.get("requestId") != {"S": ask.request_id}:
        return DamagedSeries(place.series)
    if guard.get("digest") != {"S": ask.digest}:
        return RequestIdReused(ask.request_id, place.series, place.number)
    try:
        return model.from_raw_data(stored)
    except DamagedItem as error:
        return error


# How far a series has come -----------------------------------------------------------------------


def key_of_counter(model: Model, series: str) -> dict[str, Any]:
    """Table and key of the counter of a series, as in a request."""
    counter = model.counter_of(series)
    return {"TableName": counter.table(), "Key": {"counterName": {"S": counter.name}}}


def read_head(model: Model, series: str) -> Head:
    """How far the series is now. Costs 1 request, 1 read unit.

    Raises:
        DamagedSeries: its counter does not hold a number.
    """
    answer = send("GetItem", key_of_counter(model, series))
    return head_of(series, model, answer.get("Item"))


def _head_beside(model: Model, series: str, number: int) -> Head | None:
    """How far the series is while the item `number` is stored; None if it is not.

    Both at one instant: the reasons of a refused transaction may come from different ones.
    """
    counter, item = read_together([model.counter_of(series), model.at(series, number)])
    return head_of(series, model, counter) if item else None


def head_of(series: str, model: Model, stored: Item | None) -> Head:
    """How far a series is by the item of its counter.

    Raises:
        DamagedSeries: the item does not hold a number, or its last value is not usable.
    """
    try:
        return counted(stored, model)
    except ValueError as error:
        raise DamagedSeries(series) from error


def counted(counter: Item | None, model: Model) -> Head:
    """The head that a counter's item tells; number 0 if there is no item.

    Raises:
        ValueError: it does not hold a whole number, or its last value is not usable.
    """
    stored = counter or {}
    text = stored.get("currentValue", {"N": "0"}).get("N", "")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"The counter of a series does not hold a number: {stored!r}.")
    if "lastDate" not in stored:
        return Head(int(text))
    ((kind, value),) = stored["lastDate"].items()
    last = (kind, str(value))
    model.check_order(last)
    return Head(int(text), last)
