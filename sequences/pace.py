"""When a process sends its next group, where others issue on the same series.

Two who send at once hinder each other: one is refused, or both have met. So there is a *width*, in
attempts, over which each spreads what it sends: it grows with each group that was in vain and
shrinks with each that was not, and thereby finds out how many rivals there are. The winner of a
collision never learns of it, so for some seconds after a loss a process rests between its groups
as well. Who has lost for long hurries: it hardly pauses any more, so that nobody waits for ever.

No clock is read here: `now` is any that does not go back, so that it can be simulated.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from dynamo.client.retries import pause_seconds

#: How long a process that was hindered takes its rivals into account.
RIVALRY_SECONDS = 3.0

# Found by `benchmarks.scale`: with these, 4 and 16 processes on one series wait least.
NARROWEST, WIDEST = 0.5, 16.0
WIDER, NARROWER = 1.5, 0.8
#: Who has lost for so long pauses a tenth of what it would.
PATIENCE_SECONDS = 0.3
LONGEST_PAUSE_SECONDS = 0.25


@dataclass(frozen=True)
class Pace:
    """When the next group may go (`begins_at`), and by what that is measured.

    `looks` says that the series may be farther by then than the process knows.
    """

    begins_at: float = 0.0
    looks: bool = False
    rivalry_ends_at: float = 0.0
    width: float = 1.0
    attempt_seconds: float = 0.0
    #: Since when no group went through, None where the last one did.
    lost_since: float | None = None
    throttled: int = 0

    def won(self, now: float, took_seconds: float) -> Pace:
        """After a group that took so long and was written."""
        attempt = self._attempt_seconds(took_seconds)
        width = max(NARROWEST, self.width * NARROWER)
        if now > self.rivalry_ends_at:
            return Pace(width=width, attempt_seconds=attempt)
        rest = width * attempt * random.uniform(0.5, 1)  # noqa: S311 - spreads load, no secret
        begins_at = now + min(rest, LONGEST_PAUSE_SECONDS)
        return Pace(begins_at, True, self.rivalry_ends_at, width, attempt)

    def lost(self, now: float, took_seconds: float, *, told: bool) -> Pace:
        """After a group that a rival's was in the way of; `told` how far the series is by now.

        Who is told so, and had no rivals lately, goes on at once: it is likely the only one.
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
        """After a group that was throttled."""
        return replace(
            self,
            begins_at=now + pause_seconds(self.throttled),
            looks=now < self.rivalry_ends_at,
            throttled=self.throttled + 1,
        )

    def must_look(self, now: float) -> bool:
        """Whether to read how far the series is, before a group that is sent now."""
        return self.looks and now < self.rivalry_ends_at

    def _attempt_seconds(self, took_seconds: float) -> float:
        return (took_seconds + self.attempt_seconds) / 2 if self.attempt_seconds else took_seconds
