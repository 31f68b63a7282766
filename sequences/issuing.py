"""How an invoice gets its number: counter, invoices and request-id guards in one transaction.

    counter  invoices#<series>      n → n+k                     if it is n
    invoice  <series>, n+1 … n+k    put                         if it is not there
    guard    requestId#…            put, naming its invoice     if it is not there

All of it or nothing: a number without its invoice cannot exist, so there is nothing to repair after
a crash, and every TransactGetItems sees the numbers 1..n, each on its invoice. The process
remembers n; where it is no longer right, the refusal brings the true one. Guards decide first:
whose request is stored already gets the stored invoice, the others go on in a new transaction.

Waiting invoices of a series share a transaction (`sequences.combining`): 2 + 4k write units for k
invoices of up to 1 KB with their guards. Processes that collide back off with full jitter.
"""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections import OrderedDict
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.utils import timezone

from dynamo.client import send
from dynamo.deadline import operation_ends_at
from dynamo.exceptions import Refused, Rejected, TableMissing, Unavailable
from dynamo.models import Item
from dynamo.transaction import Transaction, read_together
from sequences.combining import Combiner
from sequences.exceptions import (
    DamagedSeries,
    DateTooEarly,
    InvoiceError,
    InvoiceTooLarge,
    RequestIdReused,
)
from sequences.invoices import (
    Draft,
    Invoice,
    Party,
    draw_up,
    from_item,
    invoice_of_guard,
    request_guard,
    request_guard_key,
    to_item,
)
from sequences.models import SERIES_COUNTER_PREFIX, Counter, InvoiceItem
from sequences.sizes import ITEM_MAX_BYTES, item_bytes, write_units

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html has 100
#: actions and 4 MB; an invoice takes two actions and the counter one.
GROUP_MAX_INVOICES = 49
GROUP_MAX_BYTES = 3_000_000
#: A partition takes 1,000 write units a second: a group must not use up more than half of one.
GROUP_MAX_UNITS = 500

#: A number, at its longest, is that much longer than the 0 of an invoice that has none yet.
NUMBER_BYTES = 21
#: Kept free in the item, so that the largest invoice can still be voided: a reason of 500
#: characters, a time, and the names of both.
VOIDING_BYTES = 2_100

#: How many series a process remembers; a forgotten one costs a read more.
REMEMBERED_SERIES = 10_000


@dataclass(eq=False)
class _Ask:
    """One caller's invoice, all but its number; `digest` is that of its draft.

    `outcome` is kept here as soon as it is known. One request may decide it and the next one,
    sent for others, fail: then the caller is served again, and must not get a second invoice.
    """

    invoice: Invoice
    digest: str
    size_bytes: int
    guarded: bool
    outcome: Invoice | Exception | None = None


@dataclass(frozen=True)
class _Head:
    """How far a series has come: its last number, and that invoice's date."""

    number: int = 0
    issued_at: date = date.min


class _Heads:
    """What this process remembers of series; the longest unused are forgotten."""

    def __init__(self) -> None:
        self._begin()
        # The lock may be held by a thread that a forked child has not.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._heads: OrderedDict[str, _Head] = OrderedDict()

    def get(self, series: str) -> _Head | None:
        with self._lock:
            if series in self._heads:
                self._heads.move_to_end(series)
            return self._heads.get(series)

    def put(self, series: str, head: _Head) -> None:
        with self._lock:
            self._heads[series] = head
            self._heads.move_to_end(series)
            while len(self._heads) > REMEMBERED_SERIES:
                self._heads.popitem(last=False)


_heads = _Heads()


def issue(
    draft: Draft,
    *,
    account: str,
    seller: Party,
    request_id: str | None = None,
    guarded: bool = True,
) -> Invoice:
    """Give `draft` the next number of the account's year and store it as an invoice.

    `request_id` names this invoice among the account's (drawn when none is given): asked for again
    with the same id and contents, whenever, the answer is the invoice that was issued. Only with
    `guarded=False` is the id not kept (2 units less, and no such promise).

    Costs 1 request and 6 write units for an invoice of up to 1 KB, when nobody else issues on the
    series and the process has seen its counter before (else 1 read more); less in a group.

    Raises:
        RequestIdReused: the request id issued an invoice of other contents.
        DateTooEarly: the series has a later date already.
        InvoiceTooLarge: it does not fit into an item.
        DamagedSeries: counter and invoices contradict each other.
        Unavailable: no answer in time. Ask again with the same request id.
    """
    request_id = request_id or str(uuid.uuid4())
    while True:
        today = _today()
        invoice = draw_up(draft, account, seller, today, request_id)
        size_bytes = item_bytes(to_item(invoice)) + NUMBER_BYTES
        if size_bytes > ITEM_MAX_BYTES - VOIDING_BYTES:
            raise InvoiceTooLarge(size_bytes, ITEM_MAX_BYTES - VOIDING_BYTES)
        ask = _Ask(invoice, draft.digest(), size_bytes, guarded)
        try:
            return _combiner(invoice.series, ask)
        except Unavailable:
            # It failed for the others, after this one's invoice was stored.
            if isinstance(ask.outcome, Invoice):
                return ask.outcome
            raise
        except DateTooEarly:
            # Midnight may have passed between the look at the clock and the series' next invoice.
            if draft.issued_on or today == _today():
                raise


def _today() -> date:
    return timezone.localdate(timezone=timezone.get_default_timezone())


def _fits(asks: list[_Ask]) -> int:
    """How many of `asks`, from the front, share a transaction."""
    size_bytes = 0
    units = 2
    for count, ask in enumerate(asks):
        size_bytes += ask.size_bytes + 1024
        units += write_units(ask.size_bytes) + (2 if ask.guarded else 0)
        if count == GROUP_MAX_INVOICES or size_bytes > GROUP_MAX_BYTES or units > GROUP_MAX_UNITS:
            return count
    return len(asks)


def _serve(series: str, asks: list[_Ask]) -> list[Invoice | Exception]:
    """Issue a group on `series`; each gets its invoice or its own error."""
    head = _heads.get(series) or _read_head(series)
    ends_at = operation_ends_at()
    collisions = 0
    at_most = len(asks)
    while left := _next_group(asks, head)[:at_most]:
        group = _Group(series, head, left)
        began = time.monotonic()
        try:
            written = group.commit()
        except TableMissing:
            raise
        except Rejected as error:
            # One of them is at fault and takes no companions down: from here on each goes alone.
            at_most = 1
            if len(left) == 1:
                left[0].outcome = error
            continue
        if written:
            head = group.head_after
            continue
        group.answer_the_repeated()
        true_head = group.true_head()
        if true_head == head:
            group.declare_damaged()
        elif true_head is not None:
            head = true_head
            pause = _pause_seconds(time.monotonic() - began, collisions)
            collisions += 1
            if time.monotonic() + pause > ends_at:
                raise Unavailable("TransactWriteItems", "the series is contended")
            time.sleep(pause)
    _heads.put(series, head)
    return [ask.outcome for ask in asks if ask.outcome is not None]


def _pause_seconds(attempt_seconds: float, collisions: int) -> float:
    """Full jitter, the wider the more rivals there seem to be, and narrower again after long.

    The measure is how long an attempt takes: the refusal has told how far the series is, and who
    pauses for much longer than its rivals' next attempt never gets its turn.
    """
    width = (0, 1, 2, 4)[collisions] if collisions < 4 else 1
    return random.uniform(0, width * attempt_seconds)  # noqa: S311 - spreads load, no secret


_combiner: Combiner[str, _Ask, Invoice] = Combiner(_serve, _fits)


class _Group:
    """One transaction: the counter, and an invoice and a guard for each of `asks`."""

    def __init__(self, series: str, head: _Head, asks: list[_Ask]) -> None:
        self._series = series
        self._head = head
        self._asks = asks
        self.invoices = [
            replace(ask.invoice, number=head.number + count) for count, ask in enumerate(asks, 1)
        ]
        self.head_after = _Head(head.number + len(asks), asks[-1].invoice.issued_at)
        self._write = Transaction()
        self._counter = counter_key(series)

    def commit(self) -> bool:
        """Send it; whether it is written."""
        write = self._write
        write.add({"Update": self._counter_update()}, about=self, otherwise=_Refused())
        for ask, invoice in zip(self._asks, self.invoices, strict=True):
            write.add(_put_if_absent(to_item(invoice)), about=invoice, otherwise=_Refused())
            if ask.guarded:
                guard = request_guard(invoice, ask.digest)
                write.add(_put_if_absent(guard), about=ask, otherwise=_Refused())
        try:
            write.commit()
        except (_Refused, Refused):
            return False
        except Unavailable as error:
            if error.maybe_written:
                self._give_up_unguarded(error)
            raise
        for ask, invoice in zip(self._asks, self.invoices, strict=True):
            ask.outcome = invoice
        return True

    def _give_up_unguarded(self, error: Unavailable) -> None:
        """Let none be served again who could not be recognised: that might be a second invoice."""
        for ask in self._asks:
            if not ask.guarded:
                ask.outcome = error

    def _counter_update(self) -> dict[str, Any]:
        values = {
            ":before": {"N": str(self._head.number)},
            ":number": {"N": str(self.head_after.number)},
            ":date": {"S": self.head_after.issued_at.isoformat()},
        }
        unchanged = "currentValue = :before"
        if not self._head.number:
            unchanged = f"attribute_not_exists(currentValue) OR {unchanged}"
        return {
            "TableName": Counter.table(),
            "Key": self._counter,
            "UpdateExpression": "SET currentValue = :number, lastDate = :date",
            "ConditionExpression": unchanged,
            "ExpressionAttributeValues": values,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def answer_the_repeated(self) -> None:
        """Tell the callers whose request id is stored already what it issued."""
        for ask in self._asks:
            refusal = self._write.refusal_of(ask)
            if refusal and refusal.stored:
                ask.outcome = _issued_before(ask, refusal.stored)

    def true_head(self) -> _Head | None:
        """How far the series really is, where that refused the group.

        It is no farther than we thought where an invoice stands beyond the counter.
        """
        refusal = self._write.refusal_of(self)
        if refusal:
            return _head_of(self._series, refusal.stored)
        for invoice in self.invoices:
            if self._write.refusal_of(invoice):
                return _head_beside(self._series, invoice.number)
        return None

    def declare_damaged(self) -> None:
        """Tell the callers that wait still that nothing can be issued."""
        for ask in self._asks:
            ask.outcome = ask.outcome or DamagedSeries(self._series)


class _Refused(InvoiceError):
    """One of a group's writes was refused; what follows from it `_serve` decides."""


def _put_if_absent(item: Item) -> dict[str, Any]:
    return {
        "Put": {
            "TableName": InvoiceItem.table(),
            "Item": item,
            "ConditionExpression": "attribute_not_exists(series)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def _next_group(asks: list[_Ask], head: _Head) -> list[_Ask]:
    """Those of `asks` for the next transaction, by date; who comes too late gets that outcome.

    Of two with one request id the second waits: it will find the first one's guard.
    """
    group: dict[str, _Ask] = {}
    for ask in sorted(asks, key=lambda ask: ask.invoice.issued_at):
        if ask.outcome is None and ask.invoice.issued_at < head.issued_at:
            ask.outcome = _outcome_of_early(ask, head)
        elif ask.outcome is None:
            group.setdefault(ask.invoice.request_id, ask)
    return list(group.values())


def _outcome_of_early(ask: _Ask, head: _Head) -> Invoice | Exception:
    if ask.guarded:
        guard = _get(request_guard_key(ask.invoice.account, ask.invoice.request_id), 0)
        if guard:
            return _issued_before(ask, guard)
    return DateTooEarly(ask.invoice.issued_at, head.issued_at)


def _issued_before(ask: _Ask, guard: Item) -> Invoice | Exception:
    """The invoice that the same request issued, if it asked for the same."""
    named = invoice_of_guard(guard)
    stored = _get(*named) if named else None
    if stored is None or stored.get("requestId") != {"S": ask.invoice.request_id}:
        return DamagedSeries(named[0] if named else ask.invoice.series)
    invoice = from_item(stored)
    if guard.get("digest") != {"S": ask.digest}:
        return RequestIdReused(ask.invoice.request_id, invoice.label)
    return invoice


def counter_key(series: str) -> Item:
    """The key of the counter of a series."""
    return {"counterName": {"S": f"{SERIES_COUNTER_PREFIX}{series}"}}


def _read_head(series: str) -> _Head:
    request = {"TableName": Counter.table(), "Key": counter_key(series)}
    return _head_of(series, send("GetItem", request).get("Item"))


def _head_beside(series: str, number: int) -> _Head | None:
    """How far the series is while the invoice `number` stands; None where that does not stand.

    Both at one instant, as the reasons of a refused transaction may be from different ones.
    """
    counter, invoice = read_together(
        [Counter(counter_key(series)["counterName"]["S"]), InvoiceItem(series, number)]
    )
    return _head_of(series, counter) if invoice else None


def _head_of(series: str, stored: Item | None) -> _Head:
    try:
        return _Head(*counted(stored))
    except ValueError as error:
        raise DamagedSeries(series) from error


def counted(counter: Item | None) -> tuple[int, date]:
    """The last number that a series' counter has given out, and its date; 0 where it is not there.

    Raises:
        ValueError: it holds no such thing.
    """
    stored = counter or {}
    text = stored.get("currentValue", {"N": "0"}).get("N", "")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"A series' counter holds no number: {stored['currentValue']!r}.")
    last = stored.get("lastDate", {"S": ""}).get("S", "none")
    return int(text), date.fromisoformat(last) if last else date.min


def _get(series: str, number: int) -> Item | None:
    key = {"series": {"S": series}, "number": {"N": str(number)}}
    item: Item | None = send("GetItem", {"TableName": InvoiceItem.table(), "Key": key}).get("Item")
    return item or None
