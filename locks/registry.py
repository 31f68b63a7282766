"""Operations of other processes than the holder: watching, reading and breaking locks.

A process finds out that a holder is gone without comparing the clocks of two machines: each renewal
gives a lock a new record version. A process that has seen the same version for the holder's whole
lease, on its own clock, knows that the holder did not renew in that time.

Source: "Building Distributed Locks with the DynamoDB Lock Client", AWS Database Blog, 2017.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import TypeVar

from dynamo import DamagedItem, Transaction, Unavailable
from dynamo.client import bulk
from dynamo.wire.types import Item
from locks import requests
from locks.exceptions import LockChanged, UnknownLock
from locks.models import RELEASED, LockItem

Value = TypeVar("Value")

#: A stored lease that is longer (about 30 years) counts as damaged.
LONGEST_LEASE_SECONDS = 1_000_000_000

#: If its holder renewed in between, which is rare, a lock is read and broken this many times.
BREAK_ATTEMPTS = 5

#: All attributes but `data`, which may be large.
_SHOWN = tuple(
    str(attribute.attr_name)
    for name, attribute in LockItem.get_attributes().items()
    if name != "data"
)


def lease_seconds_of(stored: LockItem) -> float:
    """The duration of a lock's lease; infinity for a claim.

    Raises:
        DamagedItem: it is not a whole number of milliseconds.
    """
    text: str | None = stored.lease_milliseconds
    if text is None:
        return math.inf
    # The text may have any length. It is not parsed if it is longer than that of the longest lease.
    if not (text.isascii() and text.isdigit() and len(text) <= 13):
        raise DamagedItem(LockItem.table(), stored.name, "leaseDuration", repr(text[:40]))
    return int(text) / 1000


class Watch:
    """Watches one lock by its record version until its holder is certainly gone."""

    def __init__(self) -> None:
        self._seen: LockItem | None = None
        #: Whether the holder changed or renewed its lease between two looks.
        self.has_renewed = False
        #: The time when the whole lease of the holder has been watched, on `dynamo.runtime.clock`.
        #: Infinity before the first look, and for a claim.
        self.ends_at = math.inf

    def saw_whole_lease(self, stored: LockItem, at: float) -> bool:
        """Note the lock as last read; return whether its holder did not renew for a whole lease.

        `stored` is from a consistent read whose reply had arrived by `at`. A new record version
        starts the watch again. If this returns True, take or delete the lock by a write with the
        condition that it is still as `stored`.

        Raises:
            DamagedItem: the lease is not a whole number of milliseconds.
        """
        if self._seen is None or stored.version != self._seen.version:
            self.has_renewed = self._seen is not None
            self.ends_at = at + lease_seconds_of(stored)
            self._seen = stored
        return at >= self.ends_at


class State(Enum):
    """The state of a lock.

    The holder of a held lock may have crashed, which only watching shows.
    """

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
    def holding(self) -> tuple[object, ...]:
        """A value that is the same in all views of one lease of one holder, or of one claim.

        Two leases of one holder cannot be told apart if it is a Java client, which writes no token.
        """
        return self.owner, self.fence, self.state, self.claim

    def age_seconds(self, at: datetime) -> float | None:
        """The time between the last renewal and `at`, by the holder's clock."""
        return None if self.renewed_at is None else (at - self.renewed_at).total_seconds()

    def is_silent(self, at: datetime) -> bool:
        """Whether it was not renewed for a whole lease before `at`, by the holder's clock.

        If clocks differ, a running holder may seem silent. A lock without a lease or a time of
        renewal counts as silent.
        """
        age = self.age_seconds(at)
        return age is None or self.lease_seconds is None or age > self.lease_seconds


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
    return view_of(_read(name))


def break_lock(
    name: str, *, as_seen: LockView | None = None, write: Transaction | None = None
) -> State:
    """Release a lock for its holder, or delete a claim; return the state that it had until then.

    From then on the holder's renewals are refused, and so are transactions with `Lease.hold_in`.
    The holder notices this at its next renewal. If it still runs, break its lock only if the system
    that the lock protects compares fencing tokens. The stored token is kept, and the next holder
    gets a higher one. With `as_seen`, the lock is broken only if it still has the holder that was
    seen.

    Costs 2 requests, 1 read and 1 write unit; the same again if the holder renewed in between.

    Raises:
        BadLockName: a lock cannot have this name.
        UnknownLock: there is no lock with this name.
        LockChanged: it has another holder than `as_seen`. From a commit of `write` also: the holder
            renewed in between.
        Unavailable: no answer.
    """
    sent: LockView | None = None
    for _attempt in range(BREAK_ATTEMPTS):
        item = _read(name)
        view = view_of(item)
        if sent is not None and view.holding != sent.holding:
            # That holder no longer has the lock. Our request, whose reply was lost, may have
            # broken it.
            return sent.state
        if as_seen is not None and view.holding != as_seen.holding:
            raise LockChanged(name)
        if view.state is State.RELEASED:
            return State.RELEASED
        sent = view
        with suppress(LockChanged):
            requests.break_seen(name, item, delete=view.state is State.CLAIMED, write=write)
            return view.state
    raise Unavailable("UpdateItem", "the lock changed each time")


def _read(name: str) -> Item:
    item = requests.read_raw(requests.checked_name(name))
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
    name = item["key"]["S"]
    version = _text(item, "recordVersionNumber")
    return LockView(
        name=name,
        owner=_text(item, "ownerName"),
        state=state,
        lease_seconds=_read_as(
            lambda text: lease_seconds_of(LockItem(name, lease_milliseconds=text)),
            _text(item, "leaseDuration"),
        ),
        fence=_read_as(int, item.get("fencingToken", {}).get("N")),
        renewed_at=_read_as(_time, _text(item, "renewedAt")),
        claim=version if state is State.CLAIMED else None,
    )


def _text(item: Item, attribute: str) -> str | None:
    return item.get(attribute, {}).get("S")


def _read_as(kind: Callable[[str], Value], text: str | None) -> Value | None:
    """The value that the text represents; None without a text, or if `kind` refuses it."""
    try:
        return None if text is None else kind(text)
    except (DamagedItem, ValueError):
        return None


def _time(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
