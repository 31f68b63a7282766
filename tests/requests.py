"""Counts the real requests that leave, and the capacity that they consume."""

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

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]  # begins again
