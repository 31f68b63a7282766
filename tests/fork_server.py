"""A process that has imported the site, and forks itself for each program that a test starts.

    python -m tests.fork_server SOCKET

A fork costs some hundredths of a second of CPU; an interpreter that imports Django and botocore
costs a second. A fork has its own session, standard streams, environment and exit code. Tests of
what an interpreter does before it runs `manage.py` start one (`tests.commands`).

No thread and no client runs in the fork server, so its forks inherit nothing from tests.
"""

from __future__ import annotations

import fcntl
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
from threading import Lock
from typing import IO, Any, NoReturn

from dynamo._internal.client.addressing import TEST_ENDPOINT
from tests import engines, written_tables
from tests.forked import Forked

ROOT = Path(__file__).resolve().parent.parent


class ForkServer:
    """The fork server of this process, which is started on first use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: That of the suite.
        self._environment = _settled(os.environ)
        self._one_at_a_time = Lock()

    def fork(
        self,
        program: str,
        arguments: Sequence[str],
        streams: Sequence[int],
        *,
        ours: Sequence[IO[str] | None] = (None, None, None),
        env: Mapping[str, str] | None = None,
        terminal: bool = False,
    ) -> Forked | None:
        """Run `manage.py` or a module with these standard streams; `ours` are our ends of them.

        Returns None if its settings would differ, as the fork server has read them already.
        """
        environment = dict(os.environ if env is None else env)
        if _settled(environment) != self._environment:
            return None
        order = {
            "program": program,
            "arguments": arguments,
            "env": environment,
            "terminal": terminal,
        }
        told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tells, self._one_at_a_time:
            if self._process is None:
                self._start()
            sent = [*streams, tells.fileno()]
            socket.send_fds(self._channel, [json.dumps(order).encode()], sent)
        forked = Forked(told, ours)
        written_tables.another_writes(forked)
        return forked

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
                cwd=ROOT,
                env=os.environ | {"PYTHONUTF8": "1"},
                pass_fds=[theirs.fileno()],
            )
        # It writes nothing itself; its forks are noted when they start.
        engines.processes.add(self._process)

    def end(self) -> None:
        """End the fork server, if it was started."""
        if self._process is not None:
            self._channel.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def _settled(environment: Any) -> dict[str, str]:
    """What the settings depend on: they are read at the start, endpoints later."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("AWS_ENDPOINT_URL_", TEST_ENDPOINT, "PYTEST_"))
    }


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
    """Set the session, the streams and the environment of the order."""
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
    sys.stdout = open(  # noqa: SIM115
        1, "w", encoding="utf-8", errors="surrogateescape", closefd=False
    )
    sys.stderr = open(  # noqa: SIM115
        2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def prepare() -> None:
    """Import what commands need."""
    import django
    from django.core.management import get_commands, load_command_class

    django.setup()
    for name, app in get_commands().items():
        if not app.startswith("django.core"):
            load_command_class(app, name)


fork_server = ForkServer()

if __name__ == "__main__":
    prepare()
    ordered = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv[:] = [ordered["program"], *ordered["arguments"]]
    if ordered["program"].endswith(".py"):
        runpy.run_path(ordered["program"], run_name="__main__")
    else:
        runpy.run_module(ordered["program"], run_name="__main__", alter_sys=True)
