"""Shared by the commands: their destination argument, signals, and errors of S3."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from uploads.exceptions import BadDestination, UploadError
from uploads.sources import Destination
from web.s3 import StorageFailed

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class UploadCommand(DynamoCommand):
    """Reports an error of S3 in one line on stderr, and exits 1."""

    # The checks concern pages and templates, and take a quarter of the start time.
    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (UploadError, StorageFailed) as error:
            raise CommandError(" ".join(str(error).split())) from error


def destination(text: str) -> Destination:
    """The type of an argument `s3://BUCKET/PREFIX`; anything else is a usage error."""
    try:
        return Destination.parse(text)
    except BadDestination as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
