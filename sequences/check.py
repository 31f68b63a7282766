"""Checks that each series has the numbers first..n, each on one item, and one per request id.

`dynamo.tables.findings` has the helpers of such checks. The counters are read first, then the items
and guard items. Each of these belongs to a series and a number. After sorting by series and number,
a series without damage needs no further reads. After sorting by request id, two items with the same
one (twins) follow each other.

A scan is not isolated from transactions, so its findings are only suspects. Before anything is
reported, the counter, the suspect numbers and their guard items are read again at one instant.
Items may be issued in the meantime. Therefore, a report covers the numbers that were given out when
the check began: the counters are read first, and items issued later are neither counted nor missed.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter

from dynamo.client import bulk
from dynamo.client.plain import PlainModel
from dynamo.tables import findings
from dynamo.tables.findings import Findings, Progress, Spool, scanned, unseen
from dynamo.transactions import READ_TOGETHER, read_together
from dynamo.wire.types import Item, Request
from dynamo.wire.values import text_of
from sequences.exceptions import DamagedSeries
from sequences.groups import head_of
from sequences.models import REQUEST_PREFIX, Counter, NumberedModel

#: One transaction reads the counter, and at most this many numbers that probably have no item.
ABSENT_TOGETHER = READ_TOGETHER - 1

# The kinds of entry, in the order in which those of one number are sorted. An entry is the series,
# the position of the number, the kind, and:
COUNTER = "counter"  # the last number it has given out, empty if it does not hold one; the first
ITEM = "item"  # the item's value of `count_by`, and its request id
REQUEST = "request"  # the key of a guard item that names the number
TWIN = "twin"  # series and number of another item, with the same request id

_POSITION_DIGITS = 40

_OF_COUNTERS = ("counterName", "currentValue", "firstValue", "lastDate")


def position(number: str) -> str:
    """A number as on the wire, padded so that texts are sorted like whole numbers."""
    return number.zfill(_POSITION_DIGITS) if number.isdigit() else f"-{number}"


@dataclass
class SeriesReport:
    """The findings of the check in a series.

    - `last`: the last number that its counter had given out when the check began; 0 without a
      counter, None if the counter does not hold a number.
    - `first`: the number that the series begins with; see `start_series`.
    - `counts`: the number of items for each value of `count_by`. Without damage, the sum is that of
      the numbers from `first` to `last`.
    - `gaps`: numbers from `first` to `last` without an item.
    - `duplicates`: numbers whose item has the same request id as another item.
    - `beyond`: numbers of items that the counter has not given out, also those below `first`.
    - `guards`: keys of guard items that name an item that does not exist or has another request id,
      and of guard items that an item should have and that do not exist. A guard item that names no
      item is reported under its scope instead of a series.
    - `others`: the findings of further checks of the model, by the name of the check.
    """

    series: str
    last: int | None = 0
    first: int = 1
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    gaps: Findings[int] = field(default_factory=Findings)
    duplicates: Findings[int] = field(default_factory=Findings)
    beyond: Findings[int | str] = field(default_factory=Findings)
    guards: Findings[str] = field(default_factory=Findings)
    others: dict[str, Findings[str]] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """The number of items of the series."""
        return self.counts.total()

    @property
    def findings(self) -> dict[str, Findings]:
        """All findings by name, those of further checks included."""
        names = ("gaps", "duplicates", "beyond", "guards")
        return {name: getattr(self, name) for name in names} | self.others

    @property
    def is_sound(self) -> bool:
        """Whether the check found no damage."""
        return self.last is not None and not any(self.findings.values())


def check_series(
    model: type[NumberedModel],
    *,
    series: Iterable[str] | None = None,
    count_by: str = "",
    on_item: Callable[[Item], object] | None = None,
    progress: Progress = unseen,
) -> Iterator[SeriesReport]:
    """Yield a report for each series of `model`, sorted by name; or only for the given `series`.

    Nothing is read before the first report is requested, so iterate over the result.

    Proves for each series that its items have the numbers from its first one to its counter's, that
    no two items have the same request id, that each guard item names an item with its request id,
    and that each item with a request id has its guard item. Items may be issued in the meantime: a
    report describes the time when the check began. With `count_by`, a stored attribute such as a
    status, `SeriesReport.counts` has the number of items for each value. `on_item` is called with
    the key and the request id of each item, and all of these calls come before the first report.

    Costs a scan of `counters` and of the model's table: 1 request per MB, 1 read unit per 4 KB of
    everything stored; for each suspect number, and each one issued meanwhile, 2 requests at most
    and 2 read units per item. While it runs it uses about 600 bytes of disk per item.

    With `series`, nothing is scanned. This costs a read of their counters, a Query for each, and 2
    read units for the guard item of each item. A guard item whose item is gone is not found in this
    case.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`.
    """
    attributes = ("series", "number", "requestId", "owner", *([count_by] if count_by else []))
    if series is None:
        counters = scanned(Counter.table(), _OF_COUNTERS, unseen)
        items = scanned(model.table(), attributes, progress)
    else:
        names = list(dict.fromkeys(series))
        counters = _read_items([model.counter_of(name) for name in names])
        items = chain.from_iterable(_items_of(model, name, attributes, progress) for name in names)
    with Spool() as claims, Spool() as requests:
        # Counters are read before the items, so that items issued after this are not checked.
        for counter in counters:
            _claim_counter(model, counter, claims)
        for item in items:
            _claim(model, item, count_by, claims, requests)
            if on_item and not item["series"]["S"].startswith(REQUEST_PREFIX):
                on_item(item)
        _claim_twins(requests, claims)
        for name, entries in groupby(claims, key=itemgetter(0)):
            report = SeriesCheck(model, name, count_by).run(entries)
            if report:
                yield report


def _read_items(keys: Iterable[PlainModel]) -> Iterator[Item]:
    """The items that exist under `keys`."""
    left = iter(keys)
    while some := list(islice(left, findings.TOGETHER)):
        yield from (item for item in read_together(some) if item)


def _items_of(
    model: type[NumberedModel], series: str, attributes: tuple[str, ...], progress: Progress
) -> Iterator[Item]:
    """The items of one series and their guard items."""
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    request: Request = {
        "TableName": model.table(),
        "KeyConditionExpression": "series = :series",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":series": {"S": series}},
    }
    for page, _has_more in bulk.query_pages(request):
        yield from page
        # A transaction takes each key once, and twins have the same guard item.
        ids = {request_id for item in page if (request_id := text_of(item, "requestId"))}
        keys = [model(model.guard_key(series, id_), 0) for id_ in sorted(ids)]
        yield from _read_items(keys)
        progress("Items read", len(page) + len(keys))


def _claim_counter(model: type[NumberedModel], item: Item, claims: Spool) -> None:
    name = item["counterName"]["S"]
    if name.startswith(model.counter_prefix()):
        series = name.removeprefix(model.counter_prefix())
        last = last_of(model, item)
        first = item.get("firstValue", {}).get("N", "")
        claims.add(series, "", COUNTER, "" if last is None else str(last), first)


def _claim(
    model: type[NumberedModel], item: Item, count_by: str, claims: Spool, requests: Spool
) -> None:
    """Record to which series, number and request id an item of the table belongs."""
    key = item["series"]["S"]
    number = item["number"]["N"]
    if key.startswith(REQUEST_PREFIX):
        series, place = model.place_of(item) or (model.scope_of(key), "none")
        claims.add(series, position(str(place)), REQUEST, key)
        return
    request_id = text_of(item, "requestId")
    claims.add(key, position(number), ITEM, text_of(item, count_by), request_id)
    if request_id and number.isdigit():
        requests.add(model.guard_key(key, request_id), key, number)


def _claim_twins(requests: Spool, claims: Spool) -> None:
    """Record the items that share their request id with another item of the scope."""
    for _key, items in groupby(requests, key=itemgetter(0)):
        for count, ((_key, *one), (_key, *other)) in enumerate(pairwise(items)):
            claims.add(other[0], position(other[1]), TWIN, *one)
            if count == 0:
                claims.add(one[0], position(one[1]), TWIN, *other)


class SeriesCheck:
    """Makes the report of one series from its sorted entries."""

    def __init__(self, model: type[NumberedModel], series: str, count_by: str) -> None:
        self.report = SeriesReport(series)
        self._model = model
        self._count_by = count_by
        self._has_counter = False
        self._last = 0
        self._expected = 1

    def run(self, entries: Iterable[list[str]]) -> SeriesReport | None:
        """Return the report; None if the series did not exist yet when the check began."""
        for at, about in groupby(entries, key=itemgetter(1)):
            # The number is None if it is not a whole number above 0.
            number = int(at) or None if at.isdigit() else None
            # The guard item that the item of this number must have, and whether it was not found
            # yet.
            guard_key, is_missing = "", False
            for _series, _at, kind, *details in about:
                if kind == COUNTER:
                    self._take_counter(*details)
                elif kind == ITEM:
                    status, request_id = details
                    guard_key = self._model.guard_key(self.report.series, request_id)
                    is_missing = self._take_item(at, number, status) and bool(request_id)
                elif kind == TWIN:
                    self._take_twin(number or 0, *details)
                elif details == [guard_key]:
                    is_missing = False
                else:
                    self._take_guard(details[0], number)
            if is_missing and (
                self.report.guards.is_full or self._is_unguarded(number or 0, guard_key)
            ):
                self.report.guards.add(guard_key)
        self._suspect_gap(self._last + 1)
        anything = self._has_counter or self.report.items or not self.report.is_sound
        return self.report if anything else None

    def _take_counter(self, value: str, first: str = "") -> None:
        self._has_counter, self._last = True, int(value or 0)
        if first.isdigit():
            self._expected = self.report.first = int(first)
        self.report.last = int(value) if value else None

    def _take_item(self, at: str, number: int | None, status: str) -> bool:
        """Count the item.

        Returns whether it was issued when the check began, with a valid number.
        """
        is_issued = False
        if number is None or number < self.report.first:
            # This library never writes such a number, so no transaction can explain it.
            self.report.beyond.add(at[1:] if at.startswith("-") else number or 0)
        elif number <= self._last:
            self._suspect_gap(number)
            self._expected = number + 1
            is_issued = True
        elif not (self.report.beyond.is_full or self._is_beyond(number)):
            return False  # issued since the check began
        else:
            self.report.beyond.add(number)
        self.report.counts[status] += 1
        return is_issued

    def _take_guard(self, key: str, number: int | None) -> None:
        """Confirm that a guard item names no item, or the item of another request."""
        if self.report.guards.is_full or self._is_wrong(key, number):
            self.report.guards.add(key)

    def _is_unguarded(self, number: int, key: str) -> bool:
        """Whether, at one instant, the item exists and no guard item has this key."""
        place = self._model(self.report.series, number)
        guard, item = read_together([self._model(key, 0), place])
        # A guard item that names another item is reported itself, or the two items are twins.
        return guard is None and item is not None

    def _take_twin(self, number: int, series: str, other: str) -> None:
        if self.report.duplicates.is_full or self._is_twin(number, series, int(other)):
            self.report.duplicates.add(number)

    def _suspect_gap(self, end: int) -> None:
        """Confirm that the numbers from the expected one up to below `end` have no item."""
        first = self._expected
        while first < end and not self.report.gaps.is_full:
            numbers = range(first, min(end, first + ABSENT_TOGETHER))
            last, items = self._read(numbers)
            for number in numbers:
                if number in items:
                    self.report.counts[text_of(items[number], self._count_by)] += 1
                elif number <= last:
                    self.report.gaps.add(number)
            first = numbers.stop
        self.report.gaps.more += max(0, end - first)

    def _is_beyond(self, number: int) -> bool:
        """Whether, at one instant, the number has an item and was not given out."""
        last, items = self._read([number])
        return number > last and number in items

    def _is_twin(self, number: int, series: str, other: int) -> bool:
        """Whether the two items have, at one instant, the same request id."""
        places = [(self.report.series, number), (series, other)]
        items = read_together([self._model(*place) for place in places])
        one, two = (text_of(item, "requestId") for item in items)
        return one == two != ""

    def _read(self, numbers: Sequence[int]) -> tuple[int, dict[int, Item]]:
        """The last number given out, and which of `numbers` have an item, at one instant."""
        series = self.report.series
        keys = [self._model(series, number) for number in numbers]
        counter, *items = read_together([self._model.counter_of(series), *keys])
        found = zip(numbers, items, strict=True)
        return last_of(self._model, counter) or 0, {number: item for number, item in found if item}

    def _is_wrong(self, key: str, number: int | None) -> bool:
        """Whether the guard item names no item, or the item of another request, at one instant."""
        guard_item = self._model(key, 0)
        if number is None:
            [guard] = read_together([guard_item])
            place = self._model.place_of(guard) if guard else None
            return guard is not None and (place is None or place.number == 0)
        series = self.report.series
        guard, item = read_together([guard_item, self._model(series, number)])
        if guard is None or self._model.place_of(guard) != (series, number):
            return False
        return item is None or key != self._model.guard_key(series, text_of(item, "requestId"))


def last_of(model: type[NumberedModel], counter: Item | None) -> int | None:
    """The last number that a counter has given out; None if it does not hold one."""
    try:
        return head_of("", model, counter).number
    except DamagedSeries:
        return None
