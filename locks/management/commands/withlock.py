"""`withlock`: run a command while holding a lock, on one of many machines at a time."""

import argparse
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self

from django.core.management.base import CommandError, CommandParser

from dynamo.management.base import DynamoCommand, argument, seconds
from locks.exceptions import LeaseLost, LockTaken
from locks.leases import Lease
from locks.lock import LEASE_SECONDS, POLL_SECONDS, Lock
from locks.requests import checked_name

#: From sysexits.h: EX_TEMPFAIL (try again later) and EX_SOFTWARE.
TAKEN, LOST = 75, 70

#: The time from SIGTERM to SIGKILL after the lease is lost.
GRACE_SECONDS = 10.0

#: A refused renewal is noticed after at most this time. The end of the lease or of the command is
#: noticed at once.
LOOK_SECONDS = 0.25

_TO_ALL = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_TO_ONE = (signal.SIGUSR1, signal.SIGUSR2)
#: A terminal sends these to all its foreground processes, so the command gets them as well.
_FROM_TERMINAL = {signal.SIGINT, signal.SIGQUIT}

_ENVIRONMENT = Path("/proc/self/environ")


class Command(DynamoCommand):
    """Exits with the exit code of COMMAND, or 128 + N if signal N ended it.

    127 means that COMMAND was not found, 126 that it cannot be run, 75 (`--conflict-exit-code`)
    that another process held the lock until the wait ended, and 70 that the lease was lost.
    """

    help = "Run COMMAND while holding the lock NAME; LOCK_FENCE is in its environment."

    #: The words after the first --. There are none if the command is called from Python.
    _command: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Remove the words after the first --, in which argparse would find our options."""
        at = argv.index("--") if "--" in argv else len(argv)
        self._command = argv[at + 1 :]
        super().run_from_argv(argv[:at])

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the lock, and the options of the wait."""
        parser.usage = "%(prog)s [options] NAME -- COMMAND [ARGUMENT ...]"
        parser.add_argument("name", metavar="NAME", type=argument(checked_name), help="the lock")
        parser.add_argument(
            "--wait",
            metavar="S",
            type=seconds,
            help="how many seconds to wait for the lock; default: one lease and one poll",
        )
        parser.add_argument(
            "--lease",
            metavar="S",
            type=seconds,
            default=LEASE_SECONDS,
            help=f"how many seconds others wait if we crash, default {LEASE_SECONDS:g}",
        )
        parser.add_argument(
            "--grace",
            metavar="S",
            type=seconds,
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

    def handle(self, *args: object, **options: Any) -> None:
        """Acquire the lock, run COMMAND, release the lock, and exit as COMMAND did."""
        lock = self._lock(options)
        logger = logging.getLogger("locks")
        try:
            with ExitStack() as stack, _Signals() as signals:
                # Without warnings about the lease: the command itself reports what happened.
                stack.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.ERROR)
                with lock as lease:
                    code = _run_while_held(lease, self._command, signals, options["grace"])
        except LockTaken as taken:
            raise CommandError(str(taken), returncode=options["conflict_exit_code"]) from taken
        except LeaseLost as lost:
            raise CommandError(f"{lost} The command has ended.", returncode=LOST) from lost
        sys.exit(code)

    def _lock(self, options: dict[str, Any]) -> Lock:
        if not self._command:
            raise CommandError("Add a command after --.", returncode=2)
        lease = options["lease"]
        wait = options["wait"]
        # A short lease is checked more often.
        poll = min(POLL_SECONDS, lease / 4)
        try:
            return Lock(options["name"], lease_seconds=lease, wait_seconds=wait, poll_seconds=poll)
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from error


def _exit_code(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 255):
        raise argparse.ArgumentTypeError(f"{text!r} is not an exit code from 0 to 255")
    return int(text)


class _Signals:
    """Collects the signals that are meant for the command, within its `with` block.

    It is for the main thread only. Until `begin_to_pass_on`, there is no command, and a signal N
    ends this process with 128 + N. Signals that this process ignores (nohup) are ignored by the
    command as well.
    """

    def __init__(self) -> None:
        self._has_command = False
        self._before: dict[int, Any] = {}
        # This is a SimpleQueue, because a signal handler may put a number while `wait` takes
        # another one.
        self._numbers: SimpleQueue[int] = SimpleQueue()

    def __enter__(self) -> Self:
        for item in (*_TO_ALL, *_TO_ONE, signal.SIGCHLD):
            if signal.getsignal(item) is not signal.SIG_IGN or item == signal.SIGCHLD:
                self._before[item] = signal.signal(item, self._arrived)
        return self

    def __exit__(self, *_raised: object) -> None:
        for key, handler in self._before.items():
            signal.signal(key, handler)

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if not (self._has_command or number == signal.SIGCHLD):
            raise SystemExit(128 + number)
        self._numbers.put(number)

    def begin_to_pass_on(self, *, in_own_group: bool) -> None:
        self._has_command = True
        if in_own_group:
            # SIGTSTP would stop only this process, and the lease would end while the command runs.
            self._before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._arrived)

    def wait(self, seconds: float) -> int | None:
        """Wait for a signal, for at most `seconds`; return its number, None without one."""
        with suppress(Empty):
            return self._numbers.get(timeout=seconds)
        return None


def _run_while_held(
    lease: Lease, command: Sequence[str], signals: _Signals, grace_seconds: float
) -> int:
    """Run `command` to its end; return its exit code, or 128 + N if signal N ended it.

    It gets the environment with which this process was started, LOCK_FENCE, and the same standard
    streams. On a terminal, it belongs to our process group, so that Ctrl-Z stops both. Otherwise,
    it leads its own group, which is ended with it if the lease is lost, and Ctrl-Z is ignored.

    Raises:
        LeaseLost: the lease is over; the command has ended.
        CommandError: the command did not start.
    """
    in_own_group = not os.isatty(0)
    signals.begin_to_pass_on(in_own_group=in_own_group)
    child = _Child(command, _environment(lease.fence), in_own_group=in_own_group)
    try:
        while (code := child.exit_code()) is None:
            number = signals.wait(min(LOOK_SECONDS, lease.remaining_seconds))
            if number is not None:
                child.pass_on(number)
            lease.check()
    finally:
        child.end(grace_seconds)
    return code


class _Child:
    def __init__(
        self, command: Sequence[str], env: dict[bytes, bytes], *, in_own_group: bool
    ) -> None:
        self._in_own_group = in_own_group
        group = 0 if in_own_group else None
        try:
            self._process = subprocess.Popen(command, env=env, process_group=group)
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            said = f"Cannot run {command[0]!r}: {error.strerror or error}."
            raise CommandError(said, returncode=code) from error

    def exit_code(self) -> int | None:
        """The exit code in the form of a shell; None while the command runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def pass_on(self, number: int) -> None:
        """Send a signal that this process received."""
        if number in _TO_ONE:
            self._process.send_signal(number)
        elif number in _TO_ALL and (self._in_own_group or number not in _FROM_TERMINAL):
            self._send(number)

    def end(self, grace_seconds: float) -> None:
        """End the command and its group, unless the command has ended by itself."""
        if self._process.poll() is not None:
            return
        self._send(signal.SIGTERM)
        # A stopped process does not handle SIGTERM.
        self._send(signal.SIGCONT)
        ends_at = time.monotonic() + grace_seconds
        while time.monotonic() < ends_at and (self._process.poll() is None or self._send(0)):
            time.sleep(0.02)
        self._send(signal.SIGKILL)
        self._process.wait()

    def _send(self, number: int) -> bool:
        """Send a signal, 0 for none; return whether there was a process to get it."""
        if not self._in_own_group:
            self._process.send_signal(number)
            return self._process.returncode is None
        # Other processes of the group may still run after its leader has ended.
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def _environment(fence: int) -> dict[bytes, bytes]:
    """The environment with which this process was started, without later variables and `.env`.

    Only /proc shows it. On systems without /proc, the current environment is used.
    """
    ours = dict(os.environb)
    if _ENVIRONMENT.exists():
        pairs = (part.partition(b"=") for part in _ENVIRONMENT.read_bytes().split(b"\0") if part)
        ours = {name: value for name, _sign, value in pairs}
    return ours | {b"LOCK_FENCE": str(fence).encode()}
