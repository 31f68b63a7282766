"""Progress bars of commands that do not know the amount of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tqdm import tqdm

from dynamo.extending import Progress


@contextmanager
def progress_bars(*, shown: bool) -> Iterator[Progress]:
    """One bar on stderr for each thing that is done."""
    with ExitStack() as open_bars:
        bars: dict[str, tqdm[Any]] = {}

        def progress(what: str, count: int) -> None:
            if what not in bars:
                bars[what] = open_bars.enter_context(tqdm(desc=what, unit="", disable=not shown))
            bars[what].update(count)

        yield progress
