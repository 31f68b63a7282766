"""How far a series has come: its counter's item, and what the process remembers of it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import date

from dynamo.client import send
from dynamo.models import Item
from dynamo.transaction import read_together
from invoices.exceptions import DamagedSeries
from invoices.models import InvoiceItem
from invoices.pace import Pace
from sequences.models import SERIES_COUNTER_PREFIX, Counter

#: How many series a process remembers; a forgotten one costs a read more.
REMEMBERED_SERIES = 10_000


@dataclass(frozen=True)
class Head:
    """How far a series has come: its last number, and that invoice's date."""

    number: int = 0
    issued_at: date = date.min


@dataclass(frozen=True)
class Known:
    """What a process remembers of a series: its head, and when the next group goes."""

    head: Head
    pace: Pace = field(default_factory=Pace)


class Heads:
    """What this process remembers of series; the longest unused are forgotten."""

    def __init__(self) -> None:
        self._begin()
        # The lock may be held by a thread that a forked child has not.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._heads: OrderedDict[str, Known] = OrderedDict()

    def get(self, series: str) -> Known | None:
        """What is remembered, None where it is nothing."""
        with self._lock:
            return self._heads.get(series)

    def put(self, series: str, known: Known) -> None:
        """Remember it."""
        with self._lock:
            self._heads[series] = known
            self._heads.move_to_end(series)
            while len(self._heads) > REMEMBERED_SERIES:
                self._heads.popitem(last=False)


def counter_key(series: str) -> Item:
    """The key of the counter of a series."""
    return {"counterName": {"S": f"{SERIES_COUNTER_PREFIX}{series}"}}


def read_head(series: str) -> Head:
    """How far the series is now. Costs 1 request, 1 read unit.

    Raises:
        DamagedSeries: its counter holds no number.
    """
    request = {"TableName": Counter.table(), "Key": counter_key(series)}
    return head_of(series, send("GetItem", request).get("Item"))


def head_beside(series: str, number: int) -> Head | None:
    """How far the series is while the invoice `number` stands; None where that does not stand.

    Both at one instant, as the reasons of a refused transaction may be from different ones.
    """
    counter, invoice = read_together(
        [Counter(counter_key(series)["counterName"]["S"]), InvoiceItem(series, number)]
    )
    return head_of(series, counter) if invoice else None


def head_of(series: str, stored: Item | None) -> Head:
    """How far a series is by its counter's item.

    Raises:
        DamagedSeries: the item holds no number.
    """
    try:
        return Head(*counted(stored))
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
