"""The base of the commands of this app."""

import argparse
from datetime import datetime

from dynamo.runtime.terminal import printable
from locks.exceptions import BadLockName
from locks.registry import LockView
from locks.requests import checked_name


def lock_name(text: str) -> str:
    """Return the name of a lock, for argparse."""
    try:
        return checked_name(text)
    except BadLockName as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def as_row(lock: LockView, at: datetime) -> str:
    """One line: name, state, holder, age of the last renewal, lease, fencing token."""
    age = rounded_age(lock, at)
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


def rounded_age(lock: LockView, at: datetime) -> float | None:
    """The age of the last renewal in seconds. Never negative, although two clocks may differ."""
    age = lock.age_seconds(at)
    return None if age is None else max(0.0, round(age, 1))
