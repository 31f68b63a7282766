"""The version of an item: by it a condition recognizes the item that the caller read.

The first version of an item is random, and each write adds one. If an item is deleted and another
one is created under its key, a copy of the first never matches the second. Versions that count from
1 do not have this property: both items have version 1 at some time (the ABA problem).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, TypeGuard

#: Random versions start here. A smaller one was stored by version 0.1, which counted from 1.
_LEAST_VERSION = 1 << 52
#: More writes than an item ever gets.
MOST_WRITES = 1 << 32
#: Versions of items that were stored before start below 2^62.
_MOST_VERSION = 1 << 63
#: JavaScript's numbers are exact up to 2^53.
_RANDOM_VERSIONS = (1 << 52) - MOST_WRITES


def new_version() -> int:
    """A version for an item that is created now: random, below 2^53, in practice never drawn twice.

    Versions of items that were stored before have 62 bits, and count on.
    """
    return _LEAST_VERSION + secrets.randbelow(_RANDOM_VERSIONS)


def stored_version(typed: Mapping[str, Any]) -> int:
    """The version that is stored as `typed`. Raises ValueError if it cannot be one."""
    version = int(typed.get("N", "no number"))
    if not 0 <= version < _MOST_VERSION:
        raise ValueError(version)
    return version


def next_version(version: int | None) -> int:
    """The version that a write gives to an item that has `version`.

    An item without a version, or with one that counts from 1, gets a random one.
    """
    return version + 1 if is_random(version) else new_version()


def is_random(version: int | None) -> TypeGuard[int]:
    """Whether an item with this version can be told from another one under its key."""
    return version is not None and version >= _LEAST_VERSION


def follows(later: int, version: int) -> bool:
    """Whether an item with the version `later` had the random `version` before."""
    return 0 < later - version < MOST_WRITES


def continues(now: int | None, version: int) -> bool:
    """Whether an item that has the version `now` is the one that had the random `version`."""
    return now is not None and (now == version or follows(now, version))
