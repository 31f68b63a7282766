"""Many callers that want one lock, and wait for it as `locks.lock` does."""

from __future__ import annotations

from benchmarks.scale.clock import Task
from benchmarks.scale.outcomes import Outcomes
from benchmarks.scale.partitions import Sender, Table
from locks.lock import LEASE_SECONDS, POLL_SECONDS

KEY = 0.3


class HotLock:
    """A lock that each caller holds for a while. Callers that give up waiting count as refused."""

    def __init__(self, sender: Sender, hold_seconds: float, outcomes: Outcomes) -> None:
        self.sender = sender
        self.hold_seconds = hold_seconds
        self.outcomes = outcomes
        self.is_held = False
        self.writes = Table(sender.clock, 4)
        self.reads = Table(sender.clock, 4, reads=True)

    def call(self) -> Task:
        """Acquire, hold and release it; otherwise poll, for one lease and a poll at most."""
        clock, began = self.sender.clock, self.sender.clock.now
        gives_up_at = began + LEASE_SECONDS + POLL_SECONDS
        seen_free = True
        while True:
            if seen_free:
                yield from self.sender.send([(self.writes, KEY, 1)])
                if not self.is_held:
                    break
            if clock.now >= gives_up_at:
                self.outcomes.note(clock.now - began, served=False)
                return
            pause = POLL_SECONDS * self.sender.chance.uniform(0.5, 1.5)
            yield min(pause, max(0.0, gives_up_at - clock.now))
            yield from self.sender.send([(self.reads, KEY, 1)])
            seen_free = not self.is_held
        self.is_held = True
        self.outcomes.note(clock.now - began, served=True)
        yield self.hold_seconds
        yield from self.sender.send([(self.writes, KEY, 1)])
        self.is_held = False
