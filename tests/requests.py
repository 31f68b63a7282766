"""Records the requests that are sent, and the capacity that they consume."""

from __future__ import annotations

from typing import Any


class Requests:
    """A receiver of `dynamo.signals.request_sent`."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.units = 0.0

    def note(
        self,
        operation: str,
        request: dict[str, Any],
        response: dict[str, Any],
        **_signal: Any,
    ) -> None:
        self.operations.append(operation)
        self.requests.append(request)
        consumed = response.get("ConsumedCapacity", [])
        for each in consumed if isinstance(consumed, list) else [consumed]:
            self.units += each["CapacityUnits"]

    def apart(self) -> tuple[list[str], list[str]]:
        """The operations, first without those of limits (`accounts.limits.windows`), then these."""
        others: list[str] = []
        of_limits: list[str] = []
        counted: set[str] = set()
        for operation, request in zip(self.operations, self.requests, strict=True):
            item = request.get("Item", {})
            if "N" in item.get("value", {}):
                counted.add(item["key"]["S"])
            key = item.get("key") or request.get("Key", {}).get("key") or {}
            (of_limits if key.get("S") in counted else others).append(operation)
        return others, of_limits

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]
