"""A discrete simulation's clock: tasks are generators that wait for seconds, or for each other."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Generator

Task = Generator["float | Gate", None, None]
"""Yields how many seconds it waits, or the gate that it waits at."""


class Gate:
    """Where tasks wait until somebody opens it; each waits for the next time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Task] = []

    def hold(self, task: Task) -> None:
        """Let a task wait here."""
        self._waiting.append(task)

    def open(self) -> None:
        """Let all who wait go on, now."""
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self._clock.at(self._clock.now, task)


class Clock:
    """The time of the simulation, in seconds, and what is to happen when."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Task]] = []
        self._numbers = itertools.count()

    def at(self, when: float, task: Task) -> None:
        """Let the task begin, or go on, at that time."""
        heapq.heappush(self._due, (when, next(self._numbers), task))

    def run(self) -> None:
        """Until nothing is left to happen."""
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
