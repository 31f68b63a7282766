"""The time of the next group of a process, for a series on which other processes issue as well.

If two groups are sent at the same time, one is refused, or both are canceled because of the
conflict. Therefore, each process spreads its groups over a *width*, measured in attempts. It
increases with each failed group and decreases with each committed one, until it fits the number of
processes. The winner of a collision does not notice it. Therefore, a process also pauses between
its own groups for some seconds after a loss. A process that has lost for a long time pauses less
and less, so that none starves.

With only full jitter, the winner sends again at once, and the others lose every race until the
deadlines of their callers have passed. With a delay of replies of 5 ms, one of 2 processes and most
of 4 issued nothing in 10 seconds, in each of five rounds. With this pace all of them issue, and in
the slowest process 99 of 100 calls took less than 1.1 seconds.

This module does not read a clock, so it can be simulated: `now` is from any monotonic clock.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from dynamo.client.retries import pause_seconds

#: For this time after a rejected group, a process assumes that others issue on the series.
RIVALRY_SECONDS = 3.0

# These values come from `benchmarks.scale`: with them, 4 and 16 processes on one series wait least.
NARROWEST, WIDEST = 0.5, 16.0
WIDER, NARROWER = 1.5, 0.8
#: A process that has lost for this time pauses for a tenth of the usual time.
PATIENCE_SECONDS = 0.3
LONGEST_PAUSE_SECONDS = 0.25


@dataclass(frozen=True)
class Pace:
    """The time when the next group may be sent (`begins_at`), and the values for computing it.

    `looks`: whether the series may be further than the process knows.
    """

    begins_at: float = 0.0
    looks: bool = False
    rivalry_ends_at: float = 0.0
    width: float = 1.0
    attempt_seconds: float = 0.0
    #: The time since which no group was committed; None if the last one was.
    lost_since: float | None = None
    throttled: int = 0

    def won(self, now: float, took_seconds: float) -> Pace:
        """The pace after a group that was committed within `took_seconds`."""
        attempt = self._attempt_seconds(took_seconds)
        width = max(NARROWEST, self.width * NARROWER)
        if now > self.rivalry_ends_at:
            return Pace(width=width, attempt_seconds=attempt)
        rest = width * attempt * random.uniform(0.5, 1)  # noqa: S311 - spreads load, no secret
        begins_at = now + min(rest, LONGEST_PAUSE_SECONDS)
        return Pace(begins_at, True, self.rivalry_ends_at, width, attempt)

    def lost(self, now: float, took_seconds: float, *, told: bool) -> Pace:
        """The pace after a group that another process's group hindered.

        `told`: whether the refusal showed the head of the series. If so, and there was no recent
        conflict, the process sends again at once, because it probably is the only one.
        """
        since = now - took_seconds if self.lost_since is None else self.lost_since
        attempt = self._attempt_seconds(took_seconds)
        at_once = told and now > self.rivalry_ends_at
        width = min(WIDEST, self.width * WIDER)
        hurry = max(0.1, 1 - (now - since) / PATIENCE_SECONDS)
        pause = random.uniform(0, width * attempt * hurry)  # noqa: S311 - spreads load, no secret
        begins_at = now if at_once else now + min(pause, LONGEST_PAUSE_SECONDS)
        return Pace(begins_at, not at_once, now + RIVALRY_SECONDS, width, attempt, since)

    def slowed(self, now: float) -> Pace:
        """The pace after a group that was throttled."""
        return replace(
            self,
            begins_at=now + pause_seconds(self.throttled),
            looks=True,
            throttled=self.throttled + 1,
        )

    def must_look(self, now: float) -> bool:
        """Whether to read the head of the series before a group that is sent now."""
        return self.looks and now < self.rivalry_ends_at

    def _attempt_seconds(self, took_seconds: float) -> float:
        return (took_seconds + self.attempt_seconds) / 2 if self.attempt_seconds else took_seconds
