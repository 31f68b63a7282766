"""What a check of whole tables keeps, in bounded memory."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Generic, Self, TypeVar

#: How many findings of a kind are confirmed and listed; the others are only counted. A counter that
#: was set to 10^15 by mistake has that many gaps.
LISTED = 10_000

#: How many entries stay in memory: about 40 MB if an entry is a key and an owner.
RUN_LENGTH = 200_000

#: How many runs are open at once, each a file descriptor. With one more they are merged into one.
OPEN_RUNS = 64

What = TypeVar("What")


@dataclass
class Findings(Generic[What]):
    """The first `LISTED` findings of one kind, and how many `more` there may be, not confirmed."""

    listed: list[What] = field(default_factory=list)
    more: int = 0

    def add(self, finding: What) -> None:
        """List the finding, or only count it if the list is full."""
        if self.is_full:
            self.more += 1
        else:
            self.listed.append(finding)

    @property
    def is_full(self) -> bool:
        return len(self.listed) >= LISTED

    @property
    def count(self) -> int:
        # Not `__len__`, whose result is limited: a counter may lack more numbers.
        return len(self.listed) + self.more

    def __bool__(self) -> bool:
        return self.count > 0


class Spool:
    """Entries in any number, added in any order, read in sorted order; kept on disk.

    An entry consists of texts; those with the same first text are read one after another. Read it
    any number of times, but with one reader at a time, and add nothing while reading. The files
    have no name: they are gone when the spool is closed or the process ends.

    An external merge sort: `run_length` entries are sorted in memory and written out as one run,
    and reading merges the runs. Source: D. Knuth, "The Art of Computer Programming", vol. 3,
    section 5.4.
    """

    def __init__(self, run_length: int = RUN_LENGTH) -> None:
        self._run_length = run_length
        self._waiting: list[str] = []
        self._runs: list[IO[str]] = []
        self._length = 0

    def add(self, *entry: str) -> None:
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

    def __exit__(self, *_error: object) -> None:
        self.close()


def _run_of(lines: Iterable[str]) -> IO[str]:
    run = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115 - the spool closes it
    run.writelines(lines)
    return run
