"""The local engine: a DynamoDB on this machine, shared by every process of a checkout.

`settings.DYNAMODB_LOCAL_DIR` holds its state:

    engine.json        pid, port and program of the engine started last; outlives it for the port
    engine.lock        flock, held while one process starts or stops the engine
    engine.log         what the engine printed since it started
    dynamodb.sqlite    the data (dynoxide only: ministack keeps nothing)

The data holds password hashes, so other users of the machine have no access to the folder.

A pid alone proves nothing, as the system gives it out again. The engine is the process whose
command line is the one we start, which names the port and a file in our folder.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from django.conf import settings

from dynamo.exceptions import LocalEngineFailed

Program = Literal["dynoxide", "ministack"]

HOST = "127.0.0.1"
START_SECONDS = 10.0
STOP_SECONDS = 5.0

#: How long a port stays taken at most once its process has lost its command line.
PORT_RELEASE_SECONDS = 0.3
POLL_SECONDS = 0.01

PROC = Path("/proc")

#: Engines that this process started and that it has to reap, lest they stay zombies.
_children: set[int] = set()


@dataclass(frozen=True)
class Running:
    pid: int
    port: int
    program: Program

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"


def endpoint() -> str:
    """The engine's URL; starts the engine if it does not run.

    Costs well under a millisecond where it runs.

    Raises:
        LocalEngineFailed: it does not run and could not be started.
    """
    running = status()
    if running is None:
        return start().endpoint
    # An earlier version of the engine's starter left the folder open to everybody.
    with suppress(OSError):
        _close_to_others(_folder())
    return running.endpoint


def status() -> Running | None:
    """The engine if it runs and takes connections, else None."""
    last = _last_started()
    if last is not None and _is_alive(last) and _listens(last.port):
        return last
    return None


def start() -> Running:
    """Start the engine, or return the one that runs: callers at once all get the same.

    It runs on after this process, until `stop`. Its port is the last one's where that is free,
    so that processes which knew the last engine find this one.

    Raises:
        LocalEngineFailed: nothing to start, it ended at once, or it did not answer in time.
    """
    with _locked():
        running = status()
        if running is not None:
            return running
        last = _last_started()
        if last is not None:
            _end(last)
        return _launch(_choose_port(last))


def stop() -> bool:
    """End the engine; False where it did not run. Never touches another process.

    Raises:
        LocalEngineFailed: its folder cannot be used, or it belongs to another system user.
    """
    with _locked():
        last = _last_started()
        ended = last is not None and _end(last)
        while last is not None and ended and last.pid in _children:
            # Its command line goes before its last thread does; only then can it be reaped.
            _reap(last.pid)
            time.sleep(POLL_SECONDS)
        return ended


@contextmanager
def _locked() -> Iterator[None]:
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(folder)
        with (folder / "engine.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # Closing is not enough: a child forked meanwhile would keep the lock.
                fcntl.flock(lock, fcntl.LOCK_UN)
    except OSError as error:
        raise LocalEngineFailed(f"The local engine in {folder} failed: {error}") from error


def _close_to_others(folder: Path) -> None:
    """Give the folder mode 0700 where it has a wider one. Raises OSError where it is not ours."""
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def _folder() -> Path:
    # Resolved, so that one checkout reached by two paths has one engine.
    folder: Path = settings.DYNAMODB_LOCAL_DIR
    return folder.resolve()


def _last_started() -> Running | None:
    try:
        stored = json.loads((_folder() / "engine.json").read_bytes())
    except (OSError, ValueError):
        return None
    match stored:
        case {"pid": int(pid), "port": int(port), "program": "dynoxide" | "ministack" as program}:
            return Running(pid, port, program) if 0 < port < 2**16 else None
    return None


def _remember(running: Running) -> None:
    # Replaced whole, because `status` reads it without the lock.
    fresh = _folder() / "engine.json.new"
    fresh.write_text(json.dumps(asdict(running)))
    fresh.replace(_folder() / "engine.json")


def _launch(port: int) -> Running:
    command = _command(port)
    log = _folder() / "engine.log"
    log.write_bytes(b"")
    with log.open("ab") as output:
        child = subprocess.Popen(
            command.argv,
            cwd=_folder(),  # not the checkout, whose packages Python would put before ministack's
            env=os.environ | command.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    running = Running(child.pid, port, command.program)
    _remember(running)  # at once: should we be killed now, the next process finds it

    def has_ended_or_answers() -> bool:
        return child.poll() is not None or _announced(running, log)

    in_time = _wait_until(has_ended_or_answers, START_SECONDS)
    if child.poll() is not None:
        raise LocalEngineFailed(f"{running.program} ended at its start: {_last_line(log)}")
    if not in_time:
        child.kill()
        child.wait()
        raise LocalEngineFailed(f"{running.program} did not answer within {START_SECONDS:g} s.")
    child.returncode = 0  # it outlives us on purpose: Popen shall neither warn nor wait
    _children.add(child.pid)
    return running


@dataclass(frozen=True)
class _Command:
    program: Program
    argv: list[str]
    environment: dict[str, str]


def _command(port: int) -> _Command:
    binary = _dynoxide()
    if binary is not None:
        return _Command("dynoxide", [binary, *_arguments("dynoxide", port)], {})
    if importlib.util.find_spec("ministack") is None:
        raise LocalEngineFailed(
            "No local engine is installed, neither dynoxide (npm) nor ministack (pip)."
        )
    sys.stderr.write("dynoxide is not installed; ministack stands in and keeps nothing.\n")
    environment = {"GATEWAY_PORT": str(port), "PERSIST_STATE": "0", "SERVICES": "dynamodb"}
    return _Command("ministack", [sys.executable, *_arguments("ministack", port)], environment)


def _arguments(program: Program, port: int) -> list[str]:
    if program == "dynoxide":
        data = _folder() / "dynamodb.sqlite"
        return ["serve", "--host", HOST, "-p", str(port), "--db-path", str(data)]
    # Under hypercorn, which ministack's own start calls too: here the command line names port and
    # folder. No workers means one process, which no signal can part from its children.
    server = ["-m", "hypercorn", "ministack.app:app", "--bind", f"{HOST}:{port}", "--workers", "0"]
    return [*server, "--error-logfile", str(_folder() / "engine.log")]


def _dynoxide() -> str | None:
    cpu = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = Path(sys.prefix, "node_modules", "@dynoxide", f"{platform.system().lower()}-{cpu}")
    return shutil.which("dynoxide") or shutil.which("dynoxide", path=package)


def _announced(running: Running, log: Path) -> bool:
    # Each program prints its URL once the port is its own. That the port answers is not enough:
    # another program may have taken it first.
    return running.endpoint.encode() in log.read_bytes() and _listens(running.port)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _is_alive(engine: Running) -> bool:
    _reap(engine.pid)
    # The first word is left out but for its end: a system may show another path to the program.
    ours = " ".join(_arguments(engine.program, engine.port))
    name = "dynoxide " if engine.program == "dynoxide" else " "
    return _command_line(engine.pid).endswith(name + ours)


def _reap(pid: int) -> None:
    if pid in _children:
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:  # we were forked since: it is our parent's
            ended = True
        if ended:
            _children.discard(pid)


def _command_line(pid: int) -> str:
    """The words of a process's command line with blanks between; no match for a zombie."""
    if (PROC / "self").exists():
        with suppress(OSError):
            raw = (PROC / str(pid) / "cmdline").read_bytes()
            return os.fsdecode(raw).replace("\0", " ").strip()
        return ""
    ps = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return os.fsdecode(subprocess.run(ps, capture_output=True, check=False).stdout).strip()


def _end(engine: Running) -> bool:
    """End the process if it still is the engine; whether it was."""
    was_alive = _is_alive(engine)
    for end in (signal.SIGTERM, signal.SIGKILL):
        if not _is_alive(engine):
            break
        with suppress(ProcessLookupError):
            os.kill(engine.pid, end)
        _wait_until(lambda: not _is_alive(engine), STOP_SECONDS)
    return was_alive


def _choose_port(last: Running | None) -> int:
    if last is not None and _wait_until(lambda: _is_free(last.port), PORT_RELEASE_SECONDS):
        return last.port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    if _listens(port):  # on macOS one can bind beside a server that listens on all addresses
        return False
    with socket.socket() as probe:
        # As servers do: connections of the last engine that are not quite over do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        # A time-out is an engine too busy to accept, not one that has ended.
        return probe.connect_ex((HOST, port)) != errno.ECONNREFUSED


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    ends_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends_at:
            return False
        time.sleep(POLL_SECONDS)
    return True
