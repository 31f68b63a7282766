"""What one attempt to reach DynamoDB came to, told to those who count: tallies and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from dynamo import metrics, tally
from dynamo.retries import cancellation_codes, is_read, outcome_of


@dataclass(slots=True)
class Attempt:
    """One request as it left, once: a repetition is another attempt.

    `number` is 0 for a first one. `units` are by table: its name, read units, write units; they
    are DynamoDB's own words, which an answer that refuses does not have.
    """

    operation: str
    table: str
    outcome: str
    number: int
    seconds: float
    units: list[tuple[str, float, float]]
    reasons: list[str]


def tell(
    operation: str,
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    error: BotoCoreError | ClientError | None,
    number: int,
    seconds: float,
) -> None:
    """Count one attempt, wherever somebody wants to know; costs no request."""
    counted_on, wanted = tally.current(), metrics.are_wanted()
    if counted_on is None and not wanted:
        return
    attempt = Attempt(
        operation,
        tables_of(request),
        "ok" if error is None else outcome_of(error),
        number,
        seconds,
        _units(operation, response),
        [] if error is None else cancellation_codes(error),
    )
    if counted_on is not None:
        counted_on.note(attempt)
    if wanted:
        metrics.note(attempt)


def tables_of(request: Mapping[str, Any]) -> str:
    """The table that a request names; several, in one order, with `+` between them."""
    name: str | None = request.get("TableName")
    if name is not None:
        return name
    if "TransactItems" in request:
        actions = (action for item in request["TransactItems"] for action in item.values())
        return "+".join(sorted({action["TableName"] for action in actions}))
    return "+".join(sorted(request.get("RequestItems", ())))


def _units(operation: str, response: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    consumed = response.get("ConsumedCapacity")
    if not consumed:
        return []
    by_table = consumed if isinstance(consumed, list) else [consumed]
    return [_units_of(operation, each) for each in by_table]


def _units_of(operation: str, consumed: Mapping[str, Any]) -> tuple[str, float, float]:
    table = consumed.get("TableName", "")
    # Transactions name both kinds: a commit that is repeated under its token only reads.
    if "ReadCapacityUnits" in consumed or "WriteCapacityUnits" in consumed:
        read = consumed.get("ReadCapacityUnits", 0.0)
        return table, read, consumed.get("WriteCapacityUnits", 0.0)
    units = consumed.get("CapacityUnits", 0.0)
    return (table, units, 0.0) if is_read(operation) else (table, 0.0, units)
