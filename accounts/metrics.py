"""Prometheus metrics of accounts. See `docs/operators.md`."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import Counter

from accounts.exceptions import ValueTaken
from dynamo.exceptions import Refused

TAKEN = Counter(
    "accounts_taken",
    "Registrations and changes that were refused because another account has the value.",
    ["attribute"],
)


def count_taken(error: Exception, stored_name: Callable[[str], str]) -> None:
    """Count each unique attribute that `error` reports as taken, by its stored name."""
    for each in error.exceptions if isinstance(error, Refused) else [error]:
        if isinstance(each, ValueTaken):
            TAKEN.labels(stored_name(each.attribute)).inc()
