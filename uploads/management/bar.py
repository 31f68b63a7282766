"""Progress bars on a terminal, and lines of text above them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from uploads.sources import Source, Unusable
from uploads.transfer import Result

#: Files and bytes, rate, and, once everything is counted, the remaining time.
_COUNTED = (
    "{desc} {percentage:3.0f}%|{bar}| {n_fmt}B/{total_fmt}B [{elapsed}<{remaining}, {rate_fmt}]"
)
_COUNTING = "{desc} {n_fmt}B [{elapsed}, {rate_fmt}]"

Found = Iterable[Source | Unusable]


class FilesBar(tqdm):
    """A bar of the files and bytes of a run."""

    _files = _bytes_sent = _bytes_settled = 0
    #: Files and bytes; set by the counting thread when it is done.
    _counted: tuple[int, int] | None = None

    def count(self, found: Found, stop: threading.Event) -> None:
        """Count everything, for the remaining time. Runs in a thread of its own."""
        files = size = 0
        for source in found:
            if stop.is_set():
                return
            files += 1
            size += source.size if isinstance(source, Source) else 0
        self._counted = files, size

    def add_bytes(self, count: int) -> None:
        self._bytes_sent += count
        self.show_all()

    def add_result(self, result: Result) -> None:
        self._files += 1
        if result.outcome != "uploaded":
            # Some of its bytes may not have been sent, but none is left to send.
            self._bytes_settled += result.size
        self.show_all()

    def show_all(self) -> None:
        of, done = "", self._bytes_sent + self._bytes_settled
        if self._counted is not None:
            files, self.total = self._counted
            of = f"/{files:,}"
            self.bar_format = _COUNTED
            done = min(done, self.total)
        self.set_description_str(f"{self._files:,}{of} files", refresh=False)
        self.update(done - self.n)


@contextmanager
def progress_bar(sources: Callable[[], Found], stop: threading.Event) -> Iterator[FilesBar]:
    """A bar if stderr is a terminal; only then `sources` are counted."""
    shown = sys.stderr.isatty()
    with FilesBar(unit="B", unit_scale=True, disable=not shown, bar_format=_COUNTING) as bar:
        if shown:
            threading.Thread(
                target=bar.count, args=(sources(), stop), name="counting", daemon=True
            ).start()
        yield bar
        if shown:
            bar.show_all()
            bar.refresh()


@contextmanager
def lines_above_the_bar() -> Iterator[None]:
    """Write lines in this block without breaking a bar."""
    with tqdm.external_write_mode(file=sys.stderr):
        yield
