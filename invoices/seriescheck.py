"""One series, from what a scan saw of it: which numbers are missing, and what else is wrong.

A scan is not isolated from transactions, so what it shows is only suspect. The counter, the
suspicious numbers and their guards, read at one instant, decide. And as issuing goes on meanwhile,
the check speaks of the numbers that were given out when it began: the counters were read first, and
whatever was issued since is neither counted nor missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dynamo.findings import Findings
from dynamo.models import Item
from dynamo.transaction import READ_TOGETHER, read_together
from invoices.documents import invoice_of_guard, request_guard_key
from invoices.heads import counted
from invoices.models import InvoiceItem
from sequences.models import SERIES_COUNTER_PREFIX, Counter

# Beside the counter a transaction reads so many numbers: of those that are probably on no invoice
# as many as there may be items, of those on one of up to 400 KB as many as fit into its 4 MB.
ABSENT_TOGETHER = READ_TOGETHER - 1
PRESENT_TOGETHER = 9

# What an entry is, in the order in which those of one number are read. Each is the series, the
# number's position, this, and then:
COUNTER = "counter"  # its value and its date
INVOICE = "invoice"  # status and request id
REQUEST = "request"  # a guard that names it: the guard's key
TWIN = "twin"  # nothing: another invoice has the same request id

_POSITION_DIGITS = 40


def position(number: str) -> str:
    """A number as on the wire, so that the order of texts is that of whole numbers."""
    return number.zfill(_POSITION_DIGITS) if number.isdigit() else f"-{number}"


@dataclass
class SeriesReport:
    """What the check says of a series.

    `last` is the number that its counter had given out when the check began (0 where there is no
    counter, None where it holds no number). `issued` and `voided` count invoices by their status:
    where nothing is wrong, together they are `last`.

    `gaps` are numbers up to `last` on no invoice. `duplicates` are numbers whose invoice shares its
    request id with another invoice of the account: two for one request. (Two invoices of one
    number cannot be: it is their key.) `beyond` are numbers of invoices that the counter has not
    given out. `guards` are keys of request-id guards that name an invoice which is not there or is
    another request's; one that names none at all stands under its account instead of a series.
    """

    series: str
    last: int | None = 0
    issued: int = 0
    voided: int = 0
    gaps: Findings[int] = field(default_factory=Findings)
    duplicates: Findings[int] = field(default_factory=Findings)
    beyond: Findings[int | str] = field(default_factory=Findings)
    guards: Findings[str] = field(default_factory=Findings)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        wrong = self.gaps or self.duplicates or self.beyond or self.guards
        return self.last is not None and not wrong


class SeriesCheck:
    """Takes the entries of one series in their order, and makes the report of them."""

    def __init__(self, series: str) -> None:
        self.report = SeriesReport(series)
        self._account = series.rpartition("#")[0]
        self._has_counter = False
        self._last = 0
        self._expected = 1
        #: The number that is looked at, and the key of the guard that its invoice may have.
        self._at = ""
        self._guard_key: str | None = None
        #: Invoices that may stand beyond the counter, which is not read until there is one.
        self._outside: list[int] = []
        self._last_now: int | None = None

    def run(self, entries: Iterable[list[str]]) -> SeriesReport | None:
        """The report; None where there was nothing yet when the check began."""
        for _series, at, kind, *details in entries:
            if at != self._at:
                self._at, self._guard_key = at, None
            if kind == COUNTER:
                self._take_counter(*details)
            elif kind == INVOICE:
                self._take_invoice(*details)
            elif kind == REQUEST:
                self._take_guard(*details)
            else:
                self.report.duplicates.add(self._number or 0)
        self._suspect_gap(self._last + 1)
        self._confirm_outside()
        counts = self.report.issued + self.report.voided
        return self.report if self._has_counter or counts or not self.report.is_sound else None

    @property
    def _number(self) -> int | None:
        """The number that is looked at; None where it is no whole number from 1 on."""
        return int(self._at) or None if self._at.isdigit() else None

    def _take_counter(self, value: str, last_date: str) -> None:
        self._has_counter = True
        last = _last_of({"currentValue": {"N": value}, "lastDate": {"S": last_date}})
        self.report.last, self._last = last, last or 0

    def _take_invoice(self, status: str, request_id: str) -> None:
        self._guard_key = request_guard_key(self._account, request_id)
        number = self._number
        if number is None:
            # Nothing of ours writes such a number, so there is no transaction to wait for.
            self._count(status)
            self.report.beyond.add(self._at[1:] if self._at.startswith("-") else 0)
        elif number <= self._last:
            self._suspect_gap(number)
            self._expected = number + 1
            self._count(status)
        elif not self._is_issued_since(number):
            self._outside.append(number)
            if len(self._outside) >= PRESENT_TOGETHER:
                self._confirm_outside()

    def _take_guard(self, key: str) -> None:
        if key == self._guard_key:
            return
        number = self._number
        if number is not None and number > self._last and self._is_issued_since(number):
            return
        if self.report.guards.is_full or self._is_wrong(key, number):
            self.report.guards.add(key)

    def _count(self, status: str) -> None:
        if status == "voided":
            self.report.voided += 1
        else:
            self.report.issued += 1

    def _is_issued_since(self, number: int) -> bool:
        """Whether the counter has given the number out by now."""
        if self._last_now is None:
            [counter] = read_together([self._counter])
            self._last_now = _last_of(counter) or 0
        return number <= self._last_now

    @property
    def _counter(self) -> Counter:
        return Counter(f"{SERIES_COUNTER_PREFIX}{self.report.series}")

    def _suspect_gap(self, end: int) -> None:
        """The numbers from the expected one up to below `end` were not seen."""
        first = self._expected
        while first < end and not self.report.gaps.is_full:
            numbers = range(first, min(end, first + ABSENT_TOGETHER))
            last, invoices = self._read(numbers)
            for number in numbers:
                if number in invoices:
                    self._count(_text(invoices[number], "status"))
                elif number <= last:
                    self.report.gaps.add(number)
            first = numbers.stop
        self.report.gaps.more += max(0, end - first)

    def _confirm_outside(self) -> None:
        if self.report.beyond.is_full:
            self.report.beyond.more += len(self._outside)
        elif self._outside:
            last, invoices = self._read(self._outside)
            for number, invoice in invoices.items():
                if number > last:
                    self._count(_text(invoice, "status"))
                    self.report.beyond.add(number)
        self._outside = []

    def _read(self, numbers: Iterable[int]) -> tuple[int, dict[int, Item]]:
        """At one instant: the last number given out, and which of `numbers` is on an invoice."""
        numbers = list(numbers)
        keys = [InvoiceItem(self.report.series, number) for number in numbers]
        counter, *invoices = read_together([self._counter, *keys])
        there = zip(numbers, invoices, strict=True)
        return _last_of(counter) or 0, {number: item for number, item in there if item}

    def _is_wrong(self, key: str, number: int | None) -> bool:
        """Whether the guard names, at one instant, what is not there or is another request's."""
        guard_item = InvoiceItem(key, 0)
        if number is None:
            [guard] = read_together([guard_item])
            named = invoice_of_guard(guard) if guard else None
            return guard is not None and (named is None or named[1] == 0)
        guard, invoice = read_together([guard_item, InvoiceItem(self.report.series, number)])
        if guard is None or invoice_of_guard(guard) != (self.report.series, number):
            return False
        request_id = _text(invoice or {}, "requestId")
        return invoice is None or key != request_guard_key(self._account, request_id)


def _last_of(counter: Item | None) -> int | None:
    """The last number that a counter has given out; None where it holds none."""
    try:
        return counted(counter)[0]
    except ValueError:
        return None


def _text(item: Item, name: str) -> str:
    return str(item.get(name, {}).get("S", ""))
