"""Ctrl-C and TERM, noted instead of breaking off in the middle of a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Let the first Ctrl-C or TERM set the event; a second one ends the process at once.

    A signal that is ignored (a job in the background, `nohup`) stays ignored.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # only the main thread is told of signals
        return

    def note(_number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        stop.set()

    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, note) for each in heard}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
