"""Numbers 1, 2, 3 … without a gap, for items of any model.

    class Ticket(NumberedItem):
        class Meta:
            table_name = "tickets"

        subject = UnicodeAttribute()

    ticket = issue(Ticket(subject="Broken door"), series="tickets#2026", request_id=form_id)
    ticket.number  # assigned, stored and final

The counter, the item and the guard item of the request id are one transaction (`sequences.groups`),
so a number without its item cannot exist, and a crash leaves nothing to repair. The process
remembers the counter; if another process moved it, the refusal tells its true value. Items that
wait for the same series share a transaction (`sequences.combining`): 2 + 4k write units for k items
of up to 1 KB. A transaction that met another one is not repeated: after a pause (`sequences.pace`)
the counter is read, and the items that came meanwhile join.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dynamo.client.deadline import operation_ends_at
from dynamo.exceptions import Hindered, Rejected, TableMissing, Unavailable
from dynamo.models import ITEM_MAX_BYTES, PARTITION_KEY_MAX_BYTES, item_bytes
from dynamo.transactions import Write
from sequences.combining import Combiner
from sequences.exceptions import DamagedSeries, ItemTooLarge
from sequences.groups import Ask, Asking, Group, Head, choose, is_before, read_head
from sequences.models import REQUEST_PREFIX, NumberedItem
from sequences.pace import Pace
from sequences.signals import numbers_given

__all__ = ["NumberedItem", "issue"]

Numbered = TypeVar("Numbered", bound=NumberedItem)
Key = tuple[type[NumberedItem], str]

#: How many series a process remembers; a forgotten one costs one more read.
REMEMBERED_SERIES = 10_000
#: The number of an item is at most this much longer than the 0 that it has before.
NUMBER_BYTES = 21


def issue(
    item: Numbered,
    *,
    series: str,
    request_id: str | uuid.UUID | None = None,
    also: Sequence[Write] = (),
) -> Numbered:
    """Give `item` the next number of `series` and store it; return it.

    `request_id` names this call (one is drawn if none is given): a later call with the same id and
    `contents` returns the stored item, whatever it says by then. `also` are further writes that
    are committed with the item or not at all; a refusal of one rejects this item alone.

    Costs 1 request and 6 write units for an item of up to 1 KB if no other process issues on the
    series and this one has seen its counter before (else 1 read more); less in a group. Each write
    of `also` adds 2 units per KB.

    Raises:
        RequestIdReused: the request id issued an item with other contents.
        OutOfOrder: the series has a later value of `ordered_by`.
        ItemTooLarge: the item does not fit into DynamoDB.
        DamagedSeries: the counter and the items contradict each other; see `checkseries`.
        the `otherwise` of a refused write of `also`.
        Unavailable: no answer in time; the item may be stored. Ask again with the same request id.
        Rejected, TableMissing: see `dynamo.client.sending`.
        ValueError: `series` or `request_id` cannot be part of a key, or the item has no usable
            value of `ordered_by`; nothing was sent.
    """
    item.series = series
    item.number = 0
    item.request_id = str(uuid.uuid4()) if request_id is None else str(request_id)
    guard_key = _checked_guard_key(item)
    wire = item.to_wire() | {
        "series": {"S": series},
        "number": {"N": "0"},
        "requestId": {"S": item.request_id},
    }
    if item.ordered_by is not None:
        # Before it waits with others: what cannot be compared would fail for all of them.
        if item.ordered_by not in wire:
            raise ValueError(f"The item has no {item.ordered_by}, which orders its series.")
        item.check_order(next(iter(wire[item.ordered_by].items())))
    size_bytes = item_bytes(wire) + NUMBER_BYTES
    limit = ITEM_MAX_BYTES - item.reserved_bytes
    if size_bytes > limit:
        raise ItemTooLarge(size_bytes, limit)
    ask = Ask(item, wire, guard_key, item.digest(), size_bytes, tuple(also))
    issued: Numbered = _combiner((type(item), series), ask)
    return issued


def _checked_guard_key(item: NumberedItem) -> str:
    """The key of the guard item. Raises ValueError if a key cannot be made of its parts."""
    series, request_id = item.series, str(item.request_id)
    if not series.strip() or not request_id.strip():
        raise ValueError("Neither the series nor the request id may be empty.")
    if series.startswith(REQUEST_PREFIX):
        raise ValueError(f"A series must not begin with {REQUEST_PREFIX}: {series!r}.")
    if item.scopes_have_hash and "#" in request_id:
        raise ValueError(f"The request id must not contain #: {request_id!r}.")
    guard_key = item.guard_key(series, request_id)
    for key in (guard_key, item.counter_prefix() + series):
        if len(key.encode()) > PARTITION_KEY_MAX_BYTES:
            raise ValueError(f"The key is longer than {PARTITION_KEY_MAX_BYTES} bytes: {key!r}.")
    return guard_key


@dataclass(frozen=True)
class _Known:
    """What the process remembers of a series: its head, and when the next group goes."""

    head: Head
    pace: Pace = field(default_factory=Pace)


class _Memory:
    """What this process knows of series. Those unused for longest are forgotten."""

    def __init__(self) -> None:
        self._begin()
        # A thread that a forked child does not have may hold the lock.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Key, _Known] = OrderedDict()

    def get(self, key: Key) -> _Known | None:
        with self._lock:
            return self._known.get(key)

    def put(self, key: Key, known: _Known) -> None:
        with self._lock:
            self._known[key] = known
            self._known.move_to_end(key)
            while len(self._known) > REMEMBERED_SERIES:
                self._known.popitem(last=False)


_memory = _Memory()


def _prepare(key: Key) -> None:
    """Pause before a group if other processes issue on the series, too, and read the counter.

    A read costs less than a group that is refused.
    """
    known = _memory.get(key)
    if known is None:
        return
    begins_at = min(known.pace.begins_at, operation_ends_at())
    if (pause := begins_at - time.monotonic()) > 0:
        time.sleep(pause)
    if known.pace.must_look(time.monotonic()):
        _memory.put(key, replace(known, head=read_head(*key)))


def _serve(key: Key, callers: list[Asking]) -> None:
    """Send one transaction for as many of `callers` as fit; serve those that it decides."""
    model, series = key
    known = _memory.get(key)
    if known is None:
        known = _Known(read_head(model, series))
        _memory.put(key, known)
    elif any(is_before(each.ask.order, known.head.last) for each in callers):
        # A refusal must not rest on memory: the tables may have been restored since.
        known = replace(known, head=read_head(model, series))
        _memory.put(key, known)
    chosen = choose(callers, known.head)
    if chosen and time.monotonic() > operation_ends_at():
        raise Unavailable("TransactWriteItems", "the series is contended or throttled")
    chosen = [caller for caller in chosen if caller.is_here()]
    if not chosen:
        return
    group = Group(model, series, known.head, chosen)
    began = time.monotonic()
    try:
        is_committed = group.commit()
    except Hindered as hindered:
        now = time.monotonic()
        pace = known.pace
        pace = pace.slowed(now) if hindered.throttled else pace.lost(now, now - began, told=False)
        _memory.put(key, replace(known, pace=pace))
        return
    except TableMissing:
        raise
    except Rejected as error:
        # One item is at fault: each goes alone from here on, and that one gets the error.
        for caller in chosen:
            caller.ask.is_alone = True
        if len(chosen) == 1:
            chosen[0].serve(error)
        return
    now = time.monotonic()
    if is_committed:
        _memory.put(key, _Known(group.head_after, known.pace.won(now, now - began)))
        numbers_given.send_robust(
            sender=model, kind="series", callers=len(chosen), numbers=len(chosen)
        )
        return
    group.answer_the_refused()
    true_head = group.true_head()
    if true_head is None:
        # Only request ids and writes of `also` were refused; the others go on.
        return
    if true_head == known.head:
        for caller in chosen:
            caller.serve(DamagedSeries(series))
        return
    _memory.put(key, _Known(true_head, known.pace.lost(now, now - began, told=True)))


_combiner: Combiner[Key, Ask[Any], Any] = Combiner(_serve, prepare=_prepare)
