"""Whether the numbers of every series are 1..n, each with an item, and each request id has one.

Works while items are issued, in bounded memory.

1. Claims. The counters are read, then the items and guard items; each says to which series and
   number it belongs. Sorted by these, a sound series is read through without a lookup.
2. Twins. Sorted by request id, two items for one request stand together.
3. Confirmation. What is suspect is read again with all that bears on it, at one instant
   (`sequences.seriesreport`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from dynamo import bulk
from dynamo.client.sending import send
from dynamo.findings import RUN_LENGTH, Spool
from dynamo.models import Item, Model
from dynamo.transactions import READ_TOGETHER, read_together
from sequences.models import REQUEST_PREFIX, Counter, NumberedItem
from sequences.seriesreport import (
    COUNTER,
    ITEM,
    PRESENT_TOGETHER,
    REQUEST,
    TWIN,
    SeriesCheck,
    SeriesReport,
    position,
)

Progress = Callable[[int], object]
"""Told how many more items were read."""

_COUNTER_ATTRIBUTES = ("counterName", "currentValue", "lastDate")


@dataclass(frozen=True)
class Sizes:
    """How much is taken at once; tests take less."""

    segments: int = bulk.SEGMENTS
    page_limit: int | None = None
    run_length: int = RUN_LENGTH
    guards_together: int = READ_TOGETHER


def check_series(
    model: type[NumberedItem],
    *,
    series: Iterable[str] | None = None,
    count_by: str = "",
    progress: Progress | None = None,
    sizes: Sizes | None = None,
) -> Iterator[SeriesReport]:
    """The report of each series of `model`, in the order of their names; or of `series` only.

    Items are counted by the stored attribute `count_by`, such as a status.

    Costs a scan of `counters` and the model's table: 1 request per MB and 1 read unit per 4 KB of
    all that is stored; each suspect 1 request and 2 read units for each of its items. It uses
    about 300 bytes of disk for each item while it runs.

    For `series` nothing is scanned: their counters are read, one Query goes out for each, and
    guard items are read by the request ids of the items (2 read units each). A guard item whose
    item is gone is found only by the check of all.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
    """
    sizes = sizes or Sizes()
    source: _Source = (
        _Whole(model, count_by, sizes)
        if series is None
        else _Some(model, count_by, sizes, tuple(dict.fromkeys(series)))
    )
    with Spool(sizes.run_length) as claims, Spool(sizes.run_length) as requests:
        for counter in source.counters():
            _claim_counter(model, counter, claims)
        for page in source.items():
            for item in page:
                _claim(model, item, count_by, claims, requests)
            if progress:
                progress(len(page))
        _claim_twins(model, requests, claims)
        for name, entries in groupby(claims, key=itemgetter(0)):
            report = SeriesCheck(model, name, count_by).run(entries)
            if report:
                yield report


@dataclass(frozen=True)
class _Source:
    """Where the items to check come from."""

    model: type[NumberedItem]
    count_by: str
    sizes: Sizes

    def counters(self) -> Iterator[Item]:
        raise AssertionError("a subclass reads them")

    def items(self) -> Iterator[list[Item]]:
        raise AssertionError("a subclass reads them")

    @property
    def attributes(self) -> tuple[str, ...]:
        extra = (self.count_by,) if self.count_by else ()
        return ("series", "number", "requestId", "owner", *extra)


@dataclass(frozen=True)
class _Whole(_Source):
    """The items of every series, by a scan."""

    def counters(self) -> Iterator[Item]:
        for page in self._pages(Counter.table(), _COUNTER_ATTRIBUTES):
            yield from page

    def items(self) -> Iterator[list[Item]]:
        return self._pages(self.model.table(), self.attributes)

    def _pages(self, table: str, attributes: tuple[str, ...]) -> Iterator[list[Item]]:
        return bulk.pages(
            table, attributes, segments=self.sizes.segments, page_limit=self.sizes.page_limit
        )


@dataclass(frozen=True)
class _Some(_Source):
    """The items of a few series, by their keys."""

    series: tuple[str, ...]

    def counters(self) -> Iterator[Item]:
        keys = iter([self.model.counter_of(each) for each in self.series])
        while together := list(islice(keys, READ_TOGETHER)):
            yield from (item for item in read_together([*together]) if item)

    def items(self) -> Iterator[list[Item]]:
        for series in self.series:
            for page in self._pages(series):
                yield page
                yield list(self._guards_of(series, page))

    def _pages(self, series: str) -> Iterator[list[Item]]:
        names = {f"#{number}": name for number, name in enumerate(self.attributes)}
        request: dict[str, Any] = {
            "TableName": self.model.table(),
            "KeyConditionExpression": "series = :series",
            "ProjectionExpression": ", ".join(names),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {":series": {"S": series}},
        }
        if self.sizes.page_limit is not None:
            request["Limit"] = self.sizes.page_limit
        while True:
            answer = send("Query", request)
            yield answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _guards_of(self, series: str, page: list[Item]) -> Iterator[Item]:
        # Each key once, as a transaction wants: twins have one guard item.
        ids = {request_id for request_id in map(_request_id, page) if request_id}
        keys = iter(sorted(self.model.guard_key(series, each) for each in ids))
        while together := list(islice(keys, self.sizes.guards_together)):
            guards = read_together([self.model.at(key, 0) for key in together])
            yield from (guard for guard in guards if guard)


def _claim_counter(model: type[NumberedItem], item: Item, claims: Spool) -> None:
    name = item["counterName"]["S"]
    if name.startswith(model.counter_prefix()):
        # A value that is not a number reads as a damaged one.
        value = item.get("currentValue", {}).get("N", "none")
        last = "".join(f"{kind}:{text}" for kind, text in item.get("lastDate", {}).items())
        claims.add(name.removeprefix(model.counter_prefix()), "", COUNTER, value, last)


def _claim(
    model: type[NumberedItem], item: Item, count_by: str, claims: Spool, requests: Spool
) -> None:
    """Note to which series and number an item of the table belongs, and to which request."""
    key, number = item["series"]["S"], item["number"]["N"]
    if key.startswith(REQUEST_PREFIX):
        place = model.place_of(item)
        if place:
            claims.add(place.series, position(str(place.number)), REQUEST, key)
        else:
            claims.add(model.scope_of(key), position("none"), REQUEST, key)
        return
    request_id = _request_id(item)
    kind = str(item.get(count_by, {}).get("S", ""))
    claims.add(key, position(number), ITEM, kind, request_id)
    if request_id and number.isdigit():
        requests.add(model.guard_key(key, request_id), key, number)


def _claim_twins(model: type[NumberedItem], requests: Spool, claims: Spool) -> None:
    """Note the items whose request id another item of the scope has, too."""
    for _key, items in groupby(requests, key=itemgetter(0)):
        first, is_claimed = next(items), False
        while others := list(islice(items, PRESENT_TOGETHER - 1)):
            twins = _twins_of(model, first, others)
            if twins and not is_claimed:
                twins, is_claimed = [first, *twins], True
            for _request, series, number in twins:
                claims.add(series, position(number), TWIN)


def _twins_of(
    model: type[NumberedItem], first: list[str], others: list[list[str]]
) -> list[list[str]]:
    """Those of `others` that have, at one instant, the request id that `first` has."""
    keys: list[Model] = [model.at(series, int(number)) for _key, series, number in (first, *others)]
    stored_first, *stored = [_request_id(item or {}) for item in read_together(keys)]
    return [
        other
        for other, request_id in zip(others, stored, strict=True)
        if request_id == stored_first != ""
    ]


def _request_id(item: Item) -> str:
    return str(item.get("requestId", {}).get("S", ""))
