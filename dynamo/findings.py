"""What a check of whole tables keeps, in bounded memory."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Generic, Self, TypeVar

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


#: Entries that stay in memory: some 40 MB of them, where they are a key and an owner.
RUN_LENGTH = 200_000

#: Runs that are open at once, each a file descriptor; one more, and they become one run.
OPEN_RUNS = 64


class Spool:
    """Entries, each of any texts; those with the same first text are read one after another.

    Read it as often as you like, but by one reader at a time, and add nothing meanwhile. The
    files have no name and are gone when it is closed, or when its process is.
    """

    def __init__(self, run_length: int = RUN_LENGTH) -> None:
        self._run_length = run_length
        self._waiting: list[str] = []
        self._runs: list[IO[str]] = []
        self._length = 0

    def add(self, *entry: str) -> None:
        """Keep one entry."""
        # As JSON in ASCII an entry is one line whatever it holds, and equal texts are equal bytes.
        self._waiting.append(json.dumps(entry) + "\n")
        self._length += 1
        if len(self._waiting) >= self._run_length:
            self._write_out()

    def _write_out(self) -> None:
        self._runs.append(_run_of(sorted(self._waiting)))
        self._waiting = []
        if len(self._runs) > OPEN_RUNS:
            merged = _run_of(self._lines())
            self._close_runs()
            self._runs = [merged]

    def _lines(self) -> Iterator[str]:
        for run in self._runs:
            run.seek(0)
        return heapq.merge(*self._runs, sorted(self._waiting))

    def __iter__(self) -> Iterator[list[str]]:
        for line in self._lines():
            yield json.loads(line)

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Forget everything and free the disk."""
        self._close_runs()
        self._waiting = []
        self._length = 0

    def _close_runs(self) -> None:
        for run in self._runs:
            run.close()
        self._runs = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _run_of(lines: Iterable[str]) -> IO[str]:
    run = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - the spool closes it
    run.writelines(lines)
    return run
