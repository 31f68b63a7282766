"""Starts the engines of the suite, each on a free port."""

import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynamo.client.engine import free_port as free_port, ministack_environment

BIN = Path(sys.executable).parent

#: One request at a time: its own program serves several, and moto is not thread-safe.
_MOTO = """
import sys
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
app = DomainDispatcherApplication(create_backend_app)
run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=False)
"""

#: Processes that write no tables themselves: the engines that were started here, the fork server,
#: and the helper that makes PDFs.
processes: weakref.WeakSet[subprocess.Popen[bytes]] = weakref.WeakSet()


@contextmanager
def running(name: str, folder: Path | None = None) -> Iterator[str]:
    """An engine by name (dynoxide, ministack, moto) or URL; yields its URL.

    s3 and ssm are ministack's services of these names. dynoxide keeps its data in `folder`, or in
    memory without one.
    """
    if name.startswith("http"):
        yield name
        return
    port = free_port()
    process = start(name, port, folder)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def start(name: str, port: int, folder: Path | None = None) -> subprocess.Popen[bytes]:
    """Start an engine on `port` and wait until it listens."""
    command, env = _command(name, port, folder)
    process = subprocess.Popen(
        command,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tempfile.gettempdir(),
    )
    processes.add(process)
    _wait_until_listening(process, port)
    return process


class Durable:
    """A dynoxide that can be killed and started again, with its port and data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process = start("dynoxide", self._port, folder)

    @property
    def url(self) -> str:
        """Its URL, which stays the same."""
        return f"http://127.0.0.1:{self._port}"

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill it and start it again; it forgets all request tokens."""
        self.kill()
        self._process = start("dynoxide", self._port, self._folder)


def _command(name: str, port: int, folder: Path | None) -> tuple[list[str], dict[str, str]]:
    if name == "dynoxide":
        file = [] if folder is None else ["--db-path", str(folder / "dynamodb.sqlite")]
        return [str(dynoxide()), "serve", "--port", str(port), *file], {}
    if name == "moto":
        return [sys.executable, "-P", "-c", _MOTO, str(port)], {}
    if name in ("ministack", "s3", "ssm"):
        service = name.replace("ministack", "dynamodb")
        settings = ministack_environment(service, port) | {"BIND_HOST": "127.0.0.1"}
        return [str(BIN / "ministack")], settings
    raise ValueError(f"no engine is called {name}")


def dynoxide() -> Path:
    """The binary that `make test` installs."""
    system = {"Linux": "linux", "Darwin": "darwin"}[platform.system()]
    cpu = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return Path(sys.prefix) / "node_modules" / "@dynoxide" / f"{system}-{cpu}" / "dynoxide"


def is_listening(port: int) -> bool:
    """Whether a program listens on a port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_until_listening(process: subprocess.Popen[bytes], port: int) -> None:
    ends_at = time.monotonic() + 120
    while time.monotonic() < ends_at:
        if process.poll() is not None:
            raise RuntimeError(f"The engine ended at once, with code {process.returncode}.")
        if is_listening(port):
            return
        time.sleep(0.02)
    process.kill()
    raise RuntimeError("The engine did not listen within two minutes.")
