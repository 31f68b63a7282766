"""List locks, and break one that its holder does not release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from dynamo._internal import bulk
from dynamo._internal.items import Item
from dynamo.exceptions import DamagedItem, Unavailable
from dynamo.transactions import Transaction
from locks._internal import requests
from locks._internal.holders import lease_seconds_of
from locks.exceptions import LockChanged, UnknownLock
from locks.models import RELEASED, LockItem

Value = TypeVar("Value")

#: A running holder rarely renews between our read and our write.
BREAK_ATTEMPTS = 5

#: All attributes but `data`, which may be large.
_SHOWN = (
    *("key", "ownerName", "leaseDuration", "recordVersionNumber"),
    *("isReleased", "fencingToken", "renewedAt"),
)


class State(Enum):
    """The state of a lock. The holder of a held lock may have crashed; only watching it tells."""

    HELD = "held"
    RELEASED = "released"
    CLAIMED = "claimed"


@dataclass(frozen=True)
class LockView:
    """A lock as it is stored. Attributes that are missing or have another type are None.

    `claim` is the record version of a claim, which never changes; None for a lease.
    """

    name: str
    owner: str | None
    state: State
    lease_seconds: float | None
    fence: int | None
    renewed_at: datetime | None
    claim: str | None = None

    @property
    def holding(self) -> tuple[Any, ...]:
        """What all views of one lease, or of one claim, have in common."""
        return self.owner, self.fence, self.state, self.claim

    def age_seconds(self, at: datetime) -> float | None:
        """How long before `at` the holder renewed, by the holder's clock."""
        return None if self.renewed_at is None else (at - self.renewed_at).total_seconds()

    def is_silent(self, at: datetime) -> bool:
        """Whether it was not renewed for a whole lease before `at`, by the holder's clock.

        If clocks differ, a running holder may seem silent. A lock without a lease or a time of
        renewal counts as silent.
        """
        age = self.age_seconds(at)
        return age is None or self.lease_seconds is None or age > self.lease_seconds

    def is_same_holding(self, other: LockView) -> bool:
        """Whether both views show the same lease of the same holder, or the same claim.

        Two leases of one holder cannot be told apart if it is a Java client, which writes no token.
        """
        return self.holding == other.holding


def all_locks() -> Iterator[LockView]:
    """Yield every lock, in no order, with a few pages of 1 MB in memory at a time.

    Costs 1 request per MB and 1 read unit per 4 KB of everything stored.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`.
    """
    for page in bulk.pages(LockItem.table(), _SHOWN):
        yield from map(view_of, page)


def look(name: str) -> LockView:
    """Read one lock. Costs 1 request, 1 read unit.

    Raises:
        BadLockName: a lock cannot have this name.
        UnknownLock: there is no lock with this name.
    """
    return view_of(_read(requests.checked_name(name)))


def break_lock(
    name: str, *, as_seen: LockView | None = None, write: Transaction | None = None
) -> State:
    """Release a lock for its holder, or delete a claim; return the state that it had until then.

    From then on the holder's renewals are refused, and so are transactions with `Lease.hold_in`.
    The holder learns it at its next renewal, so if it still runs, break its lock only if the system
    that the lock protects compares fencing tokens. The stored token stays, so the next holder's is
    higher. With `as_seen`, the lock is broken only if it still has the holder that was seen.

    Costs 2 requests, 1 read and 1 write unit; the same again if the holder renewed in between.

    Raises:
        BadLockName: a lock cannot have this name.
        UnknownLock: there is no lock with this name.
        LockChanged: it has another holder than `as_seen`. From a commit of `write` also: the holder
            renewed in between.
        Unavailable: no answer.
    """
    requests.checked_name(name)
    sent: LockView | None = None
    for _attempt in range(BREAK_ATTEMPTS):
        item = _read(name)
        view = view_of(item)
        if sent is not None and not view.is_same_holding(sent):
            # That holder is gone. Our request, whose reply was lost, may have done it.
            return sent.state
        if as_seen is not None and not view.is_same_holding(as_seen):
            raise LockChanged(name)
        if view.state is State.RELEASED:
            return State.RELEASED
        sent = view
        with suppress(LockChanged):
            requests.break_seen(name, item, delete=view.state is State.CLAIMED, write=write)
            return view.state
    raise Unavailable("UpdateItem", "the lock changed each time")


def _read(name: str) -> Item:
    item = requests.read_raw(name)
    if item is None:
        raise UnknownLock(name)
    return item


def view_of(item: Item) -> LockView:
    """The view of an item as on the wire, even if it is damaged. Costs no request."""
    state = State.HELD
    if _text(item, "isReleased") == RELEASED:
        state = State.RELEASED
    elif "leaseDuration" not in item:
        state = State.CLAIMED
    name, version = item["key"]["S"], _text(item, "recordVersionNumber")
    return LockView(
        name=name,
        owner=_text(item, "ownerName"),
        state=state,
        lease_seconds=_read_as(partial(_lease_seconds, name), _text(item, "leaseDuration")),
        fence=_read_as(int, item.get("fencingToken", {}).get("N")),
        renewed_at=_read_as(_time, _text(item, "renewedAt")),
        claim=version if state is State.CLAIMED else None,
    )


def _text(item: Item, attribute: str) -> str | None:
    return item.get(attribute, {}).get("S")


def _read_as(kind: Callable[[str], Value], text: str | None) -> Value | None:
    """What the text stands for; None without one, or if it does not stand for such a value."""
    try:
        return None if text is None else kind(text)
    except (DamagedItem, ValueError):
        return None


def _lease_seconds(name: str, text: str) -> float:
    return lease_seconds_of(LockItem(name, lease_milliseconds=text))


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
