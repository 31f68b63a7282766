"""What is measured of every request to DynamoDB, for Prometheus. See `docs/operators.md`.

No label holds a key or a value: a table, an operation and an outcome are words of the code.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from django.conf import settings
from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from dynamo.attempts import Attempt

REQUESTS = Counter(
    "dynamodb_requests",
    "Requests to DynamoDB, repetitions included.",
    ["operation", "table", "outcome"],
)
SECONDS = Histogram(
    "dynamodb_request_seconds",
    "How long a request to DynamoDB took, answered or not.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
UNITS = Counter("dynamodb_units", "Capacity units that answers named.", ["table", "kind"])
RETRIES = Counter("dynamodb_retries", "Requests that repeated one that had failed.", ["operation"])
REASONS = Counter(
    "dynamodb_cancellation_reasons",
    "Why transactions were cancelled, action by action.",
    ["reason"],
)

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_KNOWN_REASONS = {
    "ConditionalCheckFailed",
    "ItemCollectionSizeLimitExceeded",
    "ProvisionedThroughputExceeded",
    "ThrottlingError",
    "TransactionConflict",
    "ValidationError",
}

# A look-up by labels takes longer than the counting.
_requests = cache(REQUESTS.labels)
_seconds = cache(SECONDS.labels)
_units = cache(UNITS.labels)


def are_wanted() -> bool:
    """Whether requests are counted: where `DYNAMODB_METRICS` is False, nobody would read it."""
    wanted: bool = settings.DYNAMODB_METRICS
    return wanted


def note(attempt: Attempt) -> None:
    """Count one attempt."""
    _requests(attempt.operation, attempt.table, attempt.outcome).inc()
    _seconds(attempt.operation).observe(attempt.seconds)
    for table, read, write in attempt.units:
        if read:
            _units(table, "read").inc(read)
        if write:
            _units(table, "write").inc(write)
    if attempt.number:
        RETRIES.labels(attempt.operation).inc()
    for reason in attempt.reasons:
        REASONS.labels(reason if reason in _KNOWN_REASONS else "other").inc()
