"""Locks: leases with heartbeats and fencing tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamo._internal.lazy import lazily

if TYPE_CHECKING:
    from locks._internal.leases import Lease as Lease
    from locks._internal.lock import Lock as Lock, claim_once as claim_once
    from locks.exceptions import (
        BadLockName as BadLockName,
        LeaseLost as LeaseLost,
        LockChanged as LockChanged,
        LockError as LockError,
        LockTaken as LockTaken,
        UnknownLock as UnknownLock,
    )
    from locks.signals import lease_lost as lease_lost, lock_awaited as lock_awaited

__all__, __getattr__ = lazily(
    __name__,
    {
        "locks._internal.leases": "Lease",
        "locks._internal.lock": "Lock claim_once",
        "locks.exceptions": "BadLockName LeaseLost LockChanged LockError LockTaken UnknownLock",
        "locks.signals": "lease_lost lock_awaited",
    },
)
