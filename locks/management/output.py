"""How commands show locks: as JSON for programs, as lines for people."""

from __future__ import annotations

import json
from datetime import datetime

from dynamo.terminal import printable
from locks.registry import LockView


def as_json(lock: LockView, at: datetime) -> str:
    """One JSON object; times are seconds, what is not there is null.

    Letters are as they are; what cannot be printed is escaped, as the line may go to a terminal.
    """
    shown = {
        "key": lock.name,
        "ownerName": lock.owner,
        "state": lock.state.value,
        "ageSeconds": _rounded(lock.age_seconds(at)),
        "leaseSeconds": lock.lease_seconds,
        "fencingToken": lock.fence,
        "renewedAt": lock.renewed_at and lock.renewed_at.isoformat(timespec="milliseconds"),
    }
    text = json.dumps(shown, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def as_row(lock: LockView, at: datetime) -> str:
    """One line: name, state, holder, age of the last renewal, lease, fencing token."""
    age = _rounded(lock.age_seconds(at))
    return "  ".join(
        (
            printable(lock.name),
            lock.state.value,
            f"by {printable(lock.owner) if lock.owner else '?'}",
            f"renewed {'?' if age is None else f'{age:g} s'} ago",
            "no lease" if lock.lease_seconds is None else f"lease {lock.lease_seconds:g} s",
            f"fence {'?' if lock.fence is None else lock.fence}",
        )
    )


def _rounded(seconds: float | None) -> float | None:
    # Two machines' times of day: less than no time is none.
    return None if seconds is None else max(0.0, round(seconds, 1))
