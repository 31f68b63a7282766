"""What long commands share: progress bars, and ending in order when they are asked to."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

from tqdm import tqdm

from dynamo.tables.findings import Progress

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """The first Ctrl-C or TERM sets the event; a second one ends the process at once.

    A signal that is ignored (a background job, `nohup`) stays ignored.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread can handle signals
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        stop.set()

    handled = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, handle) for each in handled}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def progress_bars(*, shown: bool = True) -> Iterator[Progress]:
    """One bar on stderr for each thing that is done, if that is a terminal."""
    with ExitStack() as open_bars:
        bars: dict[str, tqdm[Any]] = {}

        def progress(what: str, count: int) -> None:
            if what not in bars:
                bars[what] = open_bars.enter_context(
                    tqdm(desc=what, unit="", disable=None if shown else True)
                )
            bars[what].update(count)

        yield progress
