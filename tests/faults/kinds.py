"""What can go wrong on the way to the engine, one class each; `tests.faults.proxy` does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DropReply:
    """The engine carries the request out; the connection closes before the reply."""


@dataclass(frozen=True)
class CloseBefore:
    """The connection closes and the engine never sees the request: it looks like `DropReply`."""


@dataclass(frozen=True)
class Answer:
    """An error of DynamoDB's, such as `Answer(400, "ThrottlingException")`.

    The engine does not see the request, or carries it out first where `carried_out` says so.
    `reasons` are the codes of a TransactionCanceledException, one per action, `"None"` for an
    innocent one; or whole reasons, with `Code`, `Message` and `Item`.
    """

    status: int
    code: str
    message: str = "planned by a test"
    reasons: Sequence[str | dict[str, Any]] = ()
    carried_out: bool = False

    def body(self) -> bytes:
        """The error as on the wire."""
        error: dict[str, Any] = {
            "__type": f"com.amazonaws.dynamodb.v20120810#{self.code}",
            "message": self.message,
            "Message": self.message,
        }
        if self.reasons:
            error["CancellationReasons"] = [
                {"Code": reason} if isinstance(reason, str) else reason for reason in self.reasons
            ]
        return json.dumps(error).encode()


@dataclass(frozen=True)
class Reply:
    """A successful answer made from the request, which the engine does not see.

    The engine never leaves part of a batch undone; `Reply(nothing_processed)` does.
    """

    body_for: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Delay:
    """The engine carries the request out; its reply is held for `seconds` (or till the end)."""

    seconds: float


@dataclass(frozen=True)
class TimeOut:
    """The engine carries the request out; this process gives up waiting for the reply.

    It waits long for all others, so that no machine that stands still looks like a lost reply.
    """


@dataclass(frozen=True)
class Garble:
    """The engine carries the request out; its reply arrives with `new` for `old`, under its CRC."""

    old: bytes
    new: bytes


@dataclass(frozen=True)
class Meanwhile:
    """`action` happens just before the engine sees the request."""

    action: Callable[[], object]


@dataclass(frozen=True)
class Hold:
    """The request waits for `seconds` (or till the end) before the engine sees it."""

    seconds: float


@dataclass(frozen=True)
class Duplicate:
    """The engine sees the request twice.

    What it carried out it sees again after `seconds`; the client has its first reply by then. What
    it refused it sees again at once, and the client gets the second reply: else it would be told
    of a refusal, and the request be carried out later. (Nothing sends a request twice but the
    client itself, which then waits for the last answer.)
    """

    seconds: float = 0.0


@dataclass(frozen=True)
class Truncate:
    """The engine carries the request out; half of its reply arrives, then the connection closes."""


@dataclass(frozen=True)
class Torn:
    """A Query or Scan that sees a transaction in part, as AWS's read-committed ones may.

    The engine answers twice, before and after the next transaction that passes (none is waited for
    longer than `seconds`). For each item the client gets one of the two: a state that was
    committed while the request was under way.
    """

    seconds: float = 0.3


Fault = (
    DropReply
    | CloseBefore
    | Answer
    | Reply
    | Delay
    | TimeOut
    | Garble
    | Meanwhile
    | Hold
    | Duplicate
    | Truncate
    | Torn
)


def nothing_processed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a batch of which DynamoDB did nothing."""
    left = request["RequestItems"]
    if all("Keys" in wanted for wanted in left.values()):
        return {"Responses": {}, "UnprocessedKeys": left}
    return {"UnprocessedItems": left}
