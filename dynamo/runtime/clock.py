"""A clock that continues while the machine is suspended, and is never set.

Source: clock_gettime(2). macOS has no CLOCK_BOOTTIME: its CLOCK_MONOTONIC counts sleep as well.
"""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds since a time that is the same for all processes of this machine."""
    return time.clock_gettime(_CLOCK)
