"""What the commands of this app share: how they end when a lock is refused."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError

from dynamo.management.base import DynamoCommand
from locks.exceptions import BadLockName, LockError
from locks.records import checked_name

#: Who warns that a lease is not renewed, so far, and that it is lost.
LEASE_LOGGERS = ("locks.heartbeats", "locks.leases")


class LockCommand(DynamoCommand):
    """Says in one line on stderr what was refused, and exits 1."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: what a lock refused.
        """
        try:
            return super().execute(*args, **options)
        except LockError as error:
            raise CommandError(" ".join(str(error).split())) from error


@contextmanager
def lease_warnings_unsaid() -> Iterator[None]:
    """Keep back what is warned of a lease, where the command says itself what became of it."""
    loggers = [logging.getLogger(name) for name in LEASE_LOGGERS]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


def lock_name(text: str) -> str:
    """The name of a lock; one that none can have is a usage error."""
    try:
        return checked_name(text)
    except BadLockName as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def seconds(text: str) -> float:
    """A time from 0 on, such as 2 or 0.5; anything else is a usage error."""
    if not (text.isascii() and text.replace(".", "", 1).isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return float(text)
