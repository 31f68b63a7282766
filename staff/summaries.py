"""The contents of the reports: JSON of bounded size, made by reading whole tables.

A report is one item, so it lists the first `SHOWN` things of each kind and counts the others. The
commands `checkguards` and `checkinvoices` list all of them.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from accounts.models import User
from dynamo.extending import FAULTS, Item, Progress, is_owner, scanned, text_of
from invoices.store.check import check_invoices
from locks.extending import LockView, State, all_locks
from sequences.extending import Counter, SeriesReport, is_counter_of_series
from uploads.models import DONE, UPLOADING, UploadItem

Result = dict[str, Any]

SHOWN = 50
#: For the numbers that one series lacks.
SHOWN_NUMBERS = 10
TEXT_MAX_LENGTH = 200

#: How many of the newest accounts are listed, by their primary keys.
NEWEST = 50

#: How many days of sign-ups are counted, including today; days in UTC.
DAYS = 30


def guards(progress: Progress) -> Result:
    """Costs and raises as `dynamo.extending.check_guards`; repairs nothing."""
    from dynamo.extending import check_guards

    with check_guards(User, oldest_by=User.date_joined.attr_name, progress=progress) as report:
        findings = {}
        for fault in FAULTS:
            found = ({"pk": _cut(pk), "key": _cut(key)} for pk, key, _ in report.findings(fault))
            findings[fault] = _first(found, report.count(fault))
        pk, attribute = report.unusable_example or ("", "")
        return {
            "users": report.users,
            "guards": report.guards,
            "wrong": report.still_wrong,
            "findings": findings,
            "unusable": report.unusable,
            "unusable_example": {"pk": _cut(pk), "attribute": attribute} if pk else None,
        }


def invoices(progress: Progress) -> Result:
    """Costs and raises as `invoices.store.check.check_invoices`."""
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
            "shown": [_cut(str(each)) for each in found.listed[:SHOWN_NUMBERS]],
            "more": max(0, found.count - SHOWN_NUMBERS),
        }
        for name, found in report.findings.items()
    }


def statistics(progress: Progress) -> Result:
    """What four tables hold, as read (not at one instant).

    Costs 1 request per MB and 1 read unit per 4 KB of everything in them.
    Raises Unavailable, Rejected, TableMissing: see `dynamo.extending.send`.
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
            # An expired session stays in the map until the next sign-in.
            counts["present"] += bool(item.get("sessions", {}).get("M"))
            joined[text_of(item, "joinedAt")[:10]] += 1
            yield text_of(item, "joinedAt"), text_of(item, "pk")

    newest = heapq.nlargest(NEWEST, counted())
    return counts | {
        "days": [[day, joined[day]] for day in days],
        "newest": [pk for _joined_at, pk in newest],
    }


def _counters(progress: Progress) -> Result:
    """The largest counters. Those of series are only summed up: each account has one per year."""
    totals = dict.fromkeys(("series", "numbers", "count"), 0)

    def others() -> Iterator[tuple[int, str]]:
        for item in scanned(Counter.table(), ("counterName", "currentValue"), progress):
            name, value = item["counterName"]["S"], _whole(item, "currentValue")
            if is_counter_of_series(name):
                totals["series"] += 1
                totals["numbers"] += value
            else:
                totals["count"] += 1
                yield value, _cut(name)

    largest = heapq.nlargest(SHOWN, others())
    shown = [{"name": name, "value": value} for value, name in largest]
    return totals | _first(shown, totals["count"])


def _locks(progress: Progress) -> Result:
    """The locks that are held or claimed, the longest without renewal first."""
    states, always = collections.Counter[State](), datetime.max.replace(tzinfo=UTC)

    def taken() -> Iterator[LockView]:
        for lock in all_locks():
            states[lock.state] += 1
            progress("Items read", 1)
            if lock.state is not State.RELEASED:
                yield lock

    def order(lock: LockView) -> Any:
        """Leases before claims, which are never renewed."""
        return lock.state is State.CLAIMED, lock.renewed_at or always, lock.name

    shown = [
        {
            # Not cut: the page that breaks the lock is requested by its name.
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
    counts, sizes_bytes = collections.Counter({UPLOADING: 0, DONE: 0}), collections.Counter[str]()
    oldest: Result | None = None
    wanted = ("key", "state", "size", "updatedAt", "lease")
    for item in scanned(UploadItem.table(), wanted, progress):
        state, at = _cut(text_of(item, "state")), text_of(item, "updatedAt")
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


def _first(things: Iterable[Any], count: int) -> Result:
    """The first of `count` things, and how many there are besides."""
    shown = list(islice(things, SHOWN))
    return {"shown": shown, "more": count - len(shown)}


def _whole(item: Item, name: str) -> int:
    """A whole number from 0 on; any other value counts as 0."""
    text = str(item.get(name, {}).get("N", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def _cut(text: str) -> str:
    """`text`, or its beginning."""
    return text if len(text) <= TEXT_MAX_LENGTH else f"{text[: TEXT_MAX_LENGTH - 1]}…"
