"""What a check found of one kind, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

#: How many findings of a kind are confirmed and listed; of the rest only the number is told.
#: A counter that was set to 10^15 by mistake has that many gaps.
LISTED = 10_000

What = TypeVar("What")


@dataclass
class Findings(Generic[What]):
    """The first `LISTED` of one kind, and how many more there may be, which nobody confirmed."""

    listed: list[What] = field(default_factory=list)
    more: int = 0

    def add(self, finding: What) -> None:
        """List one more, or count it where no more are listed."""
        if self.is_full:
            self.more += 1
        else:
            self.listed.append(finding)

    @property
    def is_full(self) -> bool:
        """Whether no more are listed."""
        return len(self.listed) >= LISTED

    @property
    def count(self) -> int:
        """How many there are, with those that are not listed."""
        # No `__len__`: a counter may lack more numbers than that may return.
        return len(self.listed) + self.more

    def __bool__(self) -> bool:
        return self.count > 0
