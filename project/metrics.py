"""What is measured of requests to the site, for Prometheus. See `docs/operators.md`."""

from __future__ import annotations

from typing import Any

from prometheus_client import Counter, Histogram

REQUESTS = Counter("http_requests", "Requests that were answered.", ["url", "method", "status"])
SECONDS = Histogram(
    "http_request_seconds",
    "How long a request took, until its answer was sent or handed to the server.",
    ["url", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

NUMBERS = Counter("sequences_numbers", "Numbers that were given out.", ["kind"])
GROUPS = Histogram(
    "sequences_group_size",
    "How many callers one request gave their numbers to.",
    ["kind"],
    buckets=(1, 2, 4, 8, 16, 32, 49),
)

# A client may send any word.
_METHODS = {"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}


def note(url: str, method: str, status: int, seconds: float) -> None:
    """Count a request; `url` is the name in the URL map."""
    method = method if method in _METHODS else "other"
    REQUESTS.labels(url, method, str(status)).inc()
    SECONDS.labels(url, method).observe(seconds)


def note_numbers(*, sender: Any, kind: str, callers: int, numbers: int, **_: Any) -> None:
    """Count what one request gave out: a receiver of `sequences.signals.numbers_given`."""
    label = "counter" if kind == "counter" else "invoice"
    NUMBERS.labels(label).inc(numbers)
    GROUPS.labels(label).observe(callers)
