"""The clock that leases are counted on: one that runs while the machine sleeps.

So a laptop that was closed finds its lease over. No two machines' clocks are compared; they are
trusted only to run equally fast.
"""

from dynamo.clock import now

__all__ = ["now"]
