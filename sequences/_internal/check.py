"""Checks that each series has the numbers 1..n, each on one item, and one item for each request id.

The engine is `dynamo._internal.checking.findings`. The counters are read first, then the items and
guard items; each says to which series and number it belongs. Sorted by these, a series without
damage needs no further reads. Sorted by request id, two items with the same one follow each other:
twins. Everything suspect is read again at one instant (`seriesreport`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

from dynamo._internal import bulk
from dynamo._internal.checking.findings import (
    DEFAULT_SIZES,
    Progress,
    Sizes,
    Spool,
    scanned,
    unseen,
)
from dynamo._internal.items import Item, PlainModel, text_of
from dynamo.transactions import READ_TOGETHER, read_together
from sequences._internal.seriesreport import (
    COUNTER,
    ITEM,
    PRESENT_TOGETHER,
    REQUEST,
    TWIN,
    SeriesCheck,
    SeriesReport,
    last_of,
    position,
)
from sequences.models import REQUEST_PREFIX, Counter, NumberedModel

_COUNTER_ATTRIBUTES = ("counterName", "currentValue", "lastDate")


def check_series(
    model: type[NumberedModel],
    *,
    series: Iterable[str] | None = None,
    count_by: str = "",
    on_item: Callable[[Item], object] | None = None,
    progress: Progress = unseen,
    sizes: Sizes = DEFAULT_SIZES,
) -> Iterator[SeriesReport]:
    """Yield a report for each series of `model`, sorted by name; or only for the given `series`.

    Nothing is read before the first report is asked for: iterate, as `for report in …` does.

    Proves for each series that its items have the numbers from 1 to the value of its counter, that
    no two items have the same request id, and that each guard item names an item with its request
    id. Items may be issued meanwhile: what a report says is true of the moment when the check
    began. With `count_by`, a stored attribute such as a status, `SeriesReport.counts` tells how
    many items have which value of it. `on_item` is called with the key and the request id of each
    item, and all of these calls come before the first report.

    Costs a scan of `counters` and of the model's table: 1 request per MB, 1 read unit per 4 KB of
    everything stored; for each suspect number 1 request at most and 2 read units per item. While it
    runs it uses about 600 bytes of disk per item.

    With `series` nothing is scanned. Costs a read of their counters, a Query for each, and 2 read
    units for the guard item of each item. A guard item whose item is gone is then not found.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`.
    """
    attributes = ("series", "number", "requestId", "owner", *([count_by] if count_by else []))
    if series is None:
        counters = scanned(Counter.table(), _COUNTER_ATTRIBUTES, unseen, sizes)
        items = scanned(model.table(), attributes, progress, sizes)
    else:
        names = list(dict.fromkeys(series))
        counters = _read_items([model.counter_of(name) for name in names])
        items = chain.from_iterable(
            _items_of(model, name, attributes, progress, sizes) for name in names
        )
    with Spool() as claims, Spool() as requests:
        # Before the items: what is issued from here on is not checked.
        for counter in counters:
            _claim_counter(model, counter, claims)
        for item in items:
            _claim(model, item, count_by, claims, requests)
            if on_item and not item["series"]["S"].startswith(REQUEST_PREFIX):
                on_item(item)
        _claim_twins(model, requests, claims)
        for name, entries in groupby(claims, key=itemgetter(0)):
            report = SeriesCheck(model, name, count_by).run(entries)
            if report:
                yield report


def _read_items(keys: Iterable[PlainModel], together: int = READ_TOGETHER) -> Iterator[Item]:
    """The items that exist under `keys`."""
    left = iter(keys)
    while some := list(islice(left, together)):
        yield from (item for item in read_together(some) if item)


def _items_of(
    model: type[NumberedModel],
    series: str,
    attributes: tuple[str, ...],
    progress: Progress,
    sizes: Sizes,
) -> Iterator[Item]:
    """The items of one series and their guard items."""
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    request: dict[str, Any] = {
        "TableName": model.table(),
        "KeyConditionExpression": "series = :series",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":series": {"S": series}},
    }
    if sizes.page_limit is not None:
        request["Limit"] = sizes.page_limit
    for page, _has_more in bulk.query_pages(request):
        yield from page
        # Each key once, as a transaction requires: twins have the same guard item.
        ids = {request_id for item in page if (request_id := text_of(item, "requestId"))}
        keys = [model.at(model.guard_key(series, each), 0) for each in sorted(ids)]
        yield from _read_items(keys, sizes.together)
        progress("Items read", len(page) + len(keys))


def _claim_counter(model: type[NumberedModel], item: Item, claims: Spool) -> None:
    name = item["counterName"]["S"]
    if name.startswith(model.counter_prefix()):
        series = name.removeprefix(model.counter_prefix())
        last = last_of(model, item)
        claims.add(series, "", COUNTER, "" if last is None else str(last))


def _claim(
    model: type[NumberedModel], item: Item, count_by: str, claims: Spool, requests: Spool
) -> None:
    """Record to which series, number and request id an item of the table belongs."""
    key, number = item["series"]["S"], item["number"]["N"]
    if key.startswith(REQUEST_PREFIX):
        place = model.place_of(item)
        if place:
            claims.add(place.series, position(str(place.number)), REQUEST, key)
        else:
            claims.add(model.scope_of(key), position("none"), REQUEST, key)
        return
    request_id = text_of(item, "requestId")
    claims.add(key, position(number), ITEM, text_of(item, count_by), request_id)
    if request_id and number.isdigit():
        requests.add(model.guard_key(key, request_id), key, number)


def _claim_twins(model: type[NumberedModel], requests: Spool, claims: Spool) -> None:
    """Record the items that share their request id with another item of the scope."""
    for _key, items in groupby(requests, key=itemgetter(0)):
        first, is_claimed = next(items), False
        while others := list(islice(items, PRESENT_TOGETHER - 1)):
            twins = _twins_of(model, first, others)
            if twins and not is_claimed:
                twins, is_claimed = [first, *twins], True
            for _request, series, number in twins:
                claims.add(series, position(number), TWIN)


def _twins_of(
    model: type[NumberedModel], first: list[str], others: list[list[str]]
) -> list[list[str]]:
    """Those of `others` that have, at one instant, the same request id as `first`."""
    keys: list[PlainModel] = [
        model.at(series, int(number)) for _key, series, number in (first, *others)
    ]
    stored_first, *stored = [text_of(item, "requestId") for item in read_together(keys)]
    return [
        other
        for other, request_id in zip(others, stored, strict=True)
        if request_id == stored_first != ""
    ]
