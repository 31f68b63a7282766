"""The survey: accounts, counters, locks and uploads at a glance, from a scan of their tables.

No page may scan, so a run does it, and pages show what it found and when.
"""

from __future__ import annotations

import heapq
from collections import Counter as Tally
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from accounts.models import User
from dynamo import scan
from dynamo.guardstate import is_user_key
from dynamo.models import Item
from locks.registry import LockView, State, all_locks
from sequences.models import Counter, is_counter_of_series
from staff.checks import SHOWN, Progress, Result, cut
from uploads.models import DONE, UPLOADING, UploadItem

#: How many days of sign-ups are shown, today included; days are those of UTC.
DAYS = 30


def survey(progress: Progress) -> Result:
    """What stands in the tables, in bounded memory; as read, not at one instant.

    Costs 1 request per MB and 1 read unit per 4 KB of all that is stored in the four tables.
    Raises Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
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
    for page in scan.pages(
        User.table(), ("pk", "joinedAt", "isActive", "isStaff", "emailConfirmedAt", "sessions")
    ):
        for item in page:
            if is_user_key(item["pk"]["S"]):
                joined[_text(item, "joinedAt")[:10]] += 1
                counts.update(_traits(item))
        progress(len(page))
    return {
        **{trait: counts[trait] for trait in ("all", "inactive", "staff", "confirmed", "present")},
        "days": [[day, joined[day]] for day in days],
    }


def _traits(item: Item) -> list[str]:
    active = item.get("isActive", {}).get("BOOL", True)
    traits = {
        "all": True,
        "inactive": not active,
        "staff": item.get("isStaff", {}).get("BOOL", False),
        "confirmed": "emailConfirmedAt" in item,
        # A session that has lapsed stays in the map until the next sign-in.
        "present": bool(item.get("sessions", {}).get("M")),
    }
    return [trait for trait, is_so in traits.items() if is_so]


def _counters(progress: Progress) -> Result:
    """Series apart: there is one for each account and year, so only their sum says anything."""
    series = numbers = count = 0
    largest: list[tuple[int, str]] = []
    for page in scan.pages(Counter.table(), ("counterName", "currentValue")):
        for item in page:
            name, value = item["counterName"]["S"], _whole(item, "currentValue")
            if is_counter_of_series(name):
                series, numbers = series + 1, numbers + value
            else:
                count += 1
                _keep(largest, (value, cut(name)))
        progress(len(page))
    shown = [{"name": name, "value": value} for value, name in sorted(largest, reverse=True)]
    return {
        "series": series,
        "numbers": numbers,
        "count": count,
        "shown": shown,
        "more": count - len(shown),
    }


def _keep(largest: list[tuple[int, str]], counter: tuple[int, str]) -> None:
    if len(largest) < SHOWN:
        heapq.heappush(largest, counter)
    else:
        heapq.heappushpop(largest, counter)


def _locks(progress: Progress) -> Result:
    """Those that somebody has are shown, whoever renewed longest ago first."""
    states = Tally[str]()
    taken: list[LockView] = []
    for number, lock in enumerate(all_locks(), 1):
        states[lock.state.value] += 1
        if lock.state is not State.RELEASED:
            taken.append(lock)
        if len(taken) > 2 * SHOWN:
            taken = _longest_silent(taken)
        if number % 100 == 0:
            progress(100)
    shown = _longest_silent(taken)
    held = states["held"] + states["claimed"]
    return {
        **{state.value: states[state.value] for state in State},
        "shown": [_lock(each) for each in shown],
        "more": held - len(shown),
    }


def _longest_silent(locks: list[LockView]) -> list[LockView]:
    """Leases first, as a claim is never renewed."""
    always = datetime.max.replace(tzinfo=UTC)
    return sorted(
        locks, key=lambda lock: (lock.state is State.CLAIMED, lock.renewed_at or always, lock.name)
    )[:SHOWN]


def _lock(lock: LockView) -> Result:
    return {
        # Whole: it leads to the page that breaks the lock.
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
    oldest: dict[str, Any] | None = field(default=None)


def _uploads(progress: Progress) -> Result:
    states = {UPLOADING: _State(), DONE: _State()}
    for page in scan.pages(UploadItem.table(), ("key", "state", "size", "updatedAt", "lease")):
        for item in page:
            state = states.setdefault(cut(_text(item, "state")), _State())
            state.count += 1
            state.size_bytes += _whole(item, "size")
            at = _text(item, "updatedAt")
            if at and (state.oldest is None or at < state.oldest["at"]):
                state.oldest = {
                    "url": cut(item["key"]["S"]),
                    "at": at,
                    "is_worked_on": "lease" in item,
                }
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
    """A whole number from 0 on; what was stored as anything else counts nothing."""
    text = str(item.get(name, {}).get("N", ""))
    return int(text) if text.isascii() and text.isdigit() else 0
