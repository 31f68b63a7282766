"""Series for tests: models, ways to store items without `issue`, and ways to read them."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from pynamodb.attributes import (
    BinaryAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
)

from dynamo import request_sent
from dynamo.client.writes import Write
from dynamo.transactions import read_together
from sequences import NumberedItem, series as issuing
from sequences.groups import Head
from sequences.models import Counter
from tests import items
from tests.items import Item

Model = type[NumberedItem]


class Ticket(NumberedItem):
    """A numbered item without order."""

    class Meta:
        table_name = "testTickets"

    subject = UnicodeAttribute()
    tags = UnicodeSetAttribute(null=True)
    details: MapAttribute[str, Any] = MapAttribute(null=True)
    photo = BinaryAttribute(legacy_encoding=False, null=True)


class Entry(NumberedItem):
    """Ordered by a text."""

    class Meta:
        table_name = "testEntries"

    ordered_by = "day"

    day = UnicodeAttribute(null=True)


class Reading(NumberedItem):
    """Ordered by a number."""

    class Meta:
        table_name = "testReadings"

    ordered_by = "value"

    value = NumberAttribute()


def new_series() -> str:
    """The name of a new series."""
    return f"tickets#{uuid.uuid4()}"


def ticket(
    series: str,
    *,
    subject: str = "Broken door",
    request_id: str | uuid.UUID | None = None,
    also: Sequence[Write] = (),
    **values: Any,
) -> Ticket:
    """Issue a ticket."""
    item = Ticket(subject=subject, **values)
    return issuing.issue(item, series=series, request_id=request_id, also=also)


def entry(series: str, day: str, *, request_id: str | None = None) -> Entry:
    """Issue an entry."""
    return issuing.issue(Entry(day=day), series=series, request_id=request_id)


def forget_all() -> None:
    """Let this process forget all series."""
    issuing._known.cache_clear()


def remember(model: Model, series: str, number: int, last: dict[str, str] | None = None) -> None:
    """Let this process remember that the series has come so far."""
    issuing._known((model, series)).head = Head(number, last)


def stored_items(model: Model, series: str) -> list[Item]:
    """Every item of the series as on the wire, in the order of their numbers."""
    found = [item for item in items.scanned(model.table()) if item["series"]["S"] == series]
    return sorted(found, key=lambda item: int(item["number"]["N"]))


def stored_numbers(model: Model, series: str) -> list[int]:
    """The numbers that items of the series have."""
    return [int(item["number"]["N"]) for item in stored_items(model, series)]


def stored_guard(model: Model, series: str, request_id: str) -> Item | None:
    """The guard item of a request id as on the wire."""
    return read_together([model(model.guard_key(series, request_id), 0)])[0]


def stored_counter(model: Model, series: str) -> Item | None:
    """The counter of the series as on the wire."""
    return read_together([model.counter_of(series)])[0]


def put_counter(model: Model, series: str, value: Any, last: Any = None) -> None:
    """Put the counter; attributes as on the wire, or numbers and texts."""
    item: Item = {
        "counterName": {"S": model.counter_of(series).name},
        "currentValue": value if isinstance(value, dict) else {"N": str(value)},
    }
    if last is not None:
        item["lastDate"] = last if isinstance(last, dict) else {"S": str(last)}
    items.put_item(Counter.table(), **item)


def remove_counter(model: Model, series: str) -> None:
    """Delete the counter."""
    items.remove_item(Counter.table(), counterName=model.counter_of(series).name)


def put_item(model: Model, item: Item, **changes: Any) -> None:
    """Put an item with some attributes changed."""
    items.put_item(model.table(), **item | changes)


def remove_item(model: Model, key: str, number: str | int) -> None:
    """Delete an item."""
    items.remove_item(model.table(), series=key, number={"N": str(number)})


def assert_whole(model: Model, series: str, count: int) -> None:
    """Assert that the series has the numbers 1..count, each once, and that its counter agrees."""
    assert stored_numbers(model, series) == list(range(1, count + 1))
    counter = stored_counter(model, series)
    assert int((counter or {"currentValue": {"N": "0"}})["currentValue"]["N"]) == count


def waiting(model: Model, series: str) -> int:
    """How many callers of this process wait for the next transaction of the series."""
    queue = issuing._combiner._queues.get((model, series))
    return len(queue.waiting) if queue else 0


@contextmanager
def behind(
    model: Model, series: str, first: Callable[[], Any]
) -> Iterator[Callable[..., Future[Any]]]:
    """Let callers wait behind `first`, whose transaction is held back until the block ends.

    Yields a function that starts one more, `then(function)`, and comes back when it waits.
    """
    under_way = threading.Event()
    release = threading.Event()

    def hold(**signal: Any) -> None:
        if signal["operation"] == "TransactWriteItems" and not under_way.is_set():
            under_way.set()
            release.wait(120)

    request_sent.connect(hold, weak=False)
    with ThreadPoolExecutor(64) as pool:
        begun = pool.submit(first)
        try:
            assert under_way.wait(120)
            request_sent.disconnect(hold)

            def then(function: Callable[[], Any]) -> Future[Any]:
                before = waiting(model, series)
                future = pool.submit(function)
                while waiting(model, series) == before:
                    assert not future.done()
                    time.sleep(0.001)
                return future

            yield then
        finally:
            request_sent.disconnect(hold)
            release.set()
        begun.result()
