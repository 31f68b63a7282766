"""A process that has imported the site, and forks itself into the commands that tests start.

    python -m tests.zygote SOCKET

A start costs some hundredths of a second of CPU, where an interpreter that imports Django and
botocore anew costs a whole one. What it forks is a process of its own like any other: a session,
standard streams, an environment, an end. What it cannot show is what an interpreter does before it
runs `manage.py`; `tests.commands` starts one for that.

Nothing else runs in it, no thread and no client, so its forks have nothing of tests.
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
import socket
import subprocess
import sys
import termios
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests import engines, touched

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120


class Forked:
    """A command that was started; `code` waits for its end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self.pid = int(self._told())

    def _told(self) -> str:
        told = self._channel.recv(64).decode()
        assert told, "the zygote has ended"
        return told

    def code(self) -> int:
        """Its exit code, the negative number of the signal that ended it; it is asked for once."""
        return int(self._told())

    def kill(self) -> None:
        """End it, if it still runs."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, 9)


class Zygote:
    """The one of this process, started on first use."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: The suite's own.
        self._environment = _settled(os.environ)

    def fork(
        self, arguments: Sequence[str], streams: Sequence[int], *, terminal: bool = False
    ) -> Forked | None:
        """Run `manage.py` with these standard streams; None where its settings would differ."""
        if _settled(os.environ) != self._environment:
            return None
        if self._process is None:
            self._start()
        order = {"arguments": arguments, "env": dict(os.environ), "terminal": terminal}
        socket.send_fds(self._channel, [json.dumps(order).encode()], streams)
        touched.another_writes()
        return Forked(self._channel)

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(SECONDS)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.zygote", str(theirs.fileno())],
                cwd=ROOT,
                env=os.environ | {"PYTHONUTF8": "1"},
                pass_fds=[theirs.fileno()],
            )
        # Its forks write, of which it is told when they are started.
        engines.processes.add(self._process)

    def end(self) -> None:
        """End it, if it was started."""
        if self._process is not None:
            self._channel.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def _settled(environment: Any) -> dict[str, str]:
    """What the settings may depend on: they are read when the zygote starts, endpoints later."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith(("AWS_ENDPOINT_URL_", "PYTEST_"))
    }


def serve(channel: socket.socket) -> list[str]:
    """Fork, again and again; comes back in a child alone, with the arguments of its command."""
    while True:
        message, streams, _flags, _address = socket.recv_fds(channel, 1 << 20, 3)
        if not message:
            os._exit(0)
        order = json.loads(message)
        pid = os.fork()
        if not pid:
            channel.close()
            _become(order, streams)
            return list(order["arguments"])
        for stream in streams:
            os.close(stream)
        channel.send(str(pid).encode())
        _pid, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Have the session, the streams and the environment that were ordered."""
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
    # As an interpreter opens them when it starts, in its UTF-8 mode.
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
        if isinstance(app, str) and not app.startswith("django.core"):
            load_command_class(app, name)


zygote = Zygote()

if __name__ == "__main__":
    prepare()
    sys.argv[:] = ["manage.py", *serve(socket.socket(fileno=int(sys.argv[1])))]
    runpy.run_path("manage.py", run_name="__main__")
