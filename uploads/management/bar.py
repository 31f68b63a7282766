"""Progress bars on a terminal, and lines of text above them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from uploads.sources import Source, Unusable
from uploads.transfer import Result

#: Files and bytes, rate, and, once everything is counted, the remaining time.
_COUNTED = (
    "{desc} {percentage:3.0f}%|{bar}| {n_fmt}B/{total_fmt}B [{elapsed}<{remaining}, {rate_fmt}]"
)
_COUNTING = "{desc} {n_fmt}B [{elapsed}, {rate_fmt}]"

Sources = Callable[[], Iterable[Source | Unusable]]


class FilesBar:
    """A bar of the files and bytes of a run."""

    def __init__(self, bar: tqdm[Any]) -> None:
        self._bar = bar
        self._files = 0
        #: Files and bytes; set by the counting thread when it is done.
        self._total: tuple[int, int] | None = None
        self._bytes_sent = 0
        self._bytes_settled = 0

    def count(self, sources: Iterable[Source | Unusable], stop: threading.Event) -> None:
        """Count everything, for the remaining time. Runs in a thread of its own."""
        files = size = 0
        for source in sources:
            if stop.is_set():
                return
            files += 1
            size += source.size if isinstance(source, Source) else 0
        self._total = files, size

    def add_bytes(self, count: int) -> None:
        self._bytes_sent += count
        self._show()

    def add_result(self, result: Result) -> None:
        self._files += 1
        if result.outcome != "uploaded":
            # Some of its bytes may not have been sent, but none is left to send.
            self._bytes_settled += result.size
        self._show()

    def _show(self) -> None:
        bar = self._bar
        of = ""
        done = self._bytes_sent + self._bytes_settled
        if self._total is not None:
            files, bar.total = self._total
            of = f"/{files:,}"
            bar.bar_format = _COUNTED
            done = min(done, bar.total)
        bar.set_description_str(f"{self._files:,}{of} files", refresh=False)
        bar.update(done - bar.n)

    def close(self) -> None:
        self._show()
        self._bar.refresh()


@contextmanager
def progress_bar(sources: Sources, stop: threading.Event) -> Iterator[FilesBar]:
    """A bar if stderr is a terminal; only then `sources` are counted."""
    shown = sys.stderr.isatty()
    with tqdm(unit="B", unit_scale=True, disable=not shown, bar_format=_COUNTING) as bar:
        progress = FilesBar(bar)
        if shown:
            counting = threading.Thread(
                target=progress.count, args=(sources(), stop), name="counting", daemon=True
            )
            counting.start()
        yield progress
        if shown:
            progress.close()


@contextmanager
def lines_above_the_bar() -> Iterator[None]:
    """Write lines in this block without breaking a bar."""
    with tqdm.external_write_mode(file=sys.stderr):
        yield
