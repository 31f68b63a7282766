"""What long commands share: progress bars, and an orderly end after a signal."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

from dynamo.tables.findings import Progress, unseen

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
        for item in before:
            signal.signal(item, signal.SIG_DFL)
        stop.set()

    handled = [item for item in _SIGNALS if signal.getsignal(item) is not signal.SIG_IGN]
    before = {item: signal.signal(item, handle) for item in handled}
    try:
        yield stop
    finally:
        for key, handler in before.items():
            signal.signal(key, handler)


@contextmanager
def progress_bars(*, shown: bool = True) -> Iterator[Progress]:
    """A progress bar on stderr for each step of a command, if stderr is a terminal.

    Needs tqdm, which the extras `accounts` and `uploads` install; without it, nothing is shown.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        yield unseen
        return

    with ExitStack() as open_bars:
        bars: dict[str, tqdm] = {}

        def progress(what: str, count: int) -> None:
            if what not in bars:
                bars[what] = open_bars.enter_context(
                    tqdm(desc=what, unit="", disable=None if shown else True)
                )
            bars[what].update(count)

        yield progress
