"""What an operation sends: each request, with its units of each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dynamo.client.retries import is_read
from dynamo.signals import request_sent


@dataclass(frozen=True)
class Request:
    """One request: its name, and its units by table, without the prefix."""

    operation: str
    units: dict[str, float]

    @property
    def is_read(self) -> bool:
        return is_read(self.operation)


@dataclass
class Tally:
    """The requests of one operation."""

    requests: list[Request] = field(default_factory=list)

    def units(self, *, reads: bool, table: str | None = None) -> float:
        """The read or write units, of all tables or of one."""
        return sum(
            sum(request.units.values()) if table is None else request.units.get(table, 0)
            for request in self.requests
            if request.is_read == reads
        )

    @property
    def writes(self) -> float:
        return self.units(reads=False)

    @property
    def reads(self) -> float:
        return self.units(reads=True)


@contextmanager
def tallied() -> Iterator[Tally]:
    """Count every request that is sent in the block."""
    tally = Tally()

    def note(operation: str, request: Any, response: Any, **_signal: Any) -> None:
        units = _consumed(response) if response else _refused(operation, request)
        tally.requests.append(Request(operation, dict(units)))

    request_sent.connect(note, weak=False)
    try:
        yield tally
    finally:
        request_sent.disconnect(note)


def _consumed(response: dict[str, Any]) -> Counter[str]:
    consumed = response.get("ConsumedCapacity", [])
    units: Counter[str] = Counter()
    for item in consumed if isinstance(consumed, list) else [consumed]:
        units[item["TableName"]] += item["CapacityUnits"]
    return units


def _refused(operation: str, request: dict[str, Any]) -> Counter[str]:
    """Add the units of a write whose condition is false; engines report none.

    Here all items are below 1 KB. Source: "DynamoDB read and write operations",
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
    """
    if is_read(operation):
        return Counter()
    if operation != "TransactWriteItems":
        return Counter({request["TableName"]: 1})
    units: Counter[str] = Counter()
    for action in request["TransactItems"]:
        [write] = action.values()
        units[write["TableName"]] += 2
    return units
