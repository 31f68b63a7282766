"""One transaction of a series: its counter, and an item and a guard item for each caller.

counter   <table>#<series>          n → n+k                  if it is n
item      <series>, n+1 … n+k       put                      if absent
guard     requestId#<scope>#<id>    put, naming its item     if absent
          the writes of `also`                               under their own conditions
          what the items refer to             nothing        if it exists
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dynamo.client.sending import read_item
from dynamo.client.writes import Write
from dynamo.exceptions import DamagedItem
from dynamo.transactions import MAX_WRITES, Transaction, read_together
from dynamo.wire.types import Item, Request, Typed
from dynamo.wire.updates import Update, conditional
from dynamo.wire.values import typed_number
from sequences.combining import Caller
from sequences.exceptions import DamagedSeries, OutOfOrder, SeriesError
from sequences.models import Counter, NumberedModel

Model = type[NumberedModel]
#: A value of `ordered_by` as on the wire: `{"S": "2026-03-14"}`.
Order = Typed

#: A partition takes 1,000 write units per second, and a group at most half of them. This is also
#: far less than the 4 MB of a transaction.
MAX_UNITS = 500
#: A guard item is smaller than this, and costs as much.
GUARD_BYTES = 1024


@dataclass(frozen=True)
class Head:
    """The state of a series: its last number, and its last value of `ordered_by`, if any."""

    number: int = 0
    last: Order | None = None


@dataclass(eq=False)
class Unnumbered:
    """One caller's item, complete except for its number.

    Each caller makes `wire`, the item as on the wire, while another transaction is under way.
    `guard_key` is the partition key of its guard item. With `is_alone` it shares its transaction
    with no other item.
    """

    item: NumberedModel
    wire: Item
    guard_key: str
    digest: str
    size_bytes: int
    #: The writes of `also`, and the checks that referenced items exist.
    parts: Sequence[Write] = ()
    #: Checks among `parts` that other callers share if their items refer to the same item.
    shared: frozenset[Write] = frozenset()
    is_alone: bool = False

    @property
    def order(self) -> Order | None:
        """The item's value of `ordered_by`, if its model has one."""
        return self.wire.get(self.item.ordered_by or "")

    def contradicts(self, head: Head) -> bool:
        """Whether this item shows that `head` may be outdated, so that it must be read again.

        - The item is too early in the order. If the tables were restored in the meantime, it may
          fit.
        - A write of `also` is for an item of this series beyond `head`: another process issued
          that item. The group would put an item under the same number. DynamoDB would reject it,
          because a transaction may write each key only once.
        """
        if is_before(self.order, head.last):
            return True
        for request in (write.request for write in self.parts):
            if request["TableName"] == type(self.item).table():
                key = request.get("Key") or request["Item"]
                is_ours = key["series"] == {"S": self.item.series}
                if is_ours and Decimal(key["number"]["N"]) > head.number:
                    return True
        return False


ItemCaller = Caller[Unnumbered, Any]


def choose(callers: list[ItemCaller], head: Head) -> list[ItemCaller]:
    """Return the callers of the next transaction, in order.

    Decide the callers whose item is too early in the order.

    A transaction takes each key once. Therefore, if two callers have the same request id, or write
    the same item by `also`, the second one waits; so do callers that no longer fit. Checks of the
    same reference become one. A caller with a later order must not overtake a waiting one, because
    the waiting item would then be out of order.
    """
    chosen: list[ItemCaller] = []
    held_back: ItemCaller | None = None
    keys: set[object] = set()
    shared_keys: set[object] = set()
    actions, units = 1, 2
    for caller in sorted(callers, key=lambda caller: _rank(caller.ask.order)):
        ask = caller.ask
        if is_before(ask.order, head.last):
            early = OutOfOrder(str(_rank(ask.order)), str(_rank(head.last)))
            caller.decide(_issued_before(ask) or early)
            continue
        if held_back is not None and is_before(held_back.ask.order, ask.order):
            break
        own_keys = {ask.guard_key, *(write.key for write in ask.parts if write not in ask.shared)}
        own_shared_keys = {write.key for write in ask.shared}
        if own_keys & (keys | shared_keys) or own_shared_keys & keys:
            held_back = caller
            continue
        # An item that `also` updates may be larger. If so, DynamoDB rejects a group that is too
        # large, and its items are sent one by one.
        sizes = [ask.size_bytes, GUARD_BYTES, *(write.sent_bytes for write in ask.parts)]
        actions += len(sizes)
        units += sum(2 * math.ceil(size / 1024) for size in sizes)
        too_much = actions > MAX_WRITES or units > MAX_UNITS
        if chosen and (too_much or ask.is_alone):
            break
        chosen.append(caller)
        keys |= own_keys
        shared_keys |= own_shared_keys
        if ask.is_alone:
            break
    return chosen


def is_before(order: Order | None, other: Order | None) -> bool:
    """Whether `order` comes before `other`. If one of them is None, there is no order."""
    return order is not None and other is not None and bool(_rank(order) < _rank(other))


def _rank(order: Order | None) -> Any:
    """The value to sort by; `NumberedModel.check_order` has accepted it."""
    if order is None:
        return ""
    return Decimal(order["N"]) if "N" in order else order["S"]


class Group:
    """One transaction that issues the items of `callers` on a series, after `head`."""

    def __init__(self, model: Model, series: str, head: Head, callers: list[ItemCaller]) -> None:
        self._model = model
        self._table = model.table()
        self._series = series
        self._head = head
        self._numbered = list(enumerate(callers, head.number + 1))
        self.head_after = Head(head.number + len(callers), callers[-1].ask.order or head.last)
        self._write = Transaction(repeat_conflicts=False)

    def commit(self) -> bool:
        """Send the transaction; return whether it is committed. If so, its callers are decided.

        Raises:
            TransactionConflict: another transaction or throttling was in the way.
            Unavailable, Rejected, TableMissing: see `client.sending`.
        """
        refused = SeriesError()
        # `true_head` finds this write by the head. If it were found by `self`, it would be part of
        # a cycle of references, and the group would be in memory until the garbage collector runs.
        self._write.add(Write(self._head, "Update", self._counter_update(), refused))
        issued = []
        for number, caller in self._numbered:
            ask = caller.ask
            item = ask.wire | {"number": {"N": str(number)}}
            guard: Item = {
                "series": {"S": ask.guard_key},
                "number": {"N": "0"},
                "owner": {"S": f"{self._series}#{number}"},
                "digest": {"S": ask.digest},
            }
            self._write.add(self._put(item, caller, refused), self._put(guard, ask, refused))
            self._write.add(*ask.parts)
            issued.append(item)
        if self._write.try_commit():
            return False
        for (number, caller), stored in zip(self._numbered, issued, strict=True):
            issued_item = caller.ask.item
            issued_item.number, issued_item.stored = number, stored
            caller.decide(issued_item)
        return True

    def _put(self, item: Item, about: object, refused: Exception) -> Write:
        request = {"TableName": self._table, "Item": item}
        absent = conditional(request, "attribute_not_exists(series)")
        return Write(about, "Put", absent, refused)

    def _counter_update(self) -> Request:
        values: Item = {":before": typed_number(self._head.number)}
        changes: Item = {"currentValue": typed_number(self.head_after.number)}
        if self.head_after.last is not None:
            changes["lastDate"] = self.head_after.last
        unchanged = "currentValue = :before"
        if self._head.last is not None:
            # A counter that was restored or recreated can have the same number and another value.
            values[":lastBefore"] = self._head.last
            unchanged += " AND lastDate = :lastBefore"
        if not self._head.number:
            unchanged = f"attribute_not_exists(currentValue) OR {unchanged}"
        address = Counter.address(self._model.counter_prefix() + self._series)
        return Update(changes).request(address, unchanged, values=values)

    def answer_the_refused(self) -> None:
        """Decide the callers whose request id is stored, and those whose `also` was refused."""
        for _number, caller in self._numbered:
            ask = caller.ask
            if (refusal := self._write.refusal_of(ask)) is not None:
                if (earlier := _issued_before(ask, refusal.stored)) is not None:
                    caller.decide(earlier)
                continue
            for error in (
                refusal.error for refusal in self._write.refusals if refusal.write in ask.parts
            ):
                caller.decide(error)

    def true_head(self) -> Head | None:
        """The real head of the series, if the group was refused because `head` is outdated.

        Otherwise None. If the result equals `head`, an item is stored beyond the counter, so the
        series is damaged.
        """
        if (refusal := self._write.refusal_of(self._head)) is not None:
            return head_of(self._series, self._model, refusal.stored)
        for number, caller in self._numbered:
            if self._write.refusal_of(caller) is not None:
                # They are read at one instant, because the items in a refusal may be from different
                # times.
                keys = [self._model.counter_of(self._series), self._model(self._series, number)]
                counter, item = read_together([*keys])
                return head_of(self._series, self._model, counter) if item else None
        return None


def _issued_before(ask: Unnumbered, guard: Item | None = None) -> NumberedModel | Exception | None:
    """The result of the same request id before: the stored item, or the error for the caller.

    None if the request id was not used. `guard` is its guard item, if a refusal showed it. Costs 1
    request and 4 read units for items of up to 4 KB; without `guard`, 1 request and 2 units more.
    """
    model = type(ask.item)
    if guard is None:
        [guard] = read_together([model(ask.guard_key, 0)])
    if guard is None:
        return None
    place = model.place_of(guard)
    if place is None or not place.number:
        return DamagedSeries(ask.item.series)
    # The guard item and the item are read at one instant.
    guard, stored = read_together([model(ask.guard_key, 0), model(*place)])
    request_id = ask.wire["requestId"]
    if guard is None or stored is None or stored.get("requestId") != request_id:
        return DamagedSeries(place.series)
    if guard.get("digest") != {"S": ask.digest}:
        return model.RequestIdReused(request_id["S"], place.series, place.number)
    try:
        return model.from_raw_data(stored)
    except DamagedItem as error:
        return error


# The state of a series ---------------------------------------------------------------------------


def read_head(model: Model, series: str) -> Head:
    """The current head of the series. Costs 1 request and 1 read unit.

    Raises:
        DamagedSeries: as `head_of`.
    """
    return head_of(series, model, read_item(Counter.address(model.counter_prefix() + series)))


def head_of(series: str, model: Model, counter: Item | None) -> Head:
    """The head that the item of a counter stores; number 0 if the item is absent.

    Raises:
        DamagedSeries: it does not hold a whole number, or its last value is not usable.
    """
    stored = counter or {}
    number = stored.get("currentValue", {"N": "0"}).get("N", "")
    last = stored.get("lastDate")
    try:
        if last is not None:
            model.check_order(last)
        if number.isdigit():
            return Head(int(number), last)
    except ValueError as error:
        raise DamagedSeries(series) from error
    raise DamagedSeries(series)
