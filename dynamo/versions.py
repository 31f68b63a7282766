"""Versions, by which a write recognizes the very item that its caller read.

    member = Member(key, version=new_version())
    …
    write.update(
        member,
        Member.set_or_remove({**values, "version": next_version(member.version)}),
        Member.version == member.version,
        otherwise=Stale(),
    )

The first version of an item is random, and each write adds one. If an item is deleted and another
one is created under its key, a copy of the first never matches the second. Versions that count from
1 do not have this property: both items have version 1 at some time (the ABA problem).
"""

from __future__ import annotations

import secrets

#: Random versions start here. A smaller one was stored by version 0.1, which counted from 1.
_LEAST = 1 << 61
#: More writes than an item ever sees.
_MOST_WRITES = 1 << 32


def new_version() -> int:
    """The version of an item that is created now. No two items have the same one."""
    return _LEAST + secrets.randbelow(_LEAST)


def next_version(version: int | None) -> int:
    """The version that a write gives to an item that has `version`.

    An item without a version, or with one that counts from 1, gets a random one.
    """
    return new_version() if version is None or version < _LEAST else version + 1


def follows(later: int, version: int) -> bool:
    """Whether an item with the version `later` had the random `version` before."""
    return 0 < later - version < _MOST_WRITES
