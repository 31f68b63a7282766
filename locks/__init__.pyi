from locks.exceptions import (
    BadLockName as BadLockName,
    LeaseLost as LeaseLost,
    LockChanged as LockChanged,
    LockError as LockError,
    LockTaken as LockTaken,
    UnknownLock as UnknownLock,
)
from locks.leases import Lease as Lease
from locks.lock import Lock as Lock, claim_once as claim_once
from locks.signals import lease_lost as lease_lost, lock_awaited as lock_awaited
