"""A model of DynamoDB's partitions: what they admit, how they split, their latency.

What AWS documents: a partition takes 1,000 write and 3,000 read units per second; a new on-demand
table takes 4,000 and 12,000; keys are spread over partitions by a hash; a partition that stays hot
is split, which helps if several keys are hot, but never raises the limit of one key. A transaction
takes two units per KB that it writes, and is canceled if it meets another one on an item.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/burst-adaptive-capacity.html
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html

What is assumed, because AWS gives no figures: latencies (`LATENCY`); that a partition saves up one
second of units; that `HEAT_SECONDS` of heat split it (on AWS it takes minutes).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Generator, Iterable
from dataclasses import dataclass

from benchmarks.scale.clock import Clock, Gate
from benchmarks.scale.prices import PARTITION_READS, PARTITION_WRITES
from dynamo.client.retries import pause_seconds
from dynamo.runtime.deadline import OPERATION_SECONDS

Steps = Generator["float | Gate", None, bool]

#: The median seconds of a request, and the sigma of its log-normal distribution.
LATENCY = {"single": 0.005, "transaction": 0.012}
SPREAD = 0.35
REFUSED_SECONDS = 0.003

HEAT_SECONDS = 2.0
#: A range of keys this narrow is one key and cannot be split.
NARROWEST = 1 / 2**12


@dataclass
class Partition:
    """A range of hashed keys, with the units that it has left."""

    limit: float
    left: float
    filled_at: float = 0.0
    #: The time since which it has refused something in every second.
    hot_since: float | None = None
    refused_at: float = -1.0

    def fill(self, now: float) -> None:
        """Add the units that came since the last call."""
        self.left = min(self.limit, self.left + (now - self.filled_at) * self.limit)
        self.filled_at = now


class Table:
    """A table's partitions, for writes or for reads, with the units per second of each."""

    def __init__(self, clock: Clock, partitions: int, *, reads: bool = False) -> None:
        self.clock = clock
        self.limit = PARTITION_READS if reads else PARTITION_WRITES
        self.bounds = [number / partitions for number in range(partitions)]
        self.partitions = [Partition(self.limit, self.limit) for _ in self.bounds]

    def has(self, key: float, units: float) -> bool:
        """Whether the key's partition has this many units left. Refusals may split it."""
        number = bisect_right(self.bounds, key) - 1
        partition = self.partitions[number]
        partition.fill(self.clock.now)
        if partition.left >= units:
            return True
        self._heat(number, partition)
        return False

    def take(self, key: float, units: float) -> None:
        """Take units of the key's partition."""
        self.partitions[bisect_right(self.bounds, key) - 1].left -= units

    def _heat(self, number: int, partition: Partition) -> None:
        now = self.clock.now
        if partition.hot_since is None or now - partition.refused_at > 1:
            partition.hot_since = now
        partition.refused_at = now
        if now - partition.hot_since >= HEAT_SECONDS:
            self._split(number, partition)

    def _split(self, number: int, partition: Partition) -> None:
        low = self.bounds[number]
        high = self.bounds[number + 1] if number + 1 < len(self.bounds) else 1.0
        partition.hot_since = None
        if high - low > NARROWEST:
            self.bounds.insert(number + 1, (low + high) / 2)
            fresh = Partition(self.limit, partition.left, self.clock.now)
            self.partitions.insert(number + 1, fresh)


Use = tuple[Table, float, float]
"""A table, a key by its place in 0 … 1, and the units to take there."""


class Sender:
    """Sends requests with the pauses and the deadline of our client."""

    def __init__(self, clock: Clock, chance: random.Random) -> None:
        self.clock = clock
        self.chance = chance

    def latency(self, kind: str) -> float:
        """A random latency of a request of this kind."""
        return LATENCY[kind] * self.chance.lognormvariate(0, SPREAD)

    def admitted(self, uses: Iterable[Use]) -> bool:
        """Take the units of one attempt, if the partitions have them. Returns whether they had."""
        uses = list(uses)
        verdicts = [table.has(key, units) for table, key, units in uses]  # each notes its heat
        if not all(verdicts):
            return False
        for table, key, units in uses:
            table.take(key, units)
        return True

    def send(self, uses: list[Use], kind: str = "single", ends_at: float | None = None) -> Steps:
        """Send a request, with retries while it is throttled. Returns whether it was in time."""
        clock = self.clock
        own = clock.now + OPERATION_SECONDS
        ends_at = own if ends_at is None else min(own, ends_at)
        attempt = 0
        while True:
            took = self.latency(kind)
            yield took / 2
            if self.admitted(uses):
                yield took / 2
                return True
            yield REFUSED_SECONDS
            pause = pause_seconds(attempt)
            attempt += 1
            if clock.now + pause > ends_at:
                return False
            yield pause
