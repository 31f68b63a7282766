"""`withlock`: run a command while holding a lock, on one of many machines at a time."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand
from locks._internal.lock import LEASE_SECONDS, POLL_SECONDS, Lock
from locks.exceptions import LeaseLost, LockTaken
from locks.management.base import lock_name
from locks.management.running import GRACE_SECONDS, CannotRun, Signals, run_while_held

#: From sysexits.h: EX_TEMPFAIL (try again later) and EX_SOFTWARE.
TAKEN, LOST = 75, 70


class Command(DynamoCommand):
    """Exits with the exit code of COMMAND, or 128 + N if signal N ended it.

    127: COMMAND was not found. 126: it cannot be run. 75 (`--conflict-exit-code`): another process
    held the lock until the wait ended. 70: the lease was lost.
    """

    help = "Run COMMAND while holding the lock NAME; LOCK_FENCE is in its environment."

    #: The words after the first --; none when called from Python.
    _command: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Keep the words after the first -- from argparse, which would find our options in them."""
        at = argv.index("--") if "--" in argv else len(argv)
        self._command = argv[at + 1 :]
        super().run_from_argv(argv[:at])

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the lock and how to wait for it."""
        parser.usage = "%(prog)s [options] NAME -- COMMAND [ARGUMENT ...]"
        parser.add_argument("name", metavar="NAME", type=lock_name, help="the lock")
        parser.add_argument(
            "--wait",
            metavar="S",
            type=_seconds,
            help="how many seconds to wait for the lock; default: one lease and one poll",
        )
        parser.add_argument(
            "--lease",
            metavar="S",
            type=_seconds,
            default=LEASE_SECONDS,
            help=f"how many seconds others wait if we crash, default {LEASE_SECONDS:g}",
        )
        parser.add_argument(
            "--grace",
            metavar="S",
            type=_seconds,
            default=GRACE_SECONDS,
            help="if the lease is lost, how many seconds from SIGTERM to SIGKILL, "
            f"default {GRACE_SECONDS:g}",
        )
        parser.add_argument(
            "--conflict-exit-code",
            metavar="N",
            type=_exit_code,
            default=TAKEN,
            help=f"exit code if another process holds the lock, default {TAKEN}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Acquire the lock, run COMMAND, release the lock, and exit as COMMAND did."""
        lock = self._lock(options)
        try:
            with _lease_warnings_off(), Signals() as signals, lock as lease:
                code = run_while_held(lease, self._command, signals, options["grace"])
        except LockTaken as taken:
            said = _with_its_lease(taken, lock.wait_seconds)
            raise CommandError(said, returncode=options["conflict_exit_code"]) from taken
        except LeaseLost as lost:
            raise CommandError(f"{lost} The command has ended.", returncode=LOST) from lost
        except CannotRun as error:
            raise CommandError(str(error), returncode=error.exit_code) from error
        sys.exit(code)

    def _lock(self, options: dict[str, Any]) -> Lock:
        if not self._command:
            raise CommandError("Add a command after --.", returncode=2)
        lease, wait = options["lease"], options["wait"]
        # A short lease is looked at more often.
        poll = min(POLL_SECONDS, lease / 4)
        try:
            return Lock(options["name"], lease_seconds=lease, wait_seconds=wait, poll_seconds=poll)
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from error


def _with_its_lease(taken: LockTaken, wait_seconds: float) -> str:
    """The error, with a hint if the wait was too short to get the lock of a crashed holder."""
    if taken.for_ever or wait_seconds >= taken.lease_seconds:
        return str(taken)
    return (
        f"{taken} Its lease of {taken.lease_seconds:g} s is longer than the wait of "
        f"{wait_seconds:g} s. If the holder crashed, wait longer."
    )


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit code from 0 to 255")
    return int(text)


def _seconds(text: str) -> float:
    if not (text.isascii() and text.replace(".", "", 1).isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return float(text)


@contextmanager
def _lease_warnings_off() -> Iterator[None]:
    """Suppress the warnings about a lease, because the command itself reports what happened."""
    logger = logging.getLogger("locks")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
