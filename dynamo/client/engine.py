"""The local engine: a DynamoDB on this machine, shared by every process of a checkout.

`settings.DYNAMODB_LOCAL_DIR` holds its state:

    engine.json        pid, address and program of the last engine; kept for the address, and
                       locked (flock) by the engine while it runs
    engine.lock        flock, held while one process starts or stops the engine
    engine.log         what the engine printed since it started
    dynamodb.sqlite    the data (dynoxide only: ministack stores nothing)

Each test run has its own engine, which stores nothing and ends with its process
(`start_temporary`).

The data contains password hashes, so other users of the machine have no access to the folder.

The engine answers all clients that find it, and a web page that is open in a browser can search the
ports of an address. Therefore, the engine listens on a random one of the 16 million loopback
addresses of Linux (127.0.0.0/8). On macOS, which has only 127.0.0.1, it is not hidden.

A pid does not identify the engine, because the system uses it again. The engine inherits the lock
on `engine.json`. While the lock is held, the pid in this file is the engine's.
"""

import errno
import fcntl
import importlib.util
import json
import os
import platform
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal

from django.conf import settings

from dynamo.exceptions import LocalEngineFailed

Program = Literal["dynoxide", "ministack"]

#: The address on systems that have only one.
HOST = "127.0.0.1"
#: dynoxide does not start if another program has its port at any address.
_ALL = ""
START_SECONDS = 10.0
STOP_SECONDS = 5.0

#: A port can be in use for this time after its process has lost its command line.
PORT_RELEASE_SECONDS = 0.3
POLL_SECONDS = 0.01

#: The range of ports for engines. It is below the ports that the system gives to connections and to
#: servers without a fixed port, so that no other program gets one before the engine listens.
#: Source: ip(7), ip_local_port_range.
_PORTS = range(15_000, 32_000)
# `random` may have the same seed in several processes.
_chance = random.SystemRandom()

#: Runs a program until it ends, or until the pipe at the standard input is closed. The pipe is
#: closed when the process at its other end ends, however it ends.
_UNTIL_CLOSED = """
exec 3<&0
"$@" 3<&- & program=$!
(read -r _ <&3; kill $program) & reader=$!
wait $program; code=$?
kill $reader
exit $code
"""


@dataclass(frozen=True)
class Running:
    pid: int
    port: int
    program: Program
    host: str

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"


def endpoint() -> str:
    """The engine's URL; starts the engine if it is not running.

    Raises:
        LocalEngineFailed: it is not running and could not be started.
    """
    return (status() or start()).endpoint


def status() -> Running | None:
    """The engine if it is running and takes connections, else None."""
    last = _last_started()
    return last if last and _is_alive() and _listens(last.host, last.port) else None


def start() -> Running:
    """Start the engine, or return the running one. Concurrent callers get the same one.

    It keeps running after this process, until `stop`. It uses the last engine's address if that is
    free, so that processes that knew the last engine find this one.

    Raises:
        LocalEngineFailed: none is installed, it ended at once, or it did not answer in time.
    """
    with _locked():
        running = status()
        if running is not None:
            return running
        last = _last_started()
        if last is not None:
            _end(last)
        return _launch(*_choose_address(last))


def stop() -> bool:
    """End the engine, and no other process; False if it was not running.

    Raises:
        LocalEngineFailed: its folder cannot be used, or it belongs to another system user.
    """
    with _locked():
        last = _last_started()
        return last is not None and _end(last)


@contextmanager
def _locked() -> Iterator[None]:
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)  # raises OSError if another user owns the folder
        with (folder / "engine.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # Closing the file is not enough: a child that was forked meanwhile would keep the
                # lock.
                fcntl.flock(lock, fcntl.LOCK_UN)
    except OSError as error:
        raise LocalEngineFailed(f"The local engine in {folder} failed: {error}") from error


def _folder() -> Path:
    # The path is resolved, so that a checkout with two paths has one engine.
    folder: Path = settings.DYNAMODB_LOCAL_DIR
    return folder.resolve()


def _last_started() -> Running | None:
    # The file may be damaged.
    with suppress(OSError, TypeError, ValueError):
        last = Running(**json.loads((_folder() / "engine.json").read_bytes()))
        if last.pid > 0 and last.port in range(1, 2**16) and IPv4Address(last.host).is_loopback:
            return last
    return None


def start_temporary() -> str:
    """Start an engine for tests and return its URL. It stores nothing and ends with this process.

    Forked children share it, and it ends with the last of them.

    Raises:
        LocalEngineFailed: as `start`.
    """
    program, executable = _installed()
    port = free_port()
    watched, _kept_open = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "engine.log")
        command = ["/bin/sh", "-c", _UNTIL_CLOSED, "sh", executable]
        command += _arguments(program, HOST, port, None)
        # ministack imports modules from its current folder, so others must not be able to write
        # there.
        child = _spawn(command, port, log, cwd=Path("/"), stdin=watched)
        os.close(watched)
        running = Running(child.pid, port, program, HOST)
        _wait_for(child, running, log)
    return running.endpoint


def _launch(host: str, port: int) -> Running:
    program, executable = _installed()
    folder = _folder()
    log = folder / "engine.log"
    command = [executable, *_arguments(program, host, port, folder)]
    new = folder / "engine.json.new"
    new.unlink(missing_ok=True)
    with new.open("w") as state:
        fcntl.flock(state, fcntl.LOCK_EX)
        # The engine is not started in the checkout, whose packages would shadow ministack's.
        child = _spawn(command, port, log, cwd=folder, keeps=[state.fileno()])
        running = Running(child.pid, port, program, host)
        json.dump(asdict(running), state)
    # The file is replaced as a whole, because `status` reads it without the lock of the folder. It
    # is written before the engine answers, so that the next process finds the engine if this one is
    # killed now.
    new.replace(folder / "engine.json")
    _wait_for(child, running, log)
    return running


def _spawn(
    command: list[str],
    port: int,
    log: Path,
    *,
    cwd: Path,
    stdin: int = subprocess.DEVNULL,
    keeps: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=os.environ | ministack_environment("dynamodb", port),
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=keeps,
        )


def ministack_environment(services: str, port: int) -> dict[str, str]:
    """The variables that ministack reads from its environment."""
    return {
        "PERSIST_STATE": "0",
        "SERVICES": services,
        "GATEWAY_PORT": str(port),
        # Otherwise it also listens on port 8883 of all addresses, for any SERVICES.
        "IOT_MTLS_ENABLED": "0",
    }


def _wait_for(child: subprocess.Popen[bytes], running: Running, log: Path) -> None:
    """Wait until the engine, or the shell that runs it, answers."""

    def has_ended_or_answers() -> bool:
        # Each program prints its URL when it has the port. An answer from the port is not enough:
        # another program may have taken it first.
        is_printed = running.endpoint.encode() in log.read_bytes()
        answers = is_printed and _listens(running.host, running.port)
        return answers or child.poll() is not None

    in_time = _wait_until(has_ended_or_answers, START_SECONDS)
    if child.poll() is not None:
        raise LocalEngineFailed(f"{running.program} ended when it started: {_last_line(log)}")
    if not in_time:
        child.kill()
        child.wait()
        raise LocalEngineFailed(f"{running.program} did not answer within {START_SECONDS:g} s.")
    child.returncode = 0  # the process continues, and Popen must not warn or wait


def _installed() -> tuple[Program, str]:
    """The program and its executable."""
    cpu = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = Path(sys.prefix, "node_modules", "@dynoxide", f"{platform.system().lower()}-{cpu}")
    binary = shutil.which("dynoxide") or shutil.which("dynoxide", path=package)
    if binary is not None:
        return "dynoxide", binary
    if importlib.util.find_spec("ministack") is None:
        raise LocalEngineFailed(
            "No local engine is installed. Install one: pip install 'django-on-dynamodb[local]', "
            f"or npm install --prefix {sys.prefix} --no-save @dynoxide/{package.name}"
        )
    sys.stderr.write("dynoxide is not installed. Using ministack, which stores no data.\n")
    return "ministack", sys.executable


def _arguments(program: Program, host: str, port: int, folder: Path | None) -> list[str]:
    """The engine's command line. Without a folder, the engine keeps its data in memory."""
    if program == "dynoxide":
        data = [] if folder is None else ["--db-path", str(folder / "dynamodb.sqlite")]
        return ["serve", "--host", host, "-p", str(port), *data]
    # hypercorn is called as ministack's own command does it, because its command line takes address
    # and folder. 0 workers is one process, without children that a signal does not reach.
    server = ["-m", "hypercorn", "ministack.app:app", "--bind", f"{host}:{port}", "--workers", "0"]
    return server if folder is None else [*server, "--error-logfile", str(folder / "engine.log")]


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def _is_alive() -> bool:
    """Whether the last engine still runs."""
    try:
        with (_folder() / "engine.json").open("rb") as state:
            fcntl.flock(state, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _end(engine: Running) -> bool:
    """End the process if it is still the engine. Returns whether it was."""
    was_alive = _is_alive()
    for end in (signal.SIGTERM, signal.SIGKILL):
        if not _is_alive():
            break
        with suppress(ProcessLookupError):
            os.kill(engine.pid, end)
        _wait_until(lambda: not _is_alive(), STOP_SECONDS)
    return was_alive


def _choose_address(last: Running | None) -> tuple[str, int]:
    host = _choose_host(last)
    if last is not None and _wait_until(lambda: _is_free(host, last.port), PORT_RELEASE_SECONDS):
        return host, last.port
    return host, free_port()


def free_port() -> int:
    """A port of this machine that is not in use at any address."""
    while True:
        port = _chance.choice(_PORTS)
        if _is_free(_ALL, port):
            return port


def _choose_host(last: Running | None) -> str:
    """The host of the last engine, otherwise a random one if the system has it."""
    host = last.host if last is not None else HOST
    if host == HOST:
        host = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _part in range(3))])
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return HOST
    return host


def _is_free(host: str, port: int) -> bool:
    if _listens(host, port):  # on macOS binding succeeds if a server listens on all addresses
        return False
    with socket.socket() as probe:
        # Servers set this as well, so that old connections in TIME_WAIT do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_ALL, port))
        except OSError:
            return False
    return True


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        # A time-out means that the engine is too busy to accept, not that it has ended.
        return probe.connect_ex((host, port)) != errno.ECONNREFUSED


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    ends_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends_at:
            return False
        time.sleep(POLL_SECONDS)
    return True
