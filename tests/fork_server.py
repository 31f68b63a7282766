"""A process with packages imported, which forks for each program that a test starts.

    python -m tests.fork_server SOCKET

It has imported Django, botocore and other packages, and nothing of ours; its forks read the
settings of their own environment and import our modules from their own folder. `listlocks` takes
0.19 s of CPU as a fork and 0.67 s in a new interpreter, and `make test` starts 120 programs: that
saves half a minute of two cores. A fork has its own session, standard streams, environment and exit
code. Tests of what an interpreter loads start a new one instead.

No thread and no client runs in a fork server, so its forks inherit nothing from tests.
"""

import fcntl
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, NoReturn

from botocore.session import Session

from tests import botocore_files, engines, written_tables
from tests.fonts import with_fonts
from tests.forked import Forked

ROOT = Path(__file__).resolve().parent.parent


#: What the site imports most of its packages by, without reading settings.
PACKAGES = (
    "argon2",
    "babel.numbers",
    "boto3.session",
    "django.contrib.admin",
    "django.contrib.auth.management",
    "django.contrib.messages.storage.fallback",
    "django.contrib.sessions.middleware",
    "django.contrib.staticfiles.storage",
    "django.core.mail.backends.smtp",
    "django.core.management.commands.makemigrations",
    "django.core.management.commands.runserver",
    "django.db.backends.dummy.base",
    "django.db.models",
    "django.test",
    "django.views.defaults",
    "django.views.generic",
    "environ",
    "pynamodb.models",
    "whitenoise.middleware",
)


class ForkServer:
    """The fork server of this process, which is started on first use."""

    def __init__(self) -> None:
        self._started: tuple[subprocess.Popen[bytes], socket.socket] | None = None
        self._one_at_a_time = Lock()

    def fork(
        self,
        program: str,
        arguments: Sequence[str],
        streams: Sequence[int],
        *,
        ours: Sequence[IO[str] | None] = (None, None, None),
        env: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        terminal: bool = False,
        job: bool = False,
    ) -> Forked:
        """Run a script, a module or `-c` with these standard streams; `ours` are our ends of them.

        `env` is its whole environment, instead of ours. It runs in `folder`, and imports from it.
        A `job` has a process group of its own in our session, so that it can be stopped.
        """
        order = {
            "program": program,
            "arguments": arguments,
            "env": with_fonts(env),
            "folder": str(folder),
            "terminal": terminal,
            "job": job,
        }
        told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tells, self._one_at_a_time:
            sent = [*streams, tells.fileno()]
            socket.send_fds(self._channel(), [json.dumps(order).encode()], sent)
        forked = Forked(told, ours)
        written_tables.another_writes(forked)
        return forked

    def _channel(self) -> socket.socket:
        if self._started is None:
            channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
                    cwd=ROOT,
                    env=os.environ | {"PYTHONUTF8": "1"},
                    pass_fds=[theirs.fileno()],
                )
            # It writes nothing itself; its forks are noted when they start.
            engines.processes.add(process)
            self._started = process, channel
        return self._started[1]

    def run(
        self,
        program: str,
        *arguments: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        folder: Path = ROOT,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        with TemporaryFile() as said, TemporaryFile() as out, TemporaryFile() as err:
            said.write(stdin)
            said.seek(0)
            streams = [said.fileno(), out.fileno(), err.fileno()]
            process = self.fork(program, arguments, streams, env=env, folder=folder)
            try:
                code = process.wait()
            except TimeoutError:
                process.kill()
                self.end()
                raise
            out.seek(0)
            err.seek(0)
            printed = out.read().decode(), err.read().decode()
            return subprocess.CompletedProcess([program, *arguments], code, *printed)

    def end(self) -> None:
        """End the fork server, if it was started."""
        if self._started is not None:
            process, channel = self._started
            self._started = None
            channel.close()
            process.kill()
            process.wait()


def serve(orders: socket.socket) -> dict[str, Any]:
    """Fork for each order; returns in the forked program, with its order."""
    # The children that wait for programs are not waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(orders, 1 << 20, 4)
        if not message:
            os._exit(0)
        if not os.fork():
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            *streams, tells = descriptors
            pid = os.fork()
            if not pid:
                os.close(tells)
                order: dict[str, Any] = json.loads(message)
                _become(order, streams)
                return order
            _tell(pid, socket.socket(fileno=tells), streams)
        for descriptor in descriptors:
            os.close(descriptor)


def _tell(pid: int, channel: socket.socket, streams: list[int]) -> NoReturn:
    """Send the pid, wait for the process, and send its exit code."""
    for stream in streams:
        os.close(stream)
    channel.send(str(pid).encode())
    _pid, status = os.waitpid(pid, 0)
    # The test may have ended.
    with suppress(BrokenPipeError):
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Set the session, the streams, the environment and the folder of the order."""
    if order["job"]:
        os.setpgid(0, 0)
    else:
        os.setsid()
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
    for stream in set(streams) - {0, 1, 2}:
        os.close(stream)
    if order["terminal"]:
        # As a login shell does.
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(order["env"])
    # As an interpreter opens them in its UTF-8 mode.
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdout = open(  # noqa: SIM115
        1, "w", encoding=encoding, errors="surrogateescape", closefd=False
    )
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def import_packages() -> None:
    """Import packages, and forget our modules that this module needs."""
    for name in PACKAGES:
        # Some are for one system only.
        with suppress(ImportError):
            importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or sys.prefix
        if Path(file).is_relative_to(ROOT) and not Path(file).is_relative_to(sys.prefix):
            del sys.modules[name]


fork_server = ForkServer()


def load_client() -> None:
    """Import what a client needs, and keep the files of its service."""
    botocore_files.keep(setattr)
    Session().create_client("dynamodb", "us-east-1", endpoint_url="http://127.0.0.1:1")


if __name__ == "__main__":
    import_packages()
    load_client()
    # Forks share these objects as long as no collection touches them.
    gc.freeze()
    ordered = serve(socket.socket(fileno=int(sys.argv[1])))
    program = ordered["program"]
    folder = ordered["folder"]
    sys.argv[:] = [program, *ordered["arguments"]]
    os.chdir(folder)
    sys.path[:1] = [folder, *filter(None, ordered["env"].get("PYTHONPATH", "").split(os.pathsep))]
    if program == "-c":
        del sys.argv[1]
        exec(ordered["arguments"][0], {"__name__": "__main__"})  # noqa: S102 - of a test
    elif program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
