"""The clock that leases are counted on.

It runs on while the machine sleeps and is never set, so a laptop that was closed finds its lease
over. No two machines' clocks are compared; they are trusted only to run equally fast.

Source: clock_gettime(2). macOS has no CLOCK_BOOTTIME: its CLOCK_MONOTONIC counts sleep as well.
"""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds since some moment that is the same for every process of this machine."""
    return time.clock_gettime(_CLOCK)
