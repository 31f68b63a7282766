"""How many accounts, sign-ups, counters, locks and uploads there are."""

from __future__ import annotations

import heapq
from collections import Counter as Tally
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from accounts.models import User
from dynamo import bulk
from dynamo.models import Item
from dynamo.unique.snapshots import is_user_key
from locks.registry import LockView, State, all_locks
from sequences.models import Counter, is_counter_of_series
from staff.summaries import SHOWN, Progress, Result, cut
from uploads.models import DONE, UPLOADING, UploadItem

#: How many days of sign-ups are counted, including today; days in UTC.
DAYS = 30


def statistics(progress: Progress) -> Result:
    """What the four tables hold, as read (not at one instant), in bounded memory.

    Costs 1 request per MB and 1 read unit per 4 KB of everything in them.
    Raises Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
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
    joined, counts = Tally[str](), Tally[str]()
    for page in bulk.pages(
        User.table(), ("pk", "joinedAt", "isActive", "isStaff", "emailConfirmedAt", "sessions")
    ):
        for item in page:
            if is_user_key(item["pk"]["S"]):
                joined[_text(item, "joinedAt")[:10]] += 1
                counts["all"] += 1
                counts["inactive"] += not item.get("isActive", {}).get("BOOL", True)
                counts["staff"] += item.get("isStaff", {}).get("BOOL", False)
                counts["confirmed"] += "emailConfirmedAt" in item
                # An expired session stays in the map until the next sign-in.
                counts["present"] += bool(item.get("sessions", {}).get("M"))
        progress(len(page))
    return {
        **{name: counts[name] for name in ("all", "inactive", "staff", "confirmed", "present")},
        "days": [[day, joined[day]] for day in days],
    }


def _counters(progress: Progress) -> Result:
    """The largest counters. Those of series are only summed up: each account has one per year."""
    series = numbers = count = 0
    largest: list[tuple[int, str]] = []
    for page in bulk.pages(Counter.table(), ("counterName", "currentValue")):
        for item in page:
            name, value = item["counterName"]["S"], _whole(item, "currentValue")
            if is_counter_of_series(name):
                series, numbers = series + 1, numbers + value
            else:
                count += 1
                heapq.heappush(largest, (value, cut(name)))
                if len(largest) > SHOWN:
                    heapq.heappop(largest)
        progress(len(page))
    shown = [{"name": name, "value": value} for value, name in sorted(largest, reverse=True)]
    return {
        "series": series,
        "numbers": numbers,
        "count": count,
        "shown": shown,
        "more": count - len(shown),
    }


def _locks(progress: Progress) -> Result:
    """The locks that are held or claimed, the longest without renewal first."""
    states = Tally[str]()
    taken: list[LockView] = []
    for lock in all_locks():
        states[lock.state.value] += 1
        if lock.state is not State.RELEASED:
            taken.append(lock)
        if len(taken) > 2 * SHOWN:
            taken = _longest_silent(taken)
        progress(1)
    shown = _longest_silent(taken)
    return {
        **{state.value: states[state.value] for state in State},
        "shown": [_lock(each) for each in shown],
        "more": states["held"] + states["claimed"] - len(shown),
    }


def _longest_silent(locks: list[LockView]) -> list[LockView]:
    """Leases before claims, which are never renewed."""
    always = datetime.max.replace(tzinfo=UTC)
    return sorted(
        locks, key=lambda lock: (lock.state is State.CLAIMED, lock.renewed_at or always, lock.name)
    )[:SHOWN]


def _lock(lock: LockView) -> Result:
    return {
        # Not cut: it is the address of the page that breaks the lock.
        "name": lock.name,
        "owner": cut(lock.owner or ""),
        "state": lock.state.value,
        "lease": lock.lease_seconds,
        "fence": lock.fence,
        "renewed_at": lock.renewed_at and lock.renewed_at.isoformat(),
    }


@dataclass
class _State:
    count: int = 0
    size_bytes: int = 0
    oldest: dict[str, Any] | None = None


def _uploads(progress: Progress) -> Result:
    states = {UPLOADING: _State(), DONE: _State()}
    for page in bulk.pages(UploadItem.table(), ("key", "state", "size", "updatedAt", "lease")):
        for item in page:
            state = states.setdefault(cut(_text(item, "state")), _State())
            state.count += 1
            state.size_bytes += _whole(item, "size")
            at = _text(item, "updatedAt")
            if at and (state.oldest is None or at < state.oldest["at"]):
                url = cut(item["key"]["S"])
                state.oldest = {"url": url, "at": at, "is_worked_on": "lease" in item}
        progress(len(page))
    return {
        "states": [
            {"state": state, "count": each.count, "bytes": each.size_bytes}
            for state, each in list(states.items())[:SHOWN]
        ],
        "oldest_unfinished": states[UPLOADING].oldest,
    }


def _text(item: Item, name: str) -> str:
    return str(item.get(name, {}).get("S", ""))


def _whole(item: Item, name: str) -> int:
    """A whole number from 0 on; any other value counts as 0."""
    text = str(item.get(name, {}).get("N", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
