"""Checks the holders of locks, and the writes that the protected resource has accepted.

A holder notes its fencing token, and each time before it checked that it still held the lock. It
held the lock from the first to the last of these times. (Not from the answer on: it may have been
frozen since, for longer than its lease.)

holders   a lock has no two holders at one time.
fences    no two holders have the same fencing token; a later holder's is higher.
resource  accepted no lower fencing token after a higher one. Each number that was written is one
          more than the previous one, so no holder overwrote another's. No accepted write is lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call


class Served(NamedTuple):
    """One write that the resource accepted."""

    fence: int
    number: int


class Hold(NamedTuple):
    """How long a call certainly held its lock, and its fencing token."""

    since: float
    until: float
    fence: int
    call: Call


def check(calls: Sequence[Call], served: Mapping[str, Sequence[Served]]) -> list[Finding]:
    """Find broken rules; `served` are the accepted writes of each lock's resource, in order."""
    holds = [call for call in calls if call.do == "hold"]
    return [
        finding
        for lock in sorted({call.asked["lock"] for call in holds} | served.keys())
        for finding in _check_lock(
            lock, [call for call in holds if call.asked["lock"] == lock], served.get(lock, ())
        )
    ]


def _check_lock(lock: str, calls: Sequence[Call], served: Sequence[Served]) -> Iterator[Finding]:
    fences: dict[int, Call] = {}
    holds: list[Hold] = []
    for call in calls:
        for fence in _noted(call, "fence"):
            if fence in fences:
                yield of_calls("fences", f"{lock}: two have {fence}", [fences[fence], call])
            fences[fence] = call
            # A call that never checked that it held the lock may not have held it.
            if looks := [at for at, note in call.notes if "looked" in note]:
                holds.append(Hold(min(looks), max(looks), fence, call))
    last: Hold | None = None
    for hold in sorted(holds):
        if last is not None and hold.since < last.until:
            yield of_calls("holders", f"{lock} had two at once", [last.call, hold.call])
        elif last is not None and hold.fence <= last.fence:
            about = f"{lock}: {hold.fence} after {last.fence}"
            yield of_calls("fences", about, [last.call, hold.call])
        if last is None or hold.until > last.until:
            last = hold
    for before, after in pairwise([Served(0, 0), *served]):
        if after.fence < before.fence:
            yield Finding("resource", f"{lock}: served {after} after {before}")
        if after.number != before.number + 1:
            yield Finding("resource", f"{lock}: {after} was written over {before}")
        if after.fence not in fences:
            yield Finding("resource", f"{lock}: {after.fence} has no holder")
    kept = set(served)
    for call in calls:
        for wrote in _noted(call, "wrote"):
            if Served(*wrote) not in kept:
                yield of_calls("resource", f"{lock}: lost {wrote}", [call])


def _noted(call: Call, what: str) -> list[Any]:
    return [note[what] for _at, note in call.notes if what in note]
