"""At what rate each fault is injected: a table, made rougher or calmer by a seed as time passes.

    faults = RandomFaults(seed=7)
    fault = faults.draw("TransactWriteItems", request)

Each period has rates of its own, drawn from the seed and the period's number alone: in each,
every fault keeps its rate, comes several times as often, or is away. So a fault is met alone as
well as together with others.
"""

from __future__ import annotations

import random
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

#: How often each fault comes in a period: its rate times one of these.
FACTORS = (0, 0, 1, 1, 1, 4)

Body = dict[str, Any]
Chance = random.Random


@dataclass(frozen=True)
class Kind:
    """A fault: its name, how many of 1,000 requests that it `fits` meet it, how it is made."""

    name: str
    per_thousand: float
    make: Callable[[Chance, str, Body], Fault]
    fits: Callable[[str, Body], bool] = lambda _operation, _body: True


def _may_come_twice(operation: str, body: Body) -> bool:
    # Taking a lock counts its fence up, under a condition that it makes false itself.
    return is_repeatable(operation, body) or body.get("TableName") == "locks"


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


#: What DynamoDB and the network before it do. The client waits 3 seconds for a reply.
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
    """Draws the fault that a request meets; counts what it drew. Safe in threads."""

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
        #: How many requests were asked about, and how many met each fault.
        self.requests = 0
        self.counts: Counter[str] = Counter()

    def draw(self, operation: str, body: Body) -> Fault | None:
        """What happens to the next request."""
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
        """How many of 1,000 requests meet each fault in the period of that number."""
        chance = random.Random(f"{self._seed} {period}")
        return {
            kind.name: kind.per_thousand * self._strength * chance.choice(FACTORS)
            for kind in self._kinds
        }

    def cut(self, seconds: float) -> None:
        """Let no request through for so long."""
        with self._lock:
            self._cut_until = time.monotonic() + seconds

    def clear(self) -> None:
        """No fault from now on."""
        with self._lock:
            self._strength = 0
            self._cut_until = 0.0
            self._rates = (-1, {})
