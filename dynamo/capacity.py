"""What a request and its response say: the tables it names and the capacity units it consumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo.retries import is_read


def table_names(request: Mapping[str, Any]) -> str:
    """The table that a request names. Several are sorted and joined by `+`."""
    name: str | None = request.get("TableName")
    if name is not None:
        return name
    if "TransactItems" in request:
        actions = (action for item in request["TransactItems"] for action in item.values())
        return "+".join(sorted({action["TableName"] for action in actions}))
    return "+".join(sorted(request.get("RequestItems", ())))


def consumed_units(operation: str, response: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """The table, read units and write units of each table that the response names.

    DynamoDB names none in a response that refuses.
    """
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
