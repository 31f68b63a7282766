"""What is measured of numbers, for Prometheus. See `docs/operators.md`.

Counters and series together, as each account has its own.
"""

from __future__ import annotations

from typing import Literal

from prometheus_client import Counter, Histogram

Kind = Literal["counter", "invoice"]

NUMBERS = Counter("sequences_numbers", "Numbers that were given out.", ["kind"])
GROUPS = Histogram(
    "sequences_group_size",
    "How many callers one request gave their numbers to.",
    ["kind"],
    buckets=(1, 2, 4, 8, 16, 32, 49),
)


def note(kind: Kind, *, callers: int, numbers: int) -> None:
    """Count what one request gave out."""
    NUMBERS.labels(kind).inc(numbers)
    GROUPS.labels(kind).observe(callers)
