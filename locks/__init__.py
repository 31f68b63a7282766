"""Locks: leases with heartbeats and fencing tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from locks.exceptions import (
        BadLockName as BadLockName,
    )
    from locks.exceptions import (
        LeaseLost as LeaseLost,
    )
    from locks.exceptions import (
        LockChanged as LockChanged,
    )
    from locks.exceptions import (
        LockError as LockError,
    )
    from locks.exceptions import (
        LockTaken as LockTaken,
    )
    from locks.exceptions import (
        UnknownLock as UnknownLock,
    )
    from locks.leases import (
        Lease as Lease,
    )
    from locks.lock import (
        Lock as Lock,
    )
    from locks.signals import (
        lease_lost as lease_lost,
    )
    from locks.signals import (
        lock_awaited as lock_awaited,
    )

__all__, __getattr__ = lazily(
    __name__,
    {
        "locks.exceptions": ("BadLockName LeaseLost LockChanged LockError LockTaken UnknownLock"),
        "locks.leases": "Lease",
        "locks.lock": "Lock",
        "locks.signals": "lease_lost lock_awaited",
    },
)
