"""The result of a scenario: how many callers were served, refused or late, and their times."""

from __future__ import annotations

from dataclasses import dataclass, field

LATE_SECONDS = 1.0


@dataclass
class Outcomes:
    """The seconds of each served caller, and the number of refused ones."""

    served: list[float] = field(default_factory=list)
    refused: int = 0

    def note(self, seconds: float, *, served: bool) -> None:
        if served:
            self.served.append(seconds)
        else:
            self.refused += 1

    @property
    def all(self) -> int:
        """The number of callers."""
        return len(self.served) + self.refused

    @property
    def refused_percent(self) -> float:
        """Callers without an answer before the deadline."""
        return 100 * self.refused / max(1, self.all)

    @property
    def late_percent(self) -> float:
        """Callers that were served after more than a second."""
        return 100 * sum(item > LATE_SECONDS for item in self.served) / max(1, self.all)

    def milliseconds(self, percentile: int) -> float:
        """The time within which this percentage of the served callers had an answer."""
        if not self.served:
            return 0.0
        ordered = sorted(self.served)
        return 1000 * ordered[min(len(ordered) - 1, len(ordered) * percentile // 100)]
