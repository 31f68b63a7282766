"""Records the requests that are sent, their capacity, and which of them waited for others."""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dynamo import request_sent
from dynamo.client import bulk, sending
from dynamo.wire.types import Answer

#: The session and the account, which every page of a signed-in visitor reads.
OF_EVERY_PAGE = ["BatchGetItem"]


def round_trips(spans: Iterable[tuple[float, float]]) -> int:
    """How many of these requests, each from its beginning to its end, followed one another.

    The largest number of requests of which no two overlap; those that were sent together count
    once.
    """
    count, ended = 0, float("-inf")
    for began, end in sorted(spans, key=lambda span: span[1]):
        if began >= ended:
            count, ended = count + 1, end
    return count


def set_by(update: dict[str, Any]) -> dict[str, Any]:
    """The values that an UpdateItem sets, by attribute."""
    names = update["ExpressionAttributeNames"]
    values = update["ExpressionAttributeValues"]
    found = re.findall(r"(#\w+) = (:\w+)", update["UpdateExpression"])
    return {names[name]: values[value] for name, value in found}


@contextmanager
def told(receiver: Callable[..., object]) -> Iterator[None]:
    """Tell `receiver` about each request of the block, after its reply."""
    request_sent.connect(receiver, weak=False)
    try:
        yield
    finally:
        request_sent.disconnect(receiver)


def limit_pages(patch: pytest.MonkeyPatch, most: int) -> None:
    """Let each Query and Scan of `bulk` return at most `most` items, as if these had 1 MB."""

    def send(operation: str, request: Any) -> Answer:
        is_list = operation in {"Query", "Scan"}
        return sending.send(operation, {"Limit": most, **request} if is_list else request)

    patch.setattr(bulk, "send", send)


class Requests:
    """A receiver of `dynamo.signals.request_sent`."""

    def __init__(self) -> None:
        self.operations: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.units = 0.0
        self._spans: list[tuple[float, float]] = []

    def note(
        self,
        operation: str,
        request: dict[str, Any],
        response: dict[str, Any],
        seconds: float,
        **_signal: Any,
    ) -> None:
        now = time.perf_counter()
        self._spans.append((now - seconds, now))
        self.operations.append(operation)
        self.requests.append(request)
        consumed = response.get("ConsumedCapacity", [])
        for item in consumed if isinstance(consumed, list) else [consumed]:
            self.units += item["CapacityUnits"]

    def of(self, operation: str) -> list[dict[str, Any]]:
        """The requests of this operation."""
        both = zip(self.operations, self.requests, strict=True)
        return [request for item, request in both if item == operation]

    @property
    def round_trips(self) -> int:
        """How many times a caller waited for DynamoDB, as `round_trips` counts.

        It compares times, so let a proxy delay the replies: an engine on this machine may answer
        one request before another thread sends the next.
        """
        return round_trips(self._spans)

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
