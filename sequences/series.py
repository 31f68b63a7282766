"""Series: numbers 1, 2, 3 … without a gap, for items of any model.

    class Ticket(NumberedItem):
        class Meta:
            table_name = "tickets"

        subject = TextAttribute()

    ticket = issue(Ticket(subject="Broken door"), series="tickets#2026", request_id=form_id)
    ticket.number  # assigned, stored and final

From `issue` to the transaction:

1. `issue` (here) completes the item and hands it to the combiner.
2. `combining`: items that wait for the same series share a transaction, which costs
   2 + 4k write units for k items of up to 1 KB.
3. `_send_group` (here) lets `groups` choose the items that fit and send the transaction:
   counter, items and guard items, all or nothing. Therefore, a number without its item cannot
   exist, and a crash leaves nothing to repair.

The process remembers the counter. If another process moved it, the transaction is refused, and the
refusal shows the counter's value. A transaction that conflicted with another one is not repeated
unchanged: after a pause (`pace`), the counter is read, and items that arrived in the meantime join.
"""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, TypeVar

from dynamo.client.writes import Refusal, Write
from dynamo.exceptions import Rejected, TransactionConflict, Unavailable
from dynamo.runtime.deadline import operation_ends_at
from dynamo.runtime.processes import on_new_process
from dynamo.runtime.threads import asynchronous
from dynamo.signals import tables_emptied
from dynamo.transactions import Transaction, joined, refuse_inside_of_others
from dynamo.wire.updates import Update
from dynamo.wire.values import ITEM_MAX_BYTES, fits_key, item_bytes, typed_number
from sequences.combining import Combiner
from sequences.exceptions import DamagedSeries, ItemTooLarge, SeriesStarted
from sequences.groups import Group, Head, ItemCaller, Unnumbered, choose, read_head
from sequences.models import REQUEST_PREFIX, NumberedModel
from sequences.pace import Pace
from sequences.signals import numbers_given

Numbered = TypeVar("Numbered", bound=NumberedModel)
Key = tuple[type[NumberedModel], str]

#: The most series that a process remembers. A forgotten series costs one more read.
REMEMBERED_SERIES = 10_000
#: The highest first number of a series, so that its numbers are exact in every program.
_LAST_START = 10**15 - 1
#: The most bytes that a number in an item needs in addition to the 0 that it replaces.
NUMBER_BYTES = 21


class NumberedItem(NumberedModel):
    """Base of models whose items are numbered 1, 2, 3 … within a series, without a gap.

    Subclass it and name the table in `Meta.table_name`:

        class Ticket(NumberedItem):
            class Meta:
                table_name = "tickets"

            subject = TextAttribute()

    Items are created by `issue` and by forms. They are never deleted, because this would leave a
    gap. An item's own attributes change by `change`; its series, number and request id never
    change.

    The counter of a series is named `<table>#<series>`; after the model is defined, plain counters
    cannot have such names. If your project already has plain counters whose names begin with
    `<table>#`, give the model another table name. Otherwise, a series would continue from their
    values, and `checkseries` would report the earlier numbers as gaps.
    """

    def insert_for(
        self, request_id: str, asked: Mapping[str, object], write: Transaction | None = None
    ) -> Self:
        """Issue this object in its `series`, for a form. Has the costs and errors of `issue`."""
        if write is not None:
            raise TypeError(
                "Numbers are issued in a transaction of their own, which the other writes can "
                "join: sequences.issue(…, also=write)."
            )
        if self.series is None:
            raise TypeError(
                f"Which series numbers this {self._noun()}? Set form.instance.series before the "
                "form is saved."
            )
        self._given = frozenset(asked)
        self.deserialize(issue(self, series=self.series, request_id=request_id).stored)
        return self


def issue(
    item: Numbered,
    *,
    series: str,
    request_id: str | uuid.UUID | None = None,
    also: Iterable[Write] = (),
) -> Numbered:
    """Store `item` under the next number of `series` and return it.

    Sets `item.series`, `item.number` and `item.request_id`. The numbers of a series are 1, 2, 3 …,
    or begin where `start_series` said, at every instant; no error, crash or race skips one or
    issues it twice.

    `request_id` makes the call repeatable: a later call with the same id and the same `contents`
    returns the stored item as it is now, and issues nothing. Use an id that the caller keeps, such
    as one in a form. Without one, a random id is used. **An id is known within its series only**:
    with another `series` it issues another item. If a repeated call may name another series, for
    example at the end of a year, override `NumberedItem.request_scope`.

    `also` are further writes that are committed with the item or not at all: a `Transaction` that
    collected them, which this call commits, or a list of `dynamo.transactions.Write`. If the
    request id issued an item before, they are not written, now or later. If one of them is refused,
    only this item is refused, although it may share a transaction with others. They may be for
    earlier items of the series, but not for `item` itself.

    Costs 1 request and 6 write units for an item of up to 1 KB, if no other process issues on the
    series. The first call of a process on a series costs 1 read more, and so does a write of `also`
    for an item of the series that another process issued since; items that share a transaction cost
    less. Each write of `also` adds 2 units per KB, and each item that `item` refers to 2 units.

    Raises:
        RequestIdReused: the request id issued an item with other contents.
        OutOfOrder: the series already has a later value of `ordered_by`.
        ItemTooLarge: the item does not fit into DynamoDB.
        DamagedSeries: the counter and the items contradict each other; see `checkseries`.
        the `otherwise` of a refused write of `also`.
        DoesNotExist: an item that `item` refers to does not exist.
        Unavailable: no answer in time. The item may be stored: call again with the same request id.
        Rejected, TableMissing: see `client.sending`.
        ValueError: `series` or `request_id` cannot be part of a key, an attribute is missing or not
            usable, or `also` is too large. Nothing was written.
        TypeError: it is called in the block of a transaction without `also=write`, or `also` was
            committed before.
    """
    refuse_inside_of_others(also, "Pass also=write, which commits that transaction.")
    if isinstance(also, Transaction):
        also.check_open()
    request_id = str(uuid.uuid4()) if request_id is None else str(request_id)
    guard_key = _checked_guard_key(type(item), series, request_id)
    if item.stored and item.request_id != request_id:
        raise TypeError(f"It was issued already, as number {item.number}. Issue another object.")
    item.series, item.number, item.request_id = series, 0, request_id
    wire = item.to_wire() | {
        "series": {"S": series},
        "number": {"N": "0"},
        "requestId": {"S": request_id},
    }
    if item.ordered_by is not None:
        # This is checked here, because in a group it would fail for all items.
        if item.ordered_by not in wire:
            raise ValueError(f"The item needs a value of {item.ordered_by}: it orders the series.")
        item.check_order(wire[item.ordered_by])
    parts: Iterable[Write] = also
    if references := item.reference_checks({}, wire):
        # `also` may write or require an item to which this item refers.
        parts = Transaction()
        parts.add(*also, *references)
    size_bytes = item_bytes(wire) + NUMBER_BYTES
    limit = ITEM_MAX_BYTES - item.reserved_bytes
    if size_bytes > limit:
        raise ItemTooLarge(size_bytes, limit)
    ask = Unnumbered(
        item, wire, guard_key, item.digest(), size_bytes, tuple(parts), frozenset(references)
    )
    issued: Numbered = _combiner((type(item), series), ask)
    if isinstance(also, Transaction):
        (also.tell_committed if issued is item else also.discard)()
    return issued


def start_series(
    model: type[NumberedModel], series: str, *, at: int, write: Transaction | None = None
) -> None:
    """Let the first item of `series` get the number `at`. Call it before there is an item.

    This is for a series that continues numbers of another system. The counter stores this number,
    and checks expect the numbers from it on. A repeated call with the same number changes nothing.
    Costs 1 request and 1 write unit.

    Raises:
        SeriesStarted: the series has items, or begins at another number.
        ValueError: `series` cannot be part of a key, or `at` is not a number of 1 to 15 digits.
        TypeError: `model` is not a `NumberedItem`, `series` not a text, or `at` not an integer.
    """
    _checked_guard_key(model, series, "start")
    kind: type = type(at)
    if kind is not int:
        raise TypeError(f"A series begins at an integer, not at {at!r}.")
    if not 0 < at <= _LAST_START:
        raise ValueError(f"A series begins at a number from 1 to {_LAST_START}, not at {at}.")
    counter = model.counter_of(series)
    first = typed_number(at)
    start = Update({"currentValue": typed_number(at - 1), "firstValue": first})
    request = start.request(counter._address(), "attribute_not_exists(counterName)")

    def otherwise(refusal: Refusal) -> Exception | None:
        is_same = (refusal.stored or {}).get("firstValue") == first
        return None if is_same else SeriesStarted(series)

    with joined(write) as write:
        write.add(Write(counter, "Update", request, otherwise))


#: The asyncio tasks that wait for the same series share a transaction.
aissue = asynchronous(issue)


def _checked_guard_key(model: type[NumberedModel], series: str, request_id: str) -> str:
    if not issubclass(model, NumberedModel):
        raise TypeError(f"Only a NumberedItem is numbered, not a {model.__name__}.")
    if not isinstance(series, str):
        raise TypeError(f"A series is a text, such as {str(series)!r}, not {series!r}.")
    if not series.strip() or not request_id.strip():
        raise ValueError("The series and the request id must not be empty.")
    if series.startswith(REQUEST_PREFIX):
        raise ValueError(f"A series must not begin with {REQUEST_PREFIX}: {series!r}.")
    if model.scopes_have_hash and "#" in request_id:
        raise ValueError(f"The request id must not contain #: {request_id!r}.")
    guard_key = model.guard_key(series, request_id)
    for key in (guard_key, model.counter_prefix() + series):
        if not fits_key(key):
            raise ValueError(f"This is not a key of at most 2,048 bytes in UTF-8: {key!r}.")
    return guard_key


@dataclass(eq=False)
class _Known:
    """The state of a series in this process: its head, and the time of the next group.

    `head` is None until it is read. It may be outdated, which the transaction detects.
    """

    head: Head | None = None
    pace: Pace = field(default_factory=Pace)


@lru_cache(REMEMBERED_SERIES)
def _known(_key: Key) -> _Known:
    return _Known()


on_new_process(_known.cache_clear)
tables_emptied.connect(lambda **_signal: _known.cache_clear(), weak=False)


def _prepare(key: Key) -> None:
    """If other processes issue on the series as well, wait for our turn and read the counter.

    A read costs less than a refused group.
    """
    known = _known(key)
    begins_at = min(known.pace.begins_at, operation_ends_at())
    if (pause := begins_at - time.monotonic()) > 0:
        time.sleep(pause)
    if known.pace.must_look(time.monotonic()):
        known.head = read_head(*key)


def _send_group(key: Key, callers: list[ItemCaller]) -> None:
    """Send one transaction for as many of `callers` as fit. Decide those with a known outcome."""
    model, series = key
    known = _known(key)
    head = known.head
    if head is None or any(caller.ask.contradicts(head) for caller in callers):
        head = known.head = read_head(model, series)
    chosen = choose(callers, head)
    if chosen and time.monotonic() > operation_ends_at():
        raise Unavailable("TransactWriteItems", "the series is contended or throttled")
    chosen = [caller for caller in chosen if caller.mark_sent()]
    if not chosen:
        return
    group = Group(model, series, head, chosen)
    began = time.monotonic()
    try:
        is_committed = group.commit()
    except TransactionConflict as conflict:
        now = time.monotonic()
        pace = known.pace
        known.pace = (
            pace.slowed(now) if conflict.throttled else pace.lost(now, now - began, told=False)
        )
        return
    except (Rejected, ValueError) as error:
        # One item is wrong, or the head from which it was numbered. From now on, each item is
        # written alone, so that the wrong item gets the error.
        known.head = read_head(model, series)
        for caller in chosen:
            caller.ask.is_alone = True
        if len(chosen) == 1 and known.head == head:
            chosen[0].decide(error)
        return
    now = time.monotonic()
    if is_committed:
        known.head = group.head_after
        known.pace = known.pace.won(now, now - began)
        numbers_given.send_robust(
            sender=model, kind="series", callers=len(chosen), numbers=len(chosen)
        )
        return
    group.answer_the_refused()
    true_head = group.true_head()
    if true_head is None:
        # Only request ids and writes of `also` were refused. The other items join the next
        # transaction.
        return
    if true_head == head:
        for caller in chosen:
            caller.decide(DamagedSeries(series))
        return
    known.head, known.pace = true_head, known.pace.lost(now, now - began, told=True)


_combiner: Combiner[Key, Unnumbered, Any] = Combiner(_send_group, prepare=_prepare)
