"""`withlock`: a command that runs while its lock is held, on one of many machines at a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser

from locks.exceptions import LeaseLost, LockTaken
from locks.lock import LEASE_SECONDS, POLL_SECONDS, Lock
from locks.management.base import LockCommand, lease_warnings_unsaid, lock_name, seconds
from locks.management.running import GRACE_SECONDS, CannotRun, Signals, run_while_held

#: As sysexits.h has them: EX_TEMPFAIL (try later) and EX_SOFTWARE.
TAKEN, LOST = 75, 70


class Command(LockCommand):
    """Exits with COMMAND's code, 128+N where the signal N ended it.

    127 and 126 say that COMMAND is not there or cannot be run, 75 (or as told) that another held
    the lock all the time, 70 that the lease was lost.
    """

    help = "Run COMMAND while holding the lock NAME; LOCK_FENCE is in its environment."

    #: What follows the first --; from Python there is none.
    _command: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Take what follows the first -- away, as argparse would look for our options in it."""
        at = argv.index("--") if "--" in argv else len(argv)
        self._command = argv[at + 1 :]
        super().run_from_argv(argv[:at])

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the lock, and how to wait for it."""
        parser.usage = "%(prog)s [options] NAME -- COMMAND [ARGUMENT ...]"
        parser.add_argument("name", metavar="NAME", type=lock_name, help="the lock")
        parser.add_argument(
            "--wait",
            metavar="S",
            type=seconds,
            help="wait so many seconds for the lock; default: one lease and a poll",
        )
        parser.add_argument(
            "--lease",
            metavar="S",
            type=seconds,
            default=LEASE_SECONDS,
            help=f"hold it so many seconds beyond a crash, default {LEASE_SECONDS:g}",
        )
        parser.add_argument(
            "--grace",
            metavar="S",
            type=seconds,
            default=GRACE_SECONDS,
            help="when the lease is lost, so many seconds from SIGTERM to SIGKILL, "
            f"default {GRACE_SECONDS:g}",
        )
        parser.add_argument(
            "--conflict-exit-code",
            metavar="N",
            type=_exit_code,
            default=TAKEN,
            help=f"exit code where the lock is another's, default {TAKEN}",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Acquire, run, release, and end as COMMAND did."""
        lock = self._lock(options)
        try:
            with lease_warnings_unsaid(), Signals() as signals, lock as lease:
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
            raise CommandError("There is no command: it goes after --.", returncode=2)
        lease, wait = options["lease"], options["wait"]
        # Who passes its lock on quickly is looked at more often.
        poll = min(POLL_SECONDS, lease / 4)
        try:
            return Lock(options["name"], lease_seconds=lease, wait_seconds=wait, poll_seconds=poll)
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from error


def _with_its_lease(taken: LockTaken, wait_seconds: float) -> str:
    """That it is taken, and where we waited too little to know, that the holder may be dead."""
    if taken.for_ever or wait_seconds >= taken.lease_seconds:
        return str(taken)
    return (
        f"{taken} Its lease of {taken.lease_seconds:g} s is longer than the wait of "
        f"{wait_seconds:g} s, so a dead holder would not be outwaited."
    )


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is no exit code from 0 to 255")
    return int(text)
