"""The clock of a discrete simulation. Tasks are generators that wait for seconds or a gate."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator

Task = Generator["float | Gate", None, None]
"""Yields the seconds to wait, or the gate to wait at."""


class Gate:
    """Tasks wait here until it is opened the next time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Task] = []

    def hold(self, task: Task) -> None:
        self._waiting.append(task)

    def open(self) -> None:
        """Let all waiting tasks continue now."""
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._clock.at(self._clock.now, task)


class Clock:
    """The simulated time in seconds, and the tasks that continue at each time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()

    def at(self, when: float, task: Task) -> None:
        """Start or continue the task at that time."""
        heapq.heappush(self._due, (when, next(self._numbers), task))

    def run(self) -> None:
        """Run until no task is left."""
        while self._due:
            self.now, _number, task = heapq.heappop(self._due)
            try:
                wait = next(task)
            except StopIteration:
                continue
            if isinstance(wait, Gate):
                wait.hold(task)
            else:
                self.at(self.now + wait, task)
