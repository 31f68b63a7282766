"""Lists of stored invoices: pages of a year, and all of an account."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

from dynamo import DamagedItem
from dynamo.client.bulk import query_pages
from dynamo.runtime.threads import together
from dynamo.transactions import READ_TOGETHER, read_together
from dynamo.wire.types import Item
from invoices.document.fields import YEARS
from invoices.document.invoice import Invoice, label_of, parse_label, series_of
from invoices.exceptions import UnknownInvoice
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.customers import folded
from invoices.store.records import STANDINGS, Record, from_item, standing_of

PAGE_SIZE = 50

#: A list sends at most this many requests, for 800 invoices of a search or 4 MB, and then offers a
#: link to the rest.
MAX_REQUESTS = 5
SEARCH_PAGE_SIZE = 200
#: A search ends after this number of years without an invoice. Few laws require that invoices are
#: kept for longer.
SEARCHED_YEARS = 10


@dataclass(frozen=True)
class Listed:
    """The values of an invoice in lists, and which of `STANDINGS` it has.

    `gross` is in minor units.
    """

    number: int
    issued_at: date
    customer_name: str
    currency: str
    gross: int
    standing: str
    due_date: date | None = None

    @property
    def label(self) -> str:
        return label_of(self.issued_at.year, self.number)

    @property
    def is_voided(self) -> bool:
        return self.standing == "voided"

    def is_about(self, wanted: str, *, exact: bool) -> bool:
        """Whether the customer's name or the number contains `wanted`, which is folded.

        `exact`: whether `wanted` is the whole name.
        """
        name = folded(self.customer_name)
        return name == wanted if exact else wanted in f"{folded(self.label)}\n{name}"


#: The attributes of an invoice, and of its state, that lists read.
_LISTED = (
    "series",
    "number",
    "status",
    "credits",
    "issuedAt",
    "dueDate",
    "customerName",
    "currency",
    "gross",
)
_LISTED_OF_STATE = ("number", "paidOn", "creditedBy")


@dataclass(frozen=True)
class Page:
    """Some invoices, newest first. The next page begins at `before`, None at the end of a year.

    `searched` counts the invoices that were read. `damaged` has the labels (`2026-000042`) of those
    that cannot be shown. `next_year` is the year in which a search continues, None at its end.
    """

    invoices: list[Listed]
    before: int | None
    searched: int
    damaged: list[str]
    requests: int = 0
    next_year: int | None = None


def list_invoices(
    account: str,
    year: int,
    *,
    before: int | None = None,
    customer: str = "",
    exact: bool = False,
    standings: Collection[str] = STANDINGS,
    today: date | None = None,
    limit: int = PAGE_SIZE,
    most_requests: int | None = None,
) -> Page:
    """A page of the account's invoices of `year`, newest first, with numbers below `before`.

    With `customer`, only invoices whose number or customer's name contains it; with `exact`, only
    those whose customer has this name. The comparison ignores case, width and accents. With
    `standings`, only invoices in one of these states. Without `today`, no invoice is overdue. A
    page of a search may be short or empty although more pages follow.

    Costs 2 requests, sent together, and 1 read unit per 4 KB of the listed invoices and of their
    states. A search costs up to `most_requests`, by default `MAX_REQUESTS`: one for the states, the
    others for `SEARCH_PAGE_SIZE` invoices or 1 MB each.
    """
    found: list[Listed] = []
    damaged: list[str] = []
    wanted = folded(customer)
    is_search = bool(wanted) or len(standings) < len(STANDINGS)
    most = (most_requests or MAX_REQUESTS) - 1
    page_size, queries = (SEARCH_PAGE_SIZE, most) if is_search else (limit + 1, 1)
    answers = _answers(InvoiceItem, account, year, before, page_size=page_size, only=_LISTED)
    # The numbers of a series have no gaps, so as many states as invoices are enough. If states of
    # newer invoices are added in the meantime, the page ends where the states do.
    (states, known_from), first = together(
        partial(_states, account, year, before=before, limit=page_size * queries),
        partial(next, answers),
    )
    searched = 0

    def page(before: Decimal | int | None) -> Page:
        at, goes_on = (None, None) if before is None else (math.ceil(before), year)
        return Page(found, at, searched, damaged, 1 + requests, goes_on)

    for requests, (items, has_more) in enumerate(chain([first], answers), 1):
        for item in items:
            number = Decimal(item["number"]["N"])
            if number < known_from:
                return page(known_from)
            try:
                invoice = _listed(item, states.get(number, {}), today)
            except (KeyError, ValueError):
                damaged.append(f"{year}-{item['number']['N'].zfill(6)}")
            else:
                is_wanted = not wanted or invoice.is_about(wanted, exact=exact)
                if is_wanted and invoice.standing in standings:
                    if len(found) == limit:
                        return page(found[-1].number)
                    found.append(invoice)
            searched += 1
        if has_more and requests == most:
            return page(number)
    return page(None)


def search_invoices(
    account: str, year: int, *, before: int | None = None, customer: str = "", **options: Any
) -> Page:
    """Like `list_invoices`, but a search continues in earlier years.

    Costs up to `MAX_REQUESTS` in total. One of them finds which of the last `SEARCHED_YEARS` have
    invoices, for 2 read units each.
    """
    if not options.get("exact"):
        with suppress(UnknownInvoice):
            year, number = parse_label(customer.strip())
            found = list_invoices(account, year, before=number + 1, customer=customer, **options)
            return replace(found, before=None, next_year=None)
    page = list_invoices(account, year, before=before, customer=customer, **options)
    left = MAX_REQUESTS - page.requests - 1
    if page.before is not None:
        return page
    if left < 0:
        return replace(page, next_year=year - 1)
    for earlier in years_of(account, range(max(YEARS[0], year - SEARCHED_YEARS), year)):
        limit = PAGE_SIZE - len(page.invoices)
        # One request reads the states of a year, and another one its invoices.
        if left < 2 or not limit:
            return replace(page, next_year=earlier)
        more = list_invoices(
            account, earlier, customer=customer, limit=limit, most_requests=left, **options
        )
        summed = ("invoices", "searched", "damaged")
        page = replace(more, **{item: getattr(page, item) + getattr(more, item) for item in summed})
        left -= more.requests
        if page.before is not None:
            break
    return page


def latest_invoices(account: str, today: date) -> tuple[list[Listed], date | None]:
    """The newest invoices, of this year and, if these are few, of the last one: up to 100.

    Returns them and a day. From that day on, no invoice is left out. The day is None if all have
    the same day, and others of that day may be left out. Costs 2 requests for each of both years,
    and 1 read unit per 4 KB.
    """
    page = list_invoices(account, today.year, today=today)
    found = page.invoices
    if page.before is None:
        page = list_invoices(account, today.year - 1, today=today)
        found = found + page.invoices
    if page.before is None or not found:
        return found, date(today.year - 1, 1, 1)
    cut = found[-1].issued_at
    return found, cut + timedelta(days=1) if found[0].issued_at > cut else None


def sums_of(invoices: Iterable[Listed]) -> dict[str, int]:
    """The gross amounts in minor units, by currency. Voided invoices do not count."""
    sums: dict[str, int] = {}
    for invoice in invoices:
        if not invoice.is_voided:
            sums[invoice.currency] = sums.get(invoice.currency, 0) + invoice.gross
    return dict(sorted(sums.items()))


def _states(
    account: str, year: int, *, before: int | None, limit: int
) -> tuple[dict[Decimal, Item], Decimal]:
    """The newest states of the year by number, and the number from which on they are complete."""
    answers = _answers(InvoiceState, account, year, before, page_size=limit, only=_LISTED_OF_STATE)
    items, has_more = next(answers)
    states = {Decimal(item["number"]["N"]): item for item in items}
    return states, min(states) if has_more else Decimal(0)


def _listed(item: Item, state: Item, today: date | None) -> Listed:
    """What lists show. Raises KeyError, ValueError."""
    issued_at = date.fromisoformat(item["issuedAt"]["S"])
    if item["series"]["S"].rpartition("#")[2] != str(issued_at.year):
        raise ValueError(f"issued at {issued_at}")
    due_date = date.fromisoformat(item["dueDate"]["S"]) if "dueDate" in item else None
    standing = standing_of(
        due_date,
        today,
        voided=item["status"]["S"] == "voided",
        credit_note="credits" in item,
        credited="creditedBy" in state,
        paid="paidOn" in state,
    )
    number = int(item["number"]["N"])
    gross = int(item["gross"]["N"])
    customer = item["customerName"]["S"]
    currency = item["currency"]["S"]
    return Listed(number, issued_at, customer, currency, gross, standing, due_date)


def all_invoices(
    account: str, year: int, *, oldest_first: bool = False, damaged: list[DamagedItem] | None = None
) -> Iterator[Invoice]:
    """All invoices of the account's year, newest first or `oldest_first`. Memory holds one page.

    Errors of damaged items are appended to `damaged`, if given. Costs 1 request per MB and 1 read
    unit per 4 KB.

    Raises:
        DamagedItem: an item is damaged, and `damaged` is not given.
    """
    for items, _has_more in _answers(InvoiceItem, account, year, oldest_first=oldest_first):
        for item in items:
            try:
                invoice = from_item(item)
            except DamagedItem as error:
                if damaged is None:
                    raise
                damaged.append(error)
            else:
                yield invoice


def all_records(account: str, year: int, today: date | None = None) -> Iterator[Record]:
    """All invoices of the account's year, oldest first, with their states on the day `today`.

    Memory holds one page of both tables. Costs 1 request per MB of each, 1 read unit per 4 KB.

    Raises:
        DamagedItem: an item is damaged.
    """
    answers = _answers(InvoiceState, account, year, oldest_first=True)
    states = (item for items, _has_more in answers for item in items)
    state = next(states, None)
    for invoice in all_invoices(account, year, oldest_first=True):
        while state and Decimal(state["number"]["N"]) < invoice.number:
            state = next(states, None)
        stored = InvoiceState(invoice.series, invoice.number)
        if state and Decimal(state["number"]["N"]) == invoice.number:
            stored = InvoiceState.from_raw_data(state)
        yield Record(invoice, stored, today)


def years_of(account: str, among: range = YEARS) -> list[int]:
    """The years `among` in which the account issued invoices, the latest first.

    Costs 2 read units for each year that is looked at, and 1 request for 25 of them: 6 for all.
    """
    keys = [InvoiceItem.counter_of(series_of(account, year)) for year in among]
    counters: list[Item | None] = []
    for start in range(0, len(keys), READ_TOGETHER):
        counters += read_together([*keys[start : start + READ_TOGETHER]])
    return [year for year, counter in zip(among, counters, strict=True) if counter][::-1]


def states_of(account: str) -> Iterator[Item]:
    """The states of all invoices of the account. Costs a Query for each of `YEARS`."""
    for year in YEARS:
        for items, _has_more in _answers(InvoiceState, account, year):
            yield from items


#: This number is above those of all invoices.
_ABOVE_ALL = 10**16


def _answers(
    model: type[InvoiceItem | InvoiceState],
    account: str,
    year: int,
    before: int | None = None,
    *,
    oldest_first: bool = False,
    page_size: int | None = None,
    only: Sequence[str] = (),
) -> Iterator[tuple[list[Item], bool]]:
    """The items of each answer to the queries for a year, and whether more may follow.

    With `only`, no other attributes are sent.
    """
    request: dict[str, object] = {
        "TableName": model.table(),
        "KeyConditionExpression": "series = :series AND #number < :before",
        "ExpressionAttributeNames": {f"#{name}": name for name in {"number", *only}},
        "ExpressionAttributeValues": {
            ":series": {"S": series_of(account, year)},
            ":before": {"N": str(_ABOVE_ALL if before is None else before)},
        },
        "ScanIndexForward": oldest_first,
    }
    if page_size is not None:
        request["Limit"] = page_size
    if only:
        request["ProjectionExpression"] = ", ".join(f"#{name}" for name in only)
    return query_pages(request)
