"""One helper process for each process. It does work that takes much CPU time, such as a PDF.

The threads of a process share one core, so many such computations would delay all other pages. The
helper does one after the other. Accounts that rarely need it come first, and on Linux the system
prefers pages to it.

It is started with the first computation, and again after it has ended because it exceeded a limit
or was killed. It ends with its parent. It gets only the settings for texts, dates and fonts, and no
secrets from the environment.

A process that does one thing at a time needs no helper: see `compute_here`.
"""

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import django
from django.conf import settings

from dynamo import Busy
from dynamo.runtime.gates import Gate, let_pages_go_first, turn_passed_on
from dynamo.runtime.processes import PerProcess

#: The CPU time that one computation may take. The largest invoice takes one second.
CPU_SECONDS = 10
#: The time that it may take, including the start of the helper, even if all cores are busy.
SECONDS = 60
#: The memory of the helper. After the largest invoice it has 250 MB.
MOST_BYTES = 512 * 1024 * 1024

#: A computation waits for others for this time. Pages wait until their deadline, if that is
#: earlier.
WAIT_SECONDS = 60.0
#: The most computations that wait, and that wait for one account: a page, a download, a few mails.
WAITING, WAITING_OF_ACCOUNT = 96, 16

#: An idle helper checks this often whether its parent lives. Usually, the pipe reports this at
#: once.
LOOK_SECONDS = 5.0

#: The settings and the environment of the helper.
_SETTINGS = [
    "FORMAT_MODULE_PATH",
    "INVOICES_FONT_FOLDER",
    "LANGUAGES",
    "LANGUAGE_CODE",
    "LOCALE_PATHS",
    "TIME_ZONE",
    "USE_TZ",
]
_ENVIRONMENT = ("LD_LIBRARY_PATH", "PATH", "TMPDIR")

Result = TypeVar("Result")


class HelperEnded(Busy):
    """The helper ended before it had the result."""

    def __init__(self, code: int) -> None:
        super().__init__("a helper process")
        self.code = code

    def __str__(self) -> str:
        why = signal.strsignal(-self.code) if self.code < 0 else f"exit code {self.code}"
        return f"The helper process ended before it had the result ({why})."


class HelperFailed(Exception):
    """The function raised an exception in the helper. The text has its traceback."""


class _Helper:
    """The helper of this process. One thread at a time uses it, inside the gate."""

    def __init__(self) -> None:
        self.gate = Gate("a computation", 1, WAITING, per=WAITING_OF_ACCOUNT)
        self.process: subprocess.Popen[bytes] | None = None
        self._pipe: Any = None

    def compute(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Compute in the helper. The caller is inside `gate`."""
        process = self.process
        if is_new := process is None or process.poll() is not None:
            process = self._start()
        # The timer also ends a helper that does not read or write any more.
        watch = threading.Timer(SECONDS, process.kill)
        watch.start()
        try:
            if is_new:
                values = {name: getattr(settings, name) for name in _SETTINGS}
                self._pipe.send((values, MOST_BYTES))
            self._pipe.send((function, arguments, CPU_SECONDS, SECONDS))
            result, failure = self._pipe.recv()
        except (EOFError, OSError):
            process.kill()
            raise HelperEnded(process.wait()) from None
        finally:
            watch.cancel()
        if failure:
            raise HelperFailed(failure)
        return result

    def _start(self) -> subprocess.Popen[bytes]:
        # Imported here, because most processes need no helper.
        from multiprocessing.connection import Pipe

        # Typst would use all cores.
        env = {"PYTHONPATH": os.pathsep.join(sys.path), "RAYON_NUM_THREADS": "1"}
        env |= {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._pipe, theirs = Pipe()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(os.getpid())],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=env,
            )
        return self.process


_helper = PerProcess(_Helper)
_is_here = False


def compute_here() -> None:
    """Let this process compute for itself."""
    global _is_here
    _is_here = True


def run_in_helper(function: Callable[..., Result], *arguments: object, account: str = "") -> Result:
    """The result of `function`, which is named in a module, for `arguments`, from the helper.

    A page passes its turn on in the meantime. Accounts take turns. A call without an account counts
    as a separate account.

    Raises:
        Busy: it did not begin in time.
        HelperEnded: it exceeded `SECONDS`, `CPU_SECONDS` or `MOST_BYTES`, or was killed.
        HelperFailed: it raised an exception.
    """
    if _is_here:
        return function(*arguments)
    helper = _helper()
    with turn_passed_on(), helper.gate.inside(account or object(), WAIT_SECONDS):
        result: Result = helper.compute(function, *arguments)
        return result


# The helper process ------------------------------------------------------------------------------


def _serve(parent: int) -> None:
    """Compute the calls from the pipe, which is the standard input, until the parent ends."""
    from multiprocessing.connection import Connection

    # These signals reach the whole process group, but the parent may still need a result.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    pipe = Connection(0)
    values, most_bytes = pipe.recv()
    # Some systems cannot limit the memory.
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    settings.configure(**values)
    django.setup(set_prefix=False)
    let_pages_go_first()
    while True:
        # The pipe is still open if a process that was forked from the parent has it as well.
        while not pipe.poll(LOOK_SECONDS):
            if os.getppid() != parent:
                return
        function, arguments, cpu_seconds, seconds = pipe.recv()
        # The parent limits the time as well, but may be killed in the meantime.
        _limit_time(cpu_seconds, seconds)
        pipe.send(_outcome(function, arguments))
        _limit_time(0, 0)


def _outcome(function: Callable[..., object], arguments: tuple[object, ...]) -> tuple[object, str]:
    """The result, or the traceback of an error."""
    try:
        return function(*arguments), ""
    except MemoryError:
        raise
    except Exception:  # the caller gets it
        return None, traceback.format_exc()


def _limit_time(cpu_seconds: float, seconds: float) -> None:
    """End this process after this CPU time or elapsed time, even in the code of a library."""
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(int(sys.argv[1]))
