"""Lets operations run as if in different processes.

`series` remembers the last number of a series, and callers in one process share
transactions. Threads of this process would share both; here each operation has those of its own
process.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from invoices.models import InvoiceItem
from sequences import series as issuing
from sequences.combining import Combiner
from sequences.groups import Head, Unnumbered
from sequences.series import Key
from tests.interleavings.operations import running


class _Process:
    def __init__(self) -> None:
        self.known: dict[Key, issuing._Known] = defaultdict(issuing._Known)
        self.combiner: Combiner[Key, Unnumbered[Any], Any] = Combiner(
            issuing._send_group, prepare=issuing._prepare
        )

    def begin(self) -> None:
        self.known.clear()
        self.combiner._begin()


# Made once, as each registers a callback for forks.
_all = [_Process() for _ in range(4)]


class Processes:
    """Replaces the memory and the combiner of `series` by one of each per process.

    `of` has the number of the process of each operation; by default each has its own.
    """

    def __init__(self) -> None:
        self.of: Sequence[int] = (0, 1, 2)

    def begin(self) -> None:
        """Forget everything."""
        for process in _all:
            process.begin()

    cache_clear = begin  # that of `_known`

    def remember(self, process: int, series: str, head: Head) -> None:
        """Let a process know the last number of a series of invoices."""
        _all[process].known[InvoiceItem, series].head = head

    def __call__(self, key: Key) -> Any:
        """`_known`."""
        return self._own().known[key]

    def issue(self, key: Key, ask: Unnumbered) -> Any:
        """`_combiner`."""
        return self._own().combiner(key, ask)

    def _own(self) -> _Process:
        operation = running()
        return _all[-1] if operation is None else _all[self.of[operation.number]]


#: Of the scenario that is explored.
processes = Processes()


@contextmanager
def apart() -> Iterator[None]:
    """Run the operations of scenarios as if in different processes."""
    processes.of = (0, 1, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(issuing, "_known", processes)
        patch.setattr(issuing, "_combiner", processes.issue)
        yield
