"""Reports that read whole tables. A worker stores them, and pages show the last one.

A report is stored by one conditional write after its work is done, so a command that is killed
before leaves the last report as it was. It is JSON of bounded size, because it is one item: it
lists the first `SHOWN` entries of each kind and counts the others. The commands `checkguards` and
`checkinvoices` list all of them.
"""

import collections
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from django.utils.timesince import timesince
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from dynamo import Transaction
from dynamo.exceptions import ErrorWithValues
from dynamo.tables.findings import Progress, scanned
from dynamo.tables.guards import check_guards, is_owner
from dynamo.transactions import read_together
from dynamo.wire.types import Item
from dynamo.wire.values import text_of
from invoices.store.check import check_invoices
from locks.registry import LockView, State, all_locks
from sequences.check import SeriesReport
from sequences.models import Counter, is_counter_of_series
from staff.models import Report
from uploads.models import DONE, UPLOADING, UploadItem

#: Reports are made every day, so an older one means that the command does not run.
OLD_AFTER = timedelta(days=2)

#: A report that is later than now by this much was stored with a wrong clock.
CLOCKS_DIFFER_BY = timedelta(days=1)

Result = dict[str, Any]

SHOWN = 50
#: The most missing numbers that are shown for one series.
SHOWN_NUMBERS = 10
TEXT_MAX_LENGTH = 200

#: The most newest accounts that are listed, by their primary keys.
NEWEST = 50

#: The number of days of which sign-ups are counted, including today. Days are in UTC.
DAYS = 30


class NewerReport(ErrorWithValues):
    """The stored report is newer than the report about `subject`, which was not stored."""

    subject: str

    text = "{subject}: a newer report is already stored, so this one was not stored."


# The work ----------------------------------------------------------------------------------------


def guards(progress: Progress) -> Result:
    """Has the costs and errors of `dynamo.tables.guards.check_guards`. Repairs nothing."""
    report = check_guards(User, oldest_by=User.date_joined.attr_name, progress=progress)
    findings = {}
    for fault, listed in report.found.items():
        found = ({"pk": _cut(pk), "key": _cut(key)} for pk, key, _outcome in listed.listed)
        findings[fault] = _first(found, listed.count)
    pk, attribute = report.unusable_example or ("", "")
    return {
        "users": report.items,
        "guards": report.guards,
        "wrong": report.still_wrong,
        "findings": findings,
        "unusable": report.unusable,
        "unusable_example": {"pk": _cut(pk), "attribute": attribute} if pk else None,
    }


def invoices(progress: Progress) -> Result:
    """Has the costs and errors of `invoices.store.check.check_invoices`."""
    totals = dict.fromkeys(("series", "issued", "voided", "wrong"), 0)
    damaged: list[Result] = []
    for report in check_invoices(progress=progress):
        totals["series"] += 1
        totals["voided"] += report.counts["voided"]
        totals["issued"] += report.items - report.counts["voided"]
        totals["wrong"] += not report.is_sound
        if not report.is_sound and len(damaged) < SHOWN:
            damaged.append(_damage(report))
    return totals | {"damaged": _first(damaged, totals["wrong"])}


def _damage(report: SeriesReport) -> Result:
    return {"series": _cut(report.series), "last": report.last} | {
        name: {
            "shown": [_cut(str(item)) for item in found.listed[:SHOWN_NUMBERS]],
            "more": max(0, found.count - SHOWN_NUMBERS),
        }
        for name, found in report.findings.items()
    }


def statistics(progress: Progress) -> Result:
    """The counts of four tables, which are not read at one instant.

    Costs 1 request per MB and 1 read unit per 4 KB of everything in them.
    Raises Unavailable, Rejected, TableMissing: see `dynamo.client.sending.send`.
    """
    return {
        "accounts": _accounts(progress),
        "counters": _counters(progress),
        "locks": _locks(progress),
        "uploads": _uploads(progress),
    }


def _accounts(progress: Progress) -> Result:
    until = datetime.now(UTC).date()
    days = [(until - timedelta(days=back)).isoformat() for back in range(DAYS)][::-1]
    joined = collections.Counter[str]()
    counts = dict.fromkeys(("all", "inactive", "staff", "confirmed", "present"), 0)
    wanted = ("pk", "joinedAt", "isActive", "isStaff", "emailConfirmedAt", "sessions")

    def counted() -> Iterator[tuple[str, str]]:
        for item in scanned(User.table(), wanted, progress):
            if not is_owner(User, item["pk"]["S"]):
                continue
            counts["all"] += 1
            counts["inactive"] += not item.get("isActive", {}).get("BOOL", True)
            counts["staff"] += item.get("isStaff", {}).get("BOOL", False)
            counts["confirmed"] += "emailConfirmedAt" in item
            # An expired session remains in the map until the next sign-in.
            counts["present"] += bool(item.get("sessions", {}).get("M"))
            joined[text_of(item, "joinedAt")[:10]] += 1
            yield text_of(item, "joinedAt"), text_of(item, "pk")

    newest = heapq.nlargest(NEWEST, counted())
    return counts | {
        "days": [[day, joined[day]] for day in days],
        "newest": [pk for _joined_at, pk in newest],
    }


def _counters(progress: Progress) -> Result:
    """The largest counters. The counters of accounts, one per year, are only summed up."""
    totals = dict.fromkeys(("series", "numbers", "count"), 0)

    def others() -> Iterator[tuple[int, str]]:
        for item in scanned(
            Counter.table(), ("counterName", "currentValue", "firstValue"), progress
        ):
            name = item["counterName"]["S"]
            value = _whole(item, "currentValue")
            if is_counter_of_series(name):
                totals["series"] += 1
                totals["numbers"] += value - (_whole(item, "firstValue") or 1) + 1
            else:
                totals["count"] += 1
                yield value, _cut(name)

    largest = heapq.nlargest(SHOWN, others())
    shown = [{"name": name, "value": value} for value, name in largest]
    return totals | _first(shown, totals["count"])


def _locks(progress: Progress) -> Result:
    """The locks that are held or claimed. Those with the oldest renewal come first."""
    states = collections.Counter[State]()
    always = datetime.max.replace(tzinfo=UTC)

    def taken() -> Iterator[LockView]:
        for lock in all_locks():
            states[lock.state] += 1
            progress("Items read", 1)
            if lock.state is not State.RELEASED:
                yield lock

    def order(lock: LockView) -> tuple[bool, datetime, str]:
        """Leases come before claims, which are never renewed."""
        return lock.state is State.CLAIMED, lock.renewed_at or always, lock.name

    shown = [
        {
            # The name is not shortened, because the link to the page that breaks the lock needs it.
            "name": lock.name,
            "owner": _cut(lock.owner or ""),
            "state": lock.state.value,
            "lease": lock.lease_seconds,
            "fence": lock.fence,
            "renewed_at": lock.renewed_at and lock.renewed_at.isoformat(),
        }
        for lock in heapq.nsmallest(SHOWN, taken(), key=order)
    ]
    counts = {state.value: states[state] for state in State}
    return counts | _first(shown, states[State.HELD] + states[State.CLAIMED])


def _uploads(progress: Progress) -> Result:
    counts = collections.Counter({UPLOADING: 0, DONE: 0})
    sizes_bytes = collections.Counter[str]()
    oldest: Result | None = None
    wanted = ("key", "state", "size", "updatedAt", "lease")
    for item in scanned(UploadItem.table(), wanted, progress):
        state = _cut(text_of(item, "state"))
        at = text_of(item, "updatedAt")
        counts[state] += 1
        sizes_bytes[state] += _whole(item, "size")
        if state == UPLOADING and at and (oldest is None or at < oldest["at"]):
            url = _cut(item["key"]["S"])
            oldest = {"url": url, "at": at, "is_worked_on": "lease" in item}
    return {
        "states": [
            {"state": state, "count": count, "bytes": sizes_bytes[state]}
            for state, count in list(counts.items())[:SHOWN]
        ],
        "oldest_unfinished": oldest,
    }


def _first(things: Iterable[object], count: int) -> Result:
    """The first entries, and the number of the others."""
    shown = list(islice(things, SHOWN))
    return {"shown": shown, "more": count - len(shown)}


def _whole(item: Item, name: str) -> int:
    """A whole number from 0 on; any other value counts as 0."""
    text = str(item.get(name, {}).get("N", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def _cut(text: str) -> str:
    """`text`, or its beginning."""
    return text if len(text) <= TEXT_MAX_LENGTH else f"{text[: TEXT_MAX_LENGTH - 1]}…"


# Kinds -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReportKind:
    """A kind of report, under one name in the command, in the table and in URLs."""

    name: str
    title: object
    work: Callable[[Progress], Result]


_ALL = (
    ReportKind("statistics", _("Statistics"), statistics),
    ReportKind("guards", _("Guard check"), guards),
    ReportKind("invoices", _("Invoice check"), invoices),
)
KINDS = {kind.name: kind for kind in _ALL}


# Stored reports ----------------------------------------------------------------------------------


def make_report(kind: ReportKind, *, by: str, progress: Progress) -> Report:
    """Do the work. `by` says which user and host do it. Has the costs and errors of `kind.work`."""
    started_at = _now()
    result = json.dumps(kind.work(progress), ensure_ascii=False)
    return Report(kind.name, result=result, started_at=started_at, ended_at=_now(), stored_by=by)


def _now() -> str:
    # All times have the same length, because they are compared as texts.
    return datetime.now(UTC).isoformat(timespec="microseconds")


def store(report: Report) -> None:
    """Replace the last report, unless its work started later. Costs 1 request.

    Raises:
        NewerReport: the work of the stored report started later.
    """
    wrong_clock = (datetime.now(UTC) + CLOCKS_DIFFER_BY).isoformat()
    older = (
        Report.started_at.does_not_exist()
        | (Report.started_at < report.started_at)
        | (Report.started_at > wrong_clock)
    )
    with Transaction() as write:
        write.put(report, older, otherwise=NewerReport(str(KINDS[report.kind].title)))


class LastReport:
    """The last report of a kind. If none is stored, `result` is None."""

    def __init__(self, kind: ReportKind, item: Item | None) -> None:
        report = Report.from_raw_data(item or {"kind": {"S": kind.name}})
        self.kind, self.stored_by = kind, report.stored_by or ""
        self.started_at = _time(report.started_at)
        self.ended_at = _time(report.ended_at)
        self.result: Result | None = json.loads(report.result or "null", object_hook=_with_times)

    @property
    def age(self) -> str:
        """The time since it was stored, in words."""
        return timesince(self.ended_at, depth=1) if self.ended_at else "?"

    @property
    def is_old(self) -> bool:
        return self.ended_at is not None and datetime.now(UTC) - self.ended_at > OLD_AFTER

    @property
    def seconds(self) -> float:
        """The duration of the work."""
        return _seconds_between(self.started_at, self.ended_at)

    @property
    def is_wrong(self) -> bool:
        """Whether a check found something."""
        return bool(self.result and (self.result.get("wrong") or self.result.get("unusable")))

    @property
    def newest(self) -> list[str]:
        """The keys of the newest accounts, in statistics."""
        return list(self.result["accounts"]["newest"]) if self.result else []

    @property
    def signups(self) -> dict[str, object]:
        """The sign-ups of a statistics report: by day, the largest number of a day, and the sum."""
        days = self.result["accounts"]["days"] if self.result else []
        counts = [count for _day, count in days]
        return {"days": days, "top": max(counts, default=0), "total": sum(counts)}

    @property
    def locks_shown(self) -> list[Result]:
        """The locks of a statistics report, with the seconds from their renewals to the report."""
        return [
            lock | {"age": _seconds_between(lock["renewed_at"], self.ended_at)}
            for lock in (self.result["locks"]["shown"] if self.result else [])
        ]


def last_reports(*kinds: ReportKind) -> list[LastReport]:
    """Costs 1 request, and 2 read units per 4 KB of each report."""
    items = read_together([Report(kind.name) for kind in kinds])
    return [LastReport(kind, item) for kind, item in zip(kinds, items, strict=True)]


def _with_times(found: Result) -> Result:
    return found | {name: _time(found[name]) for name in ("renewed_at", "at") if name in found}


def _time(text: str | None) -> datetime | None:
    """The time of an ISO text; None if it is not one."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def _seconds_between(first: datetime | None, second: datetime | None) -> float:
    """The result is never negative, although the times may come from different clocks."""
    return max(0.0, (second - first).total_seconds()) if first and second else 0.0
