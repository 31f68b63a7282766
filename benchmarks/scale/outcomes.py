"""What a scenario comes to: how many were served, refused or late, and how long it took them."""

from __future__ import annotations

from dataclasses import dataclass, field

LATE_SECONDS = 1.0


@dataclass
class Outcomes:
    """The callers of a scenario: the seconds of each who was served, and who was not."""

    served: list[float] = field(default_factory=list)
    refused: int = 0

    def note(self, seconds: float, *, served: bool) -> None:
        """One caller more."""
        if served:
            self.served.append(seconds)
        else:
            self.refused += 1

    @property
    def all(self) -> int:
        """How many asked."""
        return len(self.served) + self.refused

    @property
    def refused_percent(self) -> float:
        """Who got no answer before the deadline."""
        return 100 * self.refused / max(1, self.all)

    @property
    def late_percent(self) -> float:
        """Who was served, but after a second."""
        return 100 * sum(each > LATE_SECONDS for each in self.served) / max(1, self.all)

    def milliseconds(self, percentile: int) -> float:
        """Of those who were served, so many percent waited no longer."""
        if not self.served:
            return 0.0
        ordered = sorted(self.served)
        return 1000 * ordered[min(len(ordered) - 1, len(ordered) * percentile // 100)]
