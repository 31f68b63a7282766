"""What is measured of locks, for Prometheus. See `docs/operators.md`."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

WAITS = Histogram(
    "locks_wait_seconds",
    "How long who asked for a lock waited, until they had it or gave up.",
    ["outcome"],
    buckets=(0.01, 0.05, 0.25, 1, 2.5, 5, 10, 20, 40, 80, 160),
)
LOST = Counter("locks_lost", "Leases that were lost before they were given back.", ["reason"])
