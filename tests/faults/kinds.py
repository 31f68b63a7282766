"""The faults that `tests.faults.proxy` can inject."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DropReply:
    """The engine carries out the request; the connection closes before the reply."""


@dataclass(frozen=True)
class CloseBefore:
    """The connection closes before the engine gets the request; the client sees a `DropReply`."""


@dataclass(frozen=True)
class Answer:
    """An error of DynamoDB, such as `Answer(400, "ThrottlingException")`.

    The engine does not get the request, unless it is `carried_out` first. `reasons` are the codes
    of a TransactionCanceledException, one per action (`"None"` if it was not refused), or whole
    reasons with `Code`, `Message` and `Item`.
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
    """A success whose body is made from the request, which the engine does not get.

    `Reply(nothing_processed)` leaves a batch unprocessed, which a local engine never does.
    """

    body_for: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Delay:
    """The engine carries out the request; its reply is held for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class TimeOut:
    """The engine carries out the request; the client gives up waiting for the reply.

    For other replies it waits long, so that a slow machine does not look like a lost reply.
    """


@dataclass(frozen=True)
class Garble:
    """The engine carries out the request; its reply has `new` for `old`, and the old checksum."""

    old: bytes
    new: bytes


@dataclass(frozen=True)
class Meanwhile:
    """Call `action` just before the engine gets the request."""

    action: Callable[[], object]


@dataclass(frozen=True)
class Hold:
    """The request is held for `seconds` before the engine gets it."""

    seconds: float


@dataclass(frozen=True)
class Duplicate:
    """The engine gets the request twice.

    A request that it carried out it gets again after `seconds`, when the client has its reply. One
    that it refused it gets again at once, and the client gets the second reply: otherwise the
    client would be told of a refusal, and the request might be carried out later. (Only the client
    itself sends a request twice, and it waits for the last answer.)
    """

    seconds: float = 0.0


@dataclass(frozen=True)
class Truncate:
    """The engine carries out the request; the connection closes after half of the reply."""


@dataclass(frozen=True)
class Torn:
    """A Query or Scan that sees a part of a transaction, as AWS's read-committed ones may.

    The engine answers twice, before and after the next transaction (which may take `seconds`). The
    client gets each item from one of the two answers: a state that was committed during the
    request.
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
    """The answer to a batch of which DynamoDB processed nothing."""
    left = request["RequestItems"]
    if all("Keys" in wanted for wanted in left.values()):
        return {"Responses": {}, "UnprocessedKeys": left}
    return {"UnprocessedItems": left}
