"""Helpers of checks of whole tables, which read while items change, and use bounded memory.

1. Claims. Each item that `scanned` returns adds entries to a `Spool`, under the thing that it
   concerns: the key of a guard item, a number, a file. Sorted, the entries about one thing follow
   each other.
2. Suspects. A scan is not isolated from transactions, so entries that contradict each other only
   make their thing suspect.
3. Findings. `confirmed` reads each suspect again, at one instant, and may repair it under the
   condition that it has not changed. What is still wrong after that is reported, in `Findings` or
   in a `Spool`.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from dynamo.client import bulk
from dynamo.client.tally import CountingPool
from dynamo.transactions import READ_TOGETHER
from dynamo.wire.types import Item

#: This many findings of a kind are confirmed and listed. The others are only counted, because a
#: counter that was set to 10^15 by mistake has that many gaps.
LISTED = 10_000

CONFIRM_THREADS = 8

#: The most items that are read at one instant.
TOGETHER = READ_TOGETHER
#: The number of suspects that are taken from disk at once.
AHEAD = 256

What = TypeVar("What")
Suspect = TypeVar("Suspect")

#: Called with the name of a step ("Items read"), and its count since the last call.
Progress = Callable[[str, int], object]


def unseen(_what: str, _count: int) -> None:
    """A `Progress` that shows nothing."""


def scanned(table: str, attributes: Collection[str], progress: Progress) -> Iterator[Item]:
    """The `attributes` of every item of `table`, in no order. For costs see `bulk.pages`."""
    for page in bulk.pages(table, attributes):
        yield from page
        progress("Items read", len(page))


def confirmed(
    suspects: Iterable[Suspect], confirm: Callable[[Suspect], What], progress: Progress
) -> Iterator[What]:
    """The results of `confirm` for each suspect, in their order. Several threads call it."""
    with CountingPool(CONFIRM_THREADS) as pool:
        for batch in pool.batches(confirm, suspects, AHEAD):
            yield from (found for _suspect, found in batch)
            progress("Suspects confirmed", len(batch))


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
        # This is not `__len__`, whose result is limited: a counter may lack more numbers.
        return len(self.listed) + self.more

    def __bool__(self) -> bool:
        return self.count > 0


class Spool:
    """Entries in any number, added in any order, read in sorted order; kept on disk.

    An entry consists of texts; those with the same first text are read one after another. Read it
    any number of times, and add nothing while reading. Its file has no name, so it disappears when
    the spool is closed or the process ends. Needs a few MB of memory, and reading it doubles the
    disk.
    """

    def __init__(self) -> None:
        import sqlite3  # imported here, because only checks need it

        self._file = sqlite3.connect("")
        self._file.execute("CREATE TABLE entries (entry TEXT)")

    def add(self, *entry: str) -> None:
        # As JSON in ASCII, because SQLite takes no surrogates.
        self._file.execute("INSERT INTO entries VALUES (?)", [json.dumps(entry)])

    def __iter__(self) -> Iterator[list[str]]:
        for (entry,) in self._file.execute("SELECT entry FROM entries ORDER BY entry"):
            yield json.loads(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
