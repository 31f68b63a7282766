"""Helpers of long commands: progress bars, stored state, atomic files, signals."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from types import FrameType
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.client import bulk
from dynamo.client.plain import PlainModel, all_models
from dynamo.tables.findings import Progress, unseen
from dynamo.wire.types import Item
from dynamo.wire.values import decoded, encoded

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """The first Ctrl-C or TERM sets the event; a second one ends the process at once.

    A signal that is ignored (a background job, `nohup`) is still ignored.
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


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a path in the folder of `file`. The file that the block writes there replaces `file`.

    The file is replaced as a whole, so no reader finds half of it. If two processes write it at
    once, the later one wins. A device or a pipe is written directly.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    file = file.resolve()  # a symbolic link is kept
    new = file.with_name(f"{file.name}.{token_hex(4)}.new")
    try:
        yield new
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def dumpable() -> dict[str, type[PlainModel]]:
    """The models whose items a dump has, by their label in small letters."""
    models = [model for model in all_models() if not model._not_dumped]
    tables = {model: model.table() for model in models}
    return {
        model._meta.label_lower: model
        for model in sorted(models, key=lambda model: model._meta.label)
        # The items of a base include those of its subclasses in the same table.
        if not any(tables.get(base) == tables[model] for base in model.__mro__[1:])
    }


def add_state(parser: CommandParser) -> None:
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="where to keep how far it came; the same command continues there after an end by "
        "Ctrl-C or an error",
    )


class State:
    """The progress of a command. If a `file` is named, it is stored there for the next call."""

    def __init__(self, file: str | None, asked: Sequence[str]) -> None:
        self.file = file and Path(file)
        self.values: dict[str, Any] = {"asked": [*asked]}
        if self.file and self.file.exists():
            with suppress(LookupError, TypeError, ValueError):
                values = decoded(self.file.read_text(encoding="utf-8"))
                if values["asked"] == self.values["asked"]:
                    self.values = values
                    return
            raise CommandError(f"{file} is of another call. Delete it to begin again.")

    def save(self, **values: object) -> None:
        """Store `values`, in addition to those that were stored before."""
        self.values |= values
        if self.file:
            with replacing(self.file) as new:
                new.write_text(encoded(self.values), encoding="utf-8")

    def places(self) -> list[Item | None]:
        """The stored `places` of `bulk.pages`; without them, those before the first page."""
        return self.values.get("places") or [{}] * bulk.SEGMENTS

    def end(self) -> None:
        """Delete the state, because the command is complete."""
        if self.file:
            self.file.unlink(missing_ok=True)
