"""Metrics for Prometheus of the site's requests, of accounts and of the library.

These send signals, and `listen` connects the receivers that count them. No label contains a key or
a value. Tables, operations, outcomes and reasons are words of the code or of DynamoDB. See
`docs/operators.md`.
"""

from collections.abc import Callable
from http import HTTPMethod

from django.conf import settings
from django.dispatch import Signal
from django.http import HttpResponse
from django.utils.cache import add_never_cache_headers
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from accounts.signals import value_taken
from dynamo import request_sent
from dynamo.client.retries import cancellation_codes, outcome_of
from dynamo.client.tally import consumed_units, table_names
from locks import lease_lost, lock_awaited
from outbox.signals import task_ran, tasks_looked_for
from project.access import page_answered
from sequences import numbers_given
from uploads.signals import file_done

# These metrics, with the start of each series, are half of all lines, and nothing here uses them.
disable_created_metrics()

HTTP_REQUESTS = Counter(
    "http_requests", "Requests that were answered.", ["url", "method", "status"]
)
HTTP_SECONDS = Histogram(
    "http_request_seconds",
    "How long a request took until its answer was sent or handed to the server.",
    ["url", "method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)

DYNAMODB_REQUESTS = Counter(
    "dynamodb_requests",
    "Requests to DynamoDB, retries included.",
    ["operation", "table", "outcome"],
)
DYNAMODB_SECONDS = Histogram(
    "dynamodb_request_seconds",
    "How long a request to DynamoDB took, answered or not.",
    ["operation"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
FILES = Counter("uploads_files", "Files by outcome.", ["outcome"])
BYTES = Counter("uploads_bytes", "Bytes of uploaded files.")
ATTEMPTS = Histogram(
    "outbox_attempt_seconds",
    "How long an attempt at a task took.",
    ["outcome"],
    buckets=(0.01, 0.05, 0.25, 1, 2.5, 5, 10, 30, 60, 300),
)
OLDEST = Gauge(
    "outbox_oldest_seconds",
    "How long the oldest task that a worker found last has waited.",
    multiprocess_mode="livemax",
)
UNITS = Counter("dynamodb_units", "Capacity units that answers named.", ["table", "kind"])
RETRIES = Counter("dynamodb_retries", "Requests that were retries.", ["operation"])
REASONS = Counter(
    "dynamodb_cancellation_reasons", "Why transactions were canceled, action by action.", ["reason"]
)

NUMBERS = Counter("sequences_numbers", "Numbers that were given out.", ["kind"])
GROUPS = Histogram(
    "sequences_group_size",
    "How many callers one request gave numbers to.",
    ["kind"],
    buckets=(1, 2, 4, 8, 16, 32, 49),
)

WAITS = Histogram(
    "locks_wait_seconds",
    "How long a caller waited for a lock until it had it or gave up.",
    ["outcome"],
    buckets=(0.01, 0.05, 0.25, 1, 2.5, 5, 10, 20, 40, 80, 160),
)
LOST = Counter("locks_lost", "Leases that were lost before they were released.", ["reason"])

TAKEN = Counter(
    "accounts_taken",
    "Registrations and changes that were refused because another account has the value.",
    ["attribute"],
)


def listen() -> None:
    """Count the operations of the library from now on.

    Without receivers, its signals cost nothing.
    """
    for signal, receiver in RECEIVERS.items():
        signal.connect(receiver)


def shown() -> HttpResponse:
    """The page `/metrics`.

    If several processes serve, each counts by itself, in files of `PROMETHEUS_MULTIPROC_DIR`, and
    the process that answers adds them up.
    """
    registry = REGISTRY
    if settings.METRICS_DIR:
        registry = CollectorRegistry()
        MultiProcessCollector(registry, settings.METRICS_DIR)
    response = HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
    add_never_cache_headers(response)
    return response


def _count_file(*, outcome: str, size: int, **_signal: object) -> None:
    FILES.labels(outcome).inc()
    if outcome == "uploaded":
        BYTES.inc(size)


def _count_page(*, url: str, method: str, status: int, seconds: float, **_signal: object) -> None:
    # A client may send any word as the method.
    method = method if method in HTTPMethod.__members__ else "other"
    HTTP_REQUESTS.labels(url, method, str(status)).inc()
    HTTP_SECONDS.labels(url, method).observe(seconds)


def _count_request(
    *,
    operation: str,
    request: dict[str, object],
    response: dict[str, object],
    error: BaseException | None,
    retries: int,
    seconds: float,
    **_signal: object,
) -> None:
    outcome = "ok" if error is None else outcome_of(error)
    DYNAMODB_REQUESTS.labels(operation, table_names(request), outcome).inc()
    DYNAMODB_SECONDS.labels(operation).observe(seconds)
    for table, read, write in consumed_units(operation, response):
        if read:
            UNITS.labels(table, "read").inc(read)
        if write:
            UNITS.labels(table, "write").inc(write)
    if retries:
        RETRIES.labels(operation).inc()
    for reason in cancellation_codes(error) if error else ():
        REASONS.labels(reason).inc()


def _count_numbers(*, kind: str, callers: int, numbers: int, **_signal: object) -> None:
    label = "counter" if kind == "counter" else "invoice"
    NUMBERS.labels(label).inc(numbers)
    GROUPS.labels(label).observe(callers)


RECEIVERS: dict[Signal, Callable[..., None]] = {
    file_done: _count_file,
    page_answered: _count_page,
    value_taken: lambda attribute, **_signal: TAKEN.labels(attribute).inc(),
    request_sent: _count_request,
    numbers_given: _count_numbers,
    lock_awaited: lambda outcome, seconds, **_signal: WAITS.labels(outcome).observe(seconds),
    task_ran: lambda ran, **_signal: ATTEMPTS.labels(ran.outcome).observe(ran.seconds),
    tasks_looked_for: lambda seconds, **_signal: OLDEST.set(seconds),
    lease_lost: lambda reason, **_signal: LOST.labels(reason).inc(),
}
