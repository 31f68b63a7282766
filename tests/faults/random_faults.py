"""Random faults: a table of their rates, which a seed changes from period to period.

    faults = RandomFaults(seed=7)
    fault = faults.draw("TransactWriteItems", request)

The rates of a period depend on the seed and the number of the period only. In each period a fault
has its rate, several times its rate, or is absent. So each fault occurs alone as well as together
with others.
"""

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamo.client.retries import is_repeatable
from tests.faults.kinds import (
    Answer,
    CloseBefore,
    Delay,
    DropReply,
    Duplicate,
    Fault,
    Hold,
    Torn,
    Truncate,
)

PERIOD_SECONDS = 15.0

#: In a period, the rate of each fault is multiplied by one of these.
FACTORS = (0, 0, 1, 1, 1, 4)

Body = dict[str, Any]
Chance = random.Random


_COUNTS = re.compile(r"\bADD\b|\+")


@dataclass(frozen=True)
class Kind:
    """A fault: its name, its rate per 1,000 requests that it `fits`, and how it is made."""

    name: str
    per_thousand: float
    make: Callable[[Chance, str, Body], Fault]
    fits: Callable[[str, Body], bool] = lambda _operation, _body: True


def _may_come_twice(operation: str, body: Body) -> bool:
    # The update that takes a lock counts, but under a condition that it makes false itself.
    sets_only = operation == "UpdateItem" and not _COUNTS.search(body["UpdateExpression"])
    return is_repeatable(operation, body) or sets_only or body.get("TableName") == "locks"


def _writes_a_transaction(operation: str, _body: Body) -> bool:
    return operation == "TransactWriteItems"


def _writes_alone(operation: str, _body: Body) -> bool:
    return operation in {"PutItem", "UpdateItem", "DeleteItem"}


def _reads_many(operation: str, _body: Body) -> bool:
    return operation in {"Query", "Scan"}


def _cancelled_by_conflict(chance: Chance, body: Body, *, carried_out: bool) -> Answer:
    reasons = ["None"] * len(body["TransactItems"])
    reasons[chance.randrange(len(reasons))] = "TransactionConflict"
    return Answer(400, "TransactionCanceledException", reasons=reasons, carried_out=carried_out)


#: The faults of DynamoDB and of the network. The client waits 3 seconds for a reply.
DYNAMODB = (
    Kind("request lost", 6, lambda *_: CloseBefore()),
    Kind("reply lost", 8, lambda *_: DropReply()),
    Kind("reply cut", 4, lambda *_: Truncate()),
    Kind("reply late", 8, lambda chance, *_: Delay(chance.uniform(0.02, 1))),
    Kind("reply too late", 1, lambda *_: Delay(3.5)),
    Kind("request late", 6, lambda chance, *_: Hold(chance.uniform(0.02, 1.5))),
    Kind(
        "request twice", 10, lambda chance, *_: Duplicate(chance.uniform(0, 0.5)), _may_come_twice
    ),
    Kind("throttled", 8, lambda *_: Answer(400, "ThrottlingException")),
    Kind("500", 4, lambda *_: Answer(500, "InternalServerError")),
    Kind("500, yet done", 4, lambda *_: Answer(500, "InternalServerError", carried_out=True)),
    Kind(
        "conflict",
        15,
        lambda chance, _operation, body: _cancelled_by_conflict(chance, body, carried_out=False),
        lambda operation, body: operation in {"TransactWriteItems", "TransactGetItems"},
    ),
    Kind(
        "conflict, yet done",
        5,
        lambda chance, _operation, body: _cancelled_by_conflict(chance, body, carried_out=True),
        _writes_a_transaction,
    ),
    Kind(
        "conflict with a transaction",
        6,
        lambda *_: Answer(400, "TransactionConflictException"),
        _writes_alone,
    ),
    Kind(
        "in progress",
        8,
        lambda chance, *_: Answer(
            400, "TransactionInProgressException", carried_out=chance.random() < 0.5
        ),
        _writes_a_transaction,
    ),
    Kind("torn read", 200, lambda *_: Torn(), _reads_many),
)


class RandomFaults:
    """Draws the fault of each request, and counts them. Thread-safe."""

    def __init__(
        self, seed: object, kinds: tuple[Kind, ...] = DYNAMODB, *, strength: float = 1
    ) -> None:
        """`strength` multiplies all rates."""
        self._seed = seed
        self._kinds = kinds
        self._strength = strength
        self._began = time.monotonic()
        self._chance = random.Random(f"{seed} of the requests")
        self._lock = threading.Lock()
        self._rates: tuple[int, dict[str, float]] = (-1, {})
        self._cut_until = 0.0
        #: How many requests there were, and how many had each fault.
        self.requests = 0
        self.counts: Counter[str] = Counter()

    def draw(self, operation: str, body: Body) -> Fault | None:
        """The fault of the next request, if it has one."""
        with self._lock:
            self.requests += 1
            if time.monotonic() < self._cut_until:
                self.counts["cut off"] += 1
                return CloseBefore()
            rates = self._rates_now()
            for kind in self._kinds:
                if self._chance.random() * 1000 < rates[kind.name] and kind.fits(operation, body):
                    self.counts[kind.name] += 1
                    return kind.make(self._chance, operation, body)
        return None

    def _rates_now(self) -> dict[str, float]:
        period = int((time.monotonic() - self._began) / PERIOD_SECONDS)
        if self._rates[0] != period:
            self._rates = period, self.rates(period)
        return self._rates[1]

    def rates(self, period: int) -> dict[str, float]:
        """The rate of each fault per 1,000 requests in the period of that number."""
        chance = random.Random(f"{self._seed} {period}")
        return {
            kind.name: kind.per_thousand * self._strength * chance.choice(FACTORS)
            for kind in self._kinds
        }

    def cut(self, seconds: float) -> None:
        """Let no request pass for `seconds`."""
        with self._lock:
            self._cut_until = time.monotonic() + seconds

    def clear(self) -> None:
        """Inject no more faults."""
        with self._lock:
            self._strength = 0
            self._cut_until = 0.0
            self._rates = (-1, {})
