"""Extension points of locks: to hold leases, and for operators; see `dynamo.extending`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from locks._internal.holders import HolderWatch as HolderWatch
    from locks._internal.registry import (
        BREAK_ATTEMPTS as BREAK_ATTEMPTS,
        LockView as LockView,
        State as State,
        all_locks as all_locks,
        break_lock as break_lock,
        look as look,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "locks._internal.holders": "HolderWatch",
        "locks._internal.registry": "BREAK_ATTEMPTS LockView State all_locks break_lock look",
    },
)
