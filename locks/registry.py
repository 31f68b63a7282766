"""All locks there are, and the end of one that its holder does not give back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from dynamo import bulk
from dynamo.exceptions import DamagedItem, Unavailable
from dynamo.models import Item
from dynamo.transactions import Transaction
from locks import records
from locks.exceptions import LockChanged, UnknownLock
from locks.models import RELEASED, LockItem
from locks.watching import lease_seconds_of

#: A live holder renews between our look and our write at most now and then.
BREAK_ATTEMPTS = 5

_SHOWN = [
    "key",
    "ownerName",
    "leaseDuration",
    "recordVersionNumber",
    "isReleased",
    "fencingToken",
    "renewedAt",
]


class State(Enum):
    """Who may have a lock. One that is held may be a dead holder's: only watching it tells."""

    HELD = "held"
    RELEASED = "released"
    CLAIMED = "claimed"


@dataclass(frozen=True)
class LockView:
    """A lock as it was stored. What is not there, or not of its type, is None.

    `claim` is the record version of a claim, which nobody renews; None for a lease.
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
        """What is the same in two views of one holder's one lease, or of one claim."""
        return self.owner, self.fence, self.state, self.claim

    def age_seconds(self, at: datetime) -> float | None:
        """How long ago the holder renewed, by its clock and the one of `at`."""
        return None if self.renewed_at is None else (at - self.renewed_at).total_seconds()

    def is_silent(self, at: datetime) -> bool:
        """Whether nobody renewed it for a whole lease, by the holder's clock and the one of `at`.

        So a holder that lives can be silent, where clocks differ. What does not tell is silent.
        """
        age = self.age_seconds(at)
        return age is None or self.lease_seconds is None or age > self.lease_seconds

    def is_same_holding(self, other: LockView) -> bool:
        """Whether both show the same holder's same lease.

        A process that breaks its claim and claims again has another one. Two leases of one client
        for Java are the same where it writes no fencing token.
        """
        return self.holding == other.holding


class Broken(Enum):
    """What became of a lock that was to be broken."""

    FREED = "a lease was given free"
    DELETED = "a claim was deleted"
    FREE_BEFORE = "nobody held it"


def all_locks() -> Iterator[LockView]:
    """Every lock, in no order, as it is read: a few pages of 1 MB are in memory at a time.

    Costs 1 request per MB and 1 read unit per 4 KB of all that is stored.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
    """
    for page in bulk.pages(LockItem.table(), _SHOWN):
        yield from map(view_of, page)


def look(name: str) -> LockView:
    """One lock. Costs 1 request, 1 read unit.

    Raises:
        BadLockName: no lock can have this name.
        UnknownLock: there is none of this name.
    """
    return view_of(_read(records.checked_name(name)))


def break_lock(
    name: str, *, as_seen: LockView | None = None, write: Transaction | None = None
) -> Broken:
    """Take the lock from its holder, dead or alive, or delete a claim.

    A lease is given free under a new record version: the holder's next renewal is refused, and so
    is every transaction that its lease is held in. The fencing token stays, so the next holder's
    is higher. Until the next renewal the holder does not know it: break a live holder's lock only
    if what it protects compares fencing tokens. With `as_seen`, only that holder's lease is broken.
    Costs 2 requests, 1 read and 1 write unit; the same again if the holder renewed just then.

    Raises:
        BadLockName: no lock can have this name.
        UnknownLock: there is none of this name.
        LockChanged: another one than in `as_seen` holds it; from a commit of `write` also: the
            holder renewed just then.
        Unavailable: no answer.
    """
    records.checked_name(name)
    broken: LockView | None = None
    for _attempt in range(BREAK_ATTEMPTS):
        item = _read(name)
        view = view_of(item)
        if broken is not None and not view.is_same_holding(broken):
            # Over already: by our request whose reply was lost, or by itself.
            return _result_for(broken)
        if as_seen is not None and not view.is_same_holding(as_seen):
            raise LockChanged(name)
        if view.state is State.RELEASED:
            return Broken.FREE_BEFORE
        broken = view
        end = records.delete if view.state is State.CLAIMED else records.free
        try:
            end(name, item, write=write)
        except LockChanged:
            continue
        return _result_for(view)
    raise Unavailable("UpdateItem", "the lock changed each time")


def _result_for(broken: LockView) -> Broken:
    return Broken.DELETED if broken.state is State.CLAIMED else Broken.FREED


def _read(name: str) -> Item:
    item = records.read_raw(name)
    if item is None:
        raise UnknownLock(name)
    return item


def view_of(item: Item) -> LockView:
    """A lock's item as on the wire, however damaged. Costs no request."""
    state = State.HELD
    if _text(item, "isReleased") == RELEASED:
        state = State.RELEASED
    elif "leaseDuration" not in item:
        state = State.CLAIMED
    return LockView(
        name=item["key"]["S"],
        owner=_text(item, "ownerName"),
        state=state,
        lease_seconds=_lease_seconds(item),
        fence=_whole_number(item.get("fencingToken", {}).get("N")),
        renewed_at=_time(_text(item, "renewedAt")),
        claim=_text(item, "recordVersionNumber") if state is State.CLAIMED else None,
    )


def _text(item: Item, attribute: str) -> str | None:
    return item.get(attribute, {}).get("S")


def _lease_seconds(item: Item) -> float | None:
    text = _text(item, "leaseDuration")
    if text is None:
        return None
    try:
        return lease_seconds_of(LockItem(item["key"]["S"], lease_milliseconds=text))
    except DamagedItem:
        return None


def _whole_number(text: Any) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _time(text: str | None) -> datetime | None:
    try:
        read = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return read if read is None or read.tzinfo else read.replace(tzinfo=UTC)
