"""Callers that share one key: of a counter, and of a series.

Both follow `combining` of `sequences`: a process has one request in flight for a key,
and callers that come meanwhile share the next one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from dataclasses import dataclass

from benchmarks.scale.clock import Gate, Task
from benchmarks.scale.outcomes import Outcomes
from benchmarks.scale.partitions import REFUSED_SECONDS, Sender, Steps, Table, Use
from dynamo.runtime.deadline import OPERATION_SECONDS
from dynamo.transactions import MAX_WRITES
from sequences.pace import Pace

KEY = 0.3
"""The place of the hot key."""


def plain_counter(sender: Sender, table: Table, outcomes: Outcomes) -> Task:
    """A caller that sends its own request."""
    began = sender.clock.now
    done = yield from sender.send([(table, KEY, 1)])
    outcomes.note(sender.clock.now - began, served=done)


@dataclass
class Caller:
    """A caller that has waited for a number since `began`."""

    began: float


class Combined(ABC):
    """A process whose callers of one key share requests."""

    most = 10**9

    def __init__(self, sender: Sender, outcomes: Outcomes) -> None:
        self.sender = sender
        self.outcomes = outcomes
        self.waiting: list[Caller] = []
        self.is_sending = False

    def call(self) -> Task:
        """Wait for the caller that sends, or send."""
        self.waiting.append(Caller(self.sender.clock.now))
        if self.is_sending:
            return
        self.is_sending = True
        while self._patient():
            yield from self.prepare()
            group = self.waiting[: self.most]
            ends_at = group[0].began + OPERATION_SECONDS
            if (yield from self.serve(len(group), ends_at)):
                del self.waiting[: len(group)]
                for caller in group:
                    self.outcomes.note(self.sender.clock.now - caller.began, served=True)
        self.is_sending = False

    def _patient(self) -> bool:
        """Remove callers whose deadline has passed; return whether any are left."""
        now = self.sender.clock.now
        gone = [item for item in self.waiting if now - item.began > OPERATION_SECONDS]
        for caller in gone:
            self.waiting.remove(caller)
            self.outcomes.note(now - caller.began, served=False)
        return bool(self.waiting)

    def prepare(self) -> Generator[float | Gate, None, None]:
        """What happens before a group is formed."""
        yield from ()

    @abstractmethod
    def serve(self, count: int, ends_at: float) -> Steps:
        """Send for `count` callers; return whether it succeeded. Otherwise they join the next."""


class HotCounter(Combined):
    """A process that draws from the counter."""

    def __init__(self, sender: Sender, table: Table, outcomes: Outcomes) -> None:
        super().__init__(sender, outcomes)
        self.table = table

    def serve(self, count: int, ends_at: float) -> Steps:
        """One `ADD` for all of them."""
        return (yield from self.sender.send([(self.table, KEY, 1)], ends_at=ends_at))


class HotSeries:
    """A series: its last number, and until when a transaction holds its counter."""

    def __init__(self, sender: Sender, outcomes: Outcomes) -> None:
        self.sender = sender
        self.outcomes = outcomes
        self.head = 0
        self.busy_until = 0.0
        self.counters = Table(sender.clock, 4)
        self.invoices = Table(sender.clock, 4)
        self.reads = Table(sender.clock, 4, reads=True)

    def process(self) -> IssuingProcess:
        return IssuingProcess(self)

    def uses(self, count: int) -> list[Use]:
        """The units of a group: the counter, the invoices on one key, the guards on many."""
        guards = [(self.invoices, self.sender.chance.random(), 2.0) for _ in range(count)]
        return [(self.counters, KEY, 2.0), (self.invoices, KEY, 2.0 * count), *guards]


class IssuingProcess(Combined):
    """A process that issues groups as `sequences.issue` does, with the same pauses."""

    most = (MAX_WRITES - 1) // 2

    def __init__(self, series: HotSeries) -> None:
        super().__init__(series.sender, series.outcomes)
        self.series = series
        self.known = 0
        self.pace = Pace()

    def prepare(self) -> Generator[float | Gate, None, None]:
        """Pause and read the counter, as `sequences.issue` does."""
        clock = self.sender.clock
        yield max(0.0, self.pace.begins_at - clock.now)
        if self.pace.must_look(clock.now):
            yield from self.sender.send([(self.series.reads, KEY, 1)])
            self.known = self.series.head

    def serve(self, count: int, _ends_at: float) -> Steps:
        """Send one transaction once; return whether it is committed."""
        series, clock, pace = self.series, self.sender.clock, self.pace
        began, took = clock.now, self.sender.latency("transaction")
        yield took / 2
        if clock.now < series.busy_until:
            yield REFUSED_SECONDS
            self.pace = pace.lost(clock.now, clock.now - began, told=False)
            return False
        if not self.sender.admitted(series.uses(count)):
            yield REFUSED_SECONDS
            self.pace = pace.slowed(clock.now)
            return False
        if self.known != series.head:
            known = series.head
            yield took / 2
            self.known = known
            self.pace = pace.lost(clock.now, clock.now - began, told=True)
            return False
        series.busy_until = clock.now + took / 2
        yield took / 2
        series.head = self.known = series.head + count
        self.pace = pace.won(clock.now, clock.now - began)
        return True
