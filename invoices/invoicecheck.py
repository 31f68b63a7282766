"""Whether the numbers of every series are 1..n, each on an invoice, and each request has one.

Works while invoices are issued, in bounded memory.

1. Claims. The counters are read, then the invoices and guards; each says to which series and number
   it belongs. Sorted by these, a sound series is read through and nothing of it is looked up.
2. Twins. Sorted by account and request id, two invoices for one request stand together. They are
   claims of their series, too.
3. Confirmation. Whatever is suspect is read again with all that bears on it, at one instant
   (`invoices.seriescheck`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from dynamo import scan
from dynamo.client import send
from dynamo.models import Item, Model
from dynamo.spool import RUN_LENGTH, Spool
from dynamo.transaction import READ_TOGETHER, read_together
from invoices.documents import invoice_of_guard, request_guard_key, series_of
from invoices.models import REQUEST_PREFIX, InvoiceItem
from invoices.seriescheck import (
    COUNTER,
    INVOICE,
    PRESENT_TOGETHER,
    REQUEST,
    TWIN,
    SeriesCheck,
    SeriesReport,
    position,
)
from invoices.years import YEARS, counters_of
from sequences.models import SERIES_COUNTER_PREFIX, Counter

Progress = Callable[[int], object]
"""Told how many more items were read."""

_COUNTER_ATTRIBUTES = ("counterName", "currentValue", "lastDate")
_INVOICE_ATTRIBUTES = ("series", "number", "status", "requestId", "owner")


@dataclass(frozen=True)
class Sizes:
    """How much is taken at once; tests take less."""

    segments: int = scan.SEGMENTS
    page_limit: int | None = None
    run_length: int = RUN_LENGTH
    guards_together: int = READ_TOGETHER


def check_invoices(
    account: str | None = None, *, progress: Progress | None = None, sizes: Sizes | None = None
) -> Iterator[SeriesReport]:
    """What is to be said of each series, in the order of their names; or of `account`'s alone.

    Costs a scan of `counters` and `invoices`: 1 request per MB and 1 read unit per 4 KB of all that
    is stored; each suspect 1 request and 2 read units for each of its items. On disk some 300 bytes
    for each invoice while it runs.

    For one account nothing is scanned: its counters are read, and one Query goes out for each year
    that an invoice may be of, whether it has a counter or not, since a lost counter is to be found
    too. Its guards are read by the request ids of its invoices (2 read units each), so a guard
    whose invoice is gone is found only by the check of all.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
    """
    sizes = sizes or Sizes()
    read = _Whole(sizes) if account is None else _OneAccount(account, sizes)
    with Spool(sizes.run_length) as claims, Spool(sizes.run_length) as requests:
        for item in read.counters():
            _claim_counter(item, claims)
        for page in read.invoices():
            for item in page:
                _claim(item, claims, requests)
            if progress:
                progress(len(page))
        _claim_twins(requests, claims)
        for series, entries in groupby(claims, key=itemgetter(0)):
            report = SeriesCheck(series).run(entries)
            if report:
                yield report


@dataclass(frozen=True)
class _Whole:
    """The items of every series and guard, by a scan."""

    sizes: Sizes

    def counters(self) -> Iterator[Item]:
        for page in self._pages(Counter.table(), _COUNTER_ATTRIBUTES):
            yield from page

    def invoices(self) -> Iterator[list[Item]]:
        return self._pages(InvoiceItem.table(), _INVOICE_ATTRIBUTES)

    def _pages(self, table: str, attributes: tuple[str, ...]) -> Iterator[list[Item]]:
        return scan.pages(
            table, attributes, segments=self.sizes.segments, page_limit=self.sizes.page_limit
        )


@dataclass(frozen=True)
class _OneAccount:
    """The items of one account's series, by their keys."""

    account: str
    sizes: Sizes

    def counters(self) -> Iterator[Item]:
        return (counter for counter in counters_of(self.account).values() if counter)

    def invoices(self) -> Iterator[list[Item]]:
        for year in YEARS:
            for page in self._pages(series_of(self.account, year)):
                yield page
                yield list(self._guards_of(page))

    def _pages(self, series: str) -> Iterator[list[Item]]:
        names = {f"#{number}": name for number, name in enumerate(_INVOICE_ATTRIBUTES)}
        request: dict[str, Any] = {
            "TableName": InvoiceItem.table(),
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

    def _guards_of(self, page: list[Item]) -> Iterator[Item]:
        # Each key once, as a transaction wants: twins have one guard.
        keys = iter(
            {
                request_guard_key(self.account, request_id)
                for request_id in map(_request_id, page)
                if request_id
            }
        )
        while together := list(islice(keys, self.sizes.guards_together)):
            guards = read_together([InvoiceItem(key, 0) for key in together])
            yield from (guard for guard in guards if guard)


def _claim_counter(item: Item, claims: Spool) -> None:
    name = item["counterName"]["S"]
    if name.startswith(SERIES_COUNTER_PREFIX):
        # What is no number, or no text, reads as one that is malformed.
        value = item.get("currentValue", {}).get("N", "none")
        last_date = item.get("lastDate", {"S": ""}).get("S", "none")
        claims.add(name.removeprefix(SERIES_COUNTER_PREFIX), "", COUNTER, value, last_date)


def _claim(item: Item, claims: Spool, requests: Spool) -> None:
    """Keep to which series and number an item of `invoices` belongs, and to which request."""
    key, number = item["series"]["S"], item["number"]["N"]
    if key.startswith(REQUEST_PREFIX):
        named = invoice_of_guard(item)
        if named:
            claims.add(named[0], position(str(named[1])), REQUEST, key)
        else:
            account = key.removeprefix(REQUEST_PREFIX).partition("#")[0]
            claims.add(account, position("none"), REQUEST, key)
        return
    request_id = _request_id(item)
    claims.add(key, position(number), INVOICE, item.get("status", {}).get("S", ""), request_id)
    if request_id and number.isdigit():
        account = key.rpartition("#")[0]
        requests.add(request_guard_key(account, request_id), key, number)


def _claim_twins(requests: Spool, claims: Spool) -> None:
    """Keep of which invoices the request id is on another one of the account, too."""
    for _key, invoices in groupby(requests, key=itemgetter(0)):
        first, is_claimed = next(invoices), False
        while others := list(islice(invoices, PRESENT_TOGETHER - 1)):
            twins = _twins_of(first, others)
            if twins and not is_claimed:
                twins, is_claimed = [first, *twins], True
            for _request, series, number in twins:
                claims.add(series, position(number), TWIN)


def _twins_of(first: list[str], others: list[list[str]]) -> list[list[str]]:
    """Which of `others` carry, at one instant, the request id that `first` carries."""
    keys: list[Model] = [
        InvoiceItem(series, int(number)) for _key, series, number in (first, *others)
    ]
    stored_first, *stored = [_request_id(item or {}) for item in read_together(keys)]
    return [
        other
        for other, request_id in zip(others, stored, strict=True)
        if request_id == stored_first != ""
    ]


def _request_id(item: Item) -> str:
    return str(item.get("requestId", {}).get("S", ""))
