"""What each process keeps of series: operations are in different ones, or in one.

`sequences.series` remembers how far a series is, and lets callers of a process share transactions.
Threads of this process would share both. Here each operation finds what is its process's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from invoices.models import InvoiceItem
from sequences import series as issuing
from sequences.combining import Combiner
from sequences.groups import Ask, Head
from sequences.series import Key
from tests.interleavings.operations import running


class _Process:
    def __init__(self) -> None:
        self.memory = issuing._Memory()
        self.combiner: Combiner[Key, Ask[Any], Any] = Combiner(
            issuing._serve, prepare=issuing._prepare
        )

    def begin(self) -> None:
        self.memory._begin()
        self.combiner._begin()


# Made once: each registers for forks, for ever.
_all = [_Process() for _ in range(4)]


class Processes:
    """Stands for the memory and the combiner of `sequences.series`; a step of theirs is real.

    `of` names the process of each operation, by number; by default each has its own.
    """

    def __init__(self) -> None:
        self.of: Sequence[int] = (0, 1, 2)

    def begin(self) -> None:
        """Let all of them remember nothing."""
        for process in _all:
            process.begin()

    def remember(self, process: int, series: str, head: Head) -> None:
        """Let a process have seen a series of invoices at `head`."""
        _all[process].memory.put((InvoiceItem, series), issuing._Known(head))

    def get(self, key: Key) -> Any:
        """`_Memory.get`."""
        return self._own().memory.get(key)

    def put(self, key: Key, known: Any) -> None:
        """`_Memory.put`."""
        self._own().memory.put(key, known)

    def __call__(self, key: Key, ask: Ask[Any]) -> Any:
        """`Combiner.__call__`."""
        return self._own().combiner(key, ask)

    def _own(self) -> _Process:
        operation = running()
        return _all[-1] if operation is None else _all[self.of[operation.number]]


@contextmanager
def apart() -> Iterator[Processes]:
    """Let the operations of scenarios be in different processes."""
    processes = Processes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(issuing, "_memory", processes)
        patch.setattr(issuing, "_combiner", processes)
        yield processes
