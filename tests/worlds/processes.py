"""What each process keeps of invoice series: operations are in different ones, or in one.

`invoices.issuing` remembers how far a series is, and lets callers of a process share transactions.
Threads of this process would share both. Here each operation finds what is its process's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from invoices import issuing
from invoices.documents import Invoice
from invoices.groups import Ask
from invoices.heads import Head, Heads, Known
from sequences.combining import Combiner
from tests.worlds.operations import running


class _Process:
    def __init__(self) -> None:
        self.heads = Heads()
        self.combiner: Combiner[str, Ask, Invoice] = Combiner(
            issuing._serve, issuing._fits, prepare=issuing._wait_for_a_turn
        )

    def begin(self) -> None:
        self.heads._begin()
        self.combiner._begin()


# Made once: each registers for forks, for ever.
_all = [_Process() for _ in range(4)]


class Processes:
    """Stands for the memory and the combiner of `invoices.issuing`; a step of theirs is real.

    `of` names the process of each operation, by number; by default each has its own.
    """

    def __init__(self) -> None:
        self.of: Sequence[int] = (0, 1, 2)

    def begin(self) -> None:
        """Let all of them remember nothing."""
        for process in _all:
            process.begin()

    def remember(self, process: int, series: str, head: Head) -> None:
        """Let a process have seen the series at `head`."""
        _all[process].heads.put(series, Known(head))

    def get(self, series: str) -> Known | None:
        """`Heads.get`."""
        return self._own().heads.get(series)

    def put(self, series: str, known: Known) -> None:
        """`Heads.put`."""
        self._own().heads.put(series, known)

    def __call__(self, series: str, ask: Ask) -> Invoice:
        """`Combiner.__call__`."""
        return self._own().combiner(series, ask)

    def _own(self) -> _Process:
        operation = running()
        return _all[-1] if operation is None else _all[self.of[operation.number]]


@contextmanager
def apart() -> Iterator[Processes]:
    """Let the operations of worlds be in different processes."""
    processes = Processes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(issuing, "_heads", processes)
        patch.setattr(issuing, "_combiner", processes)
        yield processes
