"""The local engine: how it starts, is found again, stops, and fails."""

import errno
import fcntl
import http.client
import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import boto3
import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from dynamo.client import engine, sending
from dynamo.exceptions import LocalEngineFailed
from tests.engines import free_port
from tests.faults.proxy import NOWHERE
from tests.sockets import descendants, listening
from tests.waiting import wait_until

STARTER = """
import sys
import tempfile
from pathlib import Path
from django.conf import settings
settings.configure(DYNAMODB_LOCAL=True, DYNAMODB_LOCAL_DIR=Path(sys.argv[1]))
from dynamo.client import engine
print("ready", flush=True)
sys.stdin.readline()
print(engine.endpoint(), flush=True)
"""


PATIENCE_SECONDS = 120.0
#: A pid that no process has. Source: proc(5), pid_max.
NO_PID = 2**22 + 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # The engine may be slow on a busy machine.
    monkeypatch.setattr(engine, "START_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(engine, "STOP_SECONDS", PATIENCE_SECONDS)
    folder = tmp_path / "a checkout" / "var"
    settings.DYNAMODB_LOCAL = True
    settings.DYNAMODB_LOCAL_DIR = folder
    yield folder
    if folder.parent.is_dir():
        engine.stop()
    assert_none_is_left(folder)


@pytest.fixture
def returning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine waits for its first port, which no other program gets."""
    monkeypatch.setattr(engine, "PORT_RELEASE_SECONDS", PATIENCE_SECONDS)
    state = {"pid": NO_PID, "port": free_port(), "program": "dynoxide", "host": engine.HOST}
    remember(folder, state)


@pytest.fixture
def no_dynoxide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "bare"))
    path = [part for part in os.get_exec_path() if not Path(part, "dynoxide").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(path))


def test_processes_that_start_it_at_once_get_one_engine_that_survives_them(folder: Path) -> None:
    starters = [starter(folder) for _ in range(2)]
    for process in starters:
        assert line_of(process) == "ready"
    for process in starters:
        go(process)
    answers = [process.communicate(timeout=120)[0].strip() for process in starters]

    running = engine.status()
    assert running is not None
    assert answers == [running.endpoint] * 2
    assert len(engines_of(folder)) == 1
    # It holds no lock of theirs.
    with (folder / "engine.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_other_users_have_no_access_to_the_folder(folder: Path) -> None:
    engine.endpoint()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.stop()
    folder.chmod(0o777)
    engine.endpoint()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have only 127.0.0.1")
def test_an_engine_has_a_random_address_and_is_not_at_the_usual_one(folder: Path) -> None:
    running = engine.start()

    assert json.loads((folder / "engine.json").read_text())["host"] == running.host
    assert ip_address(running.host).is_loopback
    with socket.socket() as probe:
        assert probe.connect_ex((engine.HOST, running.port)) == errno.ECONNREFUSED
    engine.stop()
    (folder / "engine.json").unlink()
    assert engine.start().host != running.host


@contextmanager
def kept() -> Iterator[str]:
    yield engine.start().endpoint
    engine.stop()


@contextmanager
def temporary() -> Iterator[str]:
    yield engine.start_temporary()


@pytest.mark.site
@pytest.mark.skipif(sys.platform != "linux", reason="other systems list sockets in other ways")
@pytest.mark.parametrize("started", [kept, temporary])
@pytest.mark.parametrize("is_ministack", [False, True])
def test_an_engine_listens_on_one_port_of_this_machine_only(
    started: Callable[[], AbstractContextManager[str]],
    is_ministack: bool,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Where ministack's broker would listen: another ministack may have its usual port.
    monkeypatch.setenv("IOT_MTLS_PORT", str(free_port()))
    if is_ministack:
        request.getfixturevalue("no_dynoxide")
    before = descendants(os.getpid())
    with started() as url:
        address = url.removeprefix("http://")
        wait_until(partial(is_ready, address))
        found = listening(descendants(os.getpid()) - before)

    assert found == [f"tcp {address}"]
    assert ip_address(address.partition(":")[0]).is_loopback


def is_ready(address: str) -> bool:
    """Whether ministack has all its listeners; always True for another engine."""
    with closing(http.client.HTTPConnection(address)) as connection:
        connection.request("GET", "/_ministack/ready")
        return connection.getresponse().status != 503


@pytest.mark.site
@pytest.mark.usefixtures("no_dynoxide")
def test_the_engine_of_tests_imports_nothing_from_the_folder_of_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "decimal.py").write_text("raise AssertionError('not the standard library')")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    url = engine.start_temporary()

    client = boto3.client("dynamodb", "us-east-1", endpoint_url=url)
    assert client.list_tables()["TableNames"] == []


class SocketOfOneAddress(socket.socket):
    """A socket of a system that has no other loopback addresses, such as macOS."""

    def bind(self, address: Any) -> None:
        if address[0] not in {"", engine.HOST}:
            raise OSError(errno.EADDRNOTAVAIL, "Can't assign requested address")
        super().bind(address)


def test_an_engine_has_the_usual_address_if_the_system_has_no_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", SocketOfOneAddress)

    running = engine.start()

    assert running.host == engine.HOST
    assert engine.status() == running


@pytest.mark.usefixtures("own_client")
def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", NOWHERE)
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")

    assert sending.send("ListTables", {})["TableNames"] == []


@pytest.mark.usefixtures("returning")
def test_a_killed_engine_starts_again_on_its_port_with_its_data() -> None:
    first = engine.start()
    with socket.create_connection((first.host, first.port)):  # a web process that stays connected
        put("kept")
        os.kill(first.pid, signal.SIGKILL)
        wait_until(lambda: state_of(first.pid)[:1] in {"", "Z"})
        assert engine.endpoint() == first.endpoint
    assert stored() == {"kept"}


@pytest.mark.parametrize("has_its_address", [True, False])
def test_an_engine_whose_port_is_taken_at_any_address_uses_another(has_its_address: bool) -> None:
    first = engine.start()
    engine.stop()
    with socket.create_server((first.host if has_its_address else engine.HOST, first.port)):
        second = engine.start()

    assert second.port != first.port
    assert engine.status() == second


def test_the_engine_of_another_checkout_is_neither_used_nor_stopped(
    folder: Path, tmp_path: Path, settings: Settings
) -> None:
    settings.DYNAMODB_LOCAL_DIR = tmp_path / "another" / "var"
    other = engine.start()
    try:
        settings.DYNAMODB_LOCAL_DIR = folder
        remember(folder, asdict(other))

        assert engine.status() is None
        assert engine.stop() is False
        assert engine.start().port != other.port
        assert engine.stop() is True

        settings.DYNAMODB_LOCAL_DIR = tmp_path / "another" / "var"
        assert engine.status() == other
    finally:
        engine.stop()
        settings.DYNAMODB_LOCAL_DIR = folder


DAMAGED_FILES = [
    "",
    "\xff\xfe",
    "null",
    '{"pid": 1}',
    *(
        json.dumps({"pid": 1, "port": 8000, "program": "dynoxide", "host": "127.0.0.1", **wrong})
        for wrong in (
            {"pid": "1"},
            {"pid": -1},
            {"port": 65536},
            {"program": "vi"},
            {"host": "0.0.0.0"},  # noqa: S104 - refused
            {"host": "127.999.0.1"},
            {"host": "["},
            {"host": 7},
        )
    ),
]


def test_the_engine_starts_with_a_damaged_state_file(folder: Path) -> None:
    folder.mkdir(parents=True)
    for content in DAMAGED_FILES:
        (folder / "engine.json").write_text(content, encoding="latin-1")
        assert engine.status() is None
        assert engine.stop() is False

    assert engine.endpoint() == engine.start().endpoint


@pytest.mark.usefixtures("returning")
def test_an_engine_that_neither_answers_nor_ends_is_killed_and_replaced(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "STOP_SECONDS", 0.2)
    locked = (folder / "engine.json").open("r+")
    fcntl.flock(locked, fcntl.LOCK_EX)
    port = free_port()
    silent = fake_dynoxide(tmp_path / "silent", SILENT)
    with subprocess.Popen(
        [str(silent), str(folder)], stdout=subprocess.PIPE, text=True, pass_fds=[locked.fileno()]
    ) as hanging:
        locked.close()
        assert line_of(hanging)  # it ignores SIGTERM from now on
        state = {"pid": hanging.pid, "port": port, "program": "dynoxide", "host": engine.HOST}
        remember(folder, state)
        assert engine.status() is None

        running = engine.start()

        ended_by = hanging.poll()
        hanging.kill()
    assert ended_by == -signal.SIGKILL
    assert running.port == port
    assert engine.status() == running


@pytest.mark.site
@pytest.mark.usefixtures("no_dynoxide")
def test_ministack_replaces_a_missing_engine_and_warns_once_that_it_keeps_no_data(
    capfd: pytest.CaptureFixture[str],
) -> None:
    running = engine.start()
    put("here")
    assert engine.endpoint() == running.endpoint

    assert running.program == "ministack"
    assert (running.host == engine.HOST) == (sys.platform != "linux")
    assert stored() == {"here"}
    assert capfd.readouterr().err.splitlines() == [
        "dynoxide is not installed. Using ministack, which stores no data."
    ]
    assert engine.stop() is True
    assert engine.status() is None


@pytest.mark.usefixtures("no_dynoxide")
def test_a_start_without_an_installed_engine_is_an_error(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setitem(sys.modules, "ministack", None)

    with pytest.raises(
        LocalEngineFailed, match=r"pip install 'django-on-dynamodb\[local\]'.* @dynoxide/"
    ):
        engine.endpoint()
    assert not (folder / "engine.json").exists()


SILENT = b"#!/bin/sh\ntrap '' TERM\necho silent\nwhile :; do sleep 0.1; done"


@pytest.mark.parametrize(
    ("program", "said", "seconds"),
    [
        (b"#!/bin/sh\necho 'error: no room left' >&2; exit 3", "no room left$", PATIENCE_SECONDS),
        (b"\x7fELF of another kind", "Exec format error", PATIENCE_SECONDS),
        (SILENT, r"did not answer within 0\.3 s", 0.3),
    ],
    ids=["it ends", "it cannot be run", "it does not answer"],
)
def test_the_error_says_why_a_program_is_not_a_running_engine(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    folder: Path,
    program: bytes,
    said: str,
    seconds: float,
) -> None:
    fake = fake_dynoxide(tmp_path / "bin", program)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    monkeypatch.setattr(engine, "START_SECONDS", seconds)

    with pytest.raises(LocalEngineFailed, match=said):
        engine.endpoint()
    with pytest.raises(CommandError, match=said):
        run("start")
    assert engine.status() is None
    assert_none_is_left(folder)


@pytest.mark.parametrize("use", [engine.start, engine.stop, engine.endpoint])
def test_the_error_names_a_folder_that_cannot_be_created(
    use: Callable[[], object], tmp_path: Path, settings: Settings, folder: Path
) -> None:
    (tmp_path / "file").touch()
    settings.DYNAMODB_LOCAL_DIR = tmp_path / "file" / "var"
    with pytest.raises(LocalEngineFailed, match="Not a directory"):
        use()
    settings.DYNAMODB_LOCAL_DIR = folder


def test_the_command_starts_once_and_stops_once() -> None:
    started = run("start")
    running = engine.status()
    assert running is not None
    described = f"dynoxide on {running.endpoint} (pid {running.pid})"

    assert started == f"Started {described}\n"
    assert run("start") == f"Already running: {described}\n"
    assert run("status") == f"Running: {described}\n"
    assert run("stop") == "Stopped.\n"
    assert engine.status() is None
    assert run("stop") == "Not running.\n"
    with pytest.raises(CommandError, match="is not running") as refusal:
        run("status")
    assert refusal.value.returncode == 1


def test_the_command_is_rejected_if_the_site_has_an_endpoint(
    settings: Settings, folder: Path
) -> None:
    settings.DYNAMODB_LOCAL = False

    for action in ("start", "stop", "status"):
        with pytest.raises(CommandError, match="needs DEBUG and no endpoint"):
            run(action)
    assert not folder.exists()


def run(action: str) -> str:
    out = io.StringIO()
    call_command("localdynamodb", action, stdout=out)
    return out.getvalue()


def starter(folder: Path) -> subprocess.Popen[str]:
    """A process that says "ready", waits for a line, and prints its endpoint."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)],
        cwd=Path(engine.__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def assert_none_is_left(folder: Path) -> None:
    # A shell that was killed may have forked just then: its child has the command line of the
    # shell until it runs another program.
    wait_until(lambda: engines_of(folder) == [])


def engines_of(folder: Path) -> list[str]:
    shown = subprocess.run(["ps", "-axww", "-o", "command="], capture_output=True, check=True)
    lines = os.fsdecode(shown.stdout).splitlines()
    return [line for line in lines if f"{folder}/" in line]


def remember(folder: Path, state: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engine.json").write_text(json.dumps(state))


def fake_dynoxide(folder: Path, program: bytes) -> Path:
    folder.mkdir(parents=True)
    fake = folder / "dynoxide"
    fake.write_bytes(program)
    fake.chmod(0o755)
    return fake


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def state_of(pid: int) -> str:
    """As `ps` shows it: `Z` for a zombie, empty when there is no such process."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return os.fsdecode(shown.stdout).strip()


def dynamodb() -> Any:
    keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    return boto3.client("dynamodb", "us-east-1", endpoint_url=engine.endpoint(), **keys)


def put(key: str) -> None:
    with closing(dynamodb()) as client:
        client.create_table(
            TableName="things",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client.put_item(TableName="things", Item={"pk": {"S": key}})


def stored() -> set[str]:
    with closing(dynamodb()) as client:
        items = client.scan(TableName="things", ConsistentRead=True)["Items"]
    return {item["pk"]["S"] for item in items}
