"""What a check of whole tables keeps, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

#: How many findings of a kind are confirmed and listed; the others are only counted. A counter that
#: was set to 10^15 by mistake has that many gaps.
LISTED = 10_000

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
    any number of times, and add nothing while reading. Its file has no name: it is gone when the
    spool is closed or the process ends. Needs a few MB of memory, and reading it doubles the disk.
    """

    def __init__(self) -> None:
        import sqlite3  # here: only checks need it

        self._file = sqlite3.connect("")
        self._file.execute("CREATE TABLE entries (entry TEXT)")
        self._length = 0

    def add(self, *entry: str) -> None:
        # As JSON in ASCII, because SQLite takes no surrogates.
        self._file.execute("INSERT INTO entries VALUES (?)", [json.dumps(entry)])
        self._length += 1

    def __iter__(self) -> Iterator[list[str]]:
        for (entry,) in self._file.execute("SELECT entry FROM entries ORDER BY entry"):
            yield json.loads(entry)

    def __len__(self) -> int:
        return self._length

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()
