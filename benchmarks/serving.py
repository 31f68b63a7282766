"""Starts the site under a server, requests a page from 16 clients, and measures CPU times.

The clients are wrk's (Debian's package `wrk`), which needs little CPU.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import peers
from benchmarks.peers import ROOT
from tests.engines import free_port
from tests.served import documented_options

CLIENTS = 16
CLIENT_THREADS = 2
SECONDS = 3
#: How long a server may still work on earlier requests, such as the passwords of 16 clients.
PATIENCE_SECONDS = 60
#: Of CPU, in a quarter of a second.
IDLE_SECONDS = 0.03
HOST = "bench.example"
SCRIPT = Path(__file__).with_name("requests.lua")

#: Of production, behind a proxy; no limit is reached, but each is counted.
SITE = {
    "DJANGO_DEBUG": "off",
    "DJANGO_SECRET_KEY": "of-the-benchmarks-alone" * 3,
    "DJANGO_ALLOWED_HOSTS": HOST,
    "DJANGO_BEHIND_TLS_PROXY": "on",
    "ACCOUNTS_TRUSTED_HOPS": "1",
    "EMAIL_URL": "dummymail://",
    **{
        f"ACCOUNTS_LIMIT_{name}": "999999/1h"
        for name in (
            *("SIGN_IN", "SIGN_IN_CLIENT", "SIGN_IN_SUCCESS_CLIENT", "SIGN_UP_CLIENT"),
            *("MAIL", "MAIL_CLIENT"),
        )
    },
}
HEADERS = {
    "Host": HOST,
    "Origin": f"https://{HOST}",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "203.0.113.7",
}


@dataclass(frozen=True)
class Site:
    """A server's environment, the folder of its prepared requests, and its engine's process."""

    env: dict[str, str]
    folder: Path
    engine: int


@dataclass(frozen=True)
class Server:
    """A server that serves a site."""

    site: Site
    process: int
    port: int


@dataclass(frozen=True)
class Asked:
    """One page: the file of what is sent (see `requests.lua`), and the status of a success."""

    name: str
    path: str
    requests: str = "anonymous"
    method: str = "GET"
    status: int = 200
    seconds: int = SECONDS


@dataclass(frozen=True)
class Figures:
    """One run: pages per second, latencies, and CPU milliseconds per page."""

    rate: float
    median_ms: float
    p99_ms: float
    server_ms: float
    engine_ms: float
    client_ms: float


def granian(workers: int, pages: int) -> list[str]:
    """Granian with the documented options, and this number of workers and pages at once."""
    options = documented_options(0)
    options[options.index("--workers") + 1] = str(workers)
    program = str(Path(sys.executable).with_name("granian"))
    return [*at_once(pages), program, *options, "project.wsgi:application"]


def at_once(pages: int) -> list[str]:
    """The prefix of a server's command that sets its pages at once."""
    return ["env", f"DJANGO_PAGES_AT_ONCE={pages}"]


@contextmanager
def prepared() -> Iterator[Site]:
    """The site on an engine with accounts, invoices, sessions and forms."""
    with peers.site() as env, _folder() as folder:
        whole = env | SITE
        _run(whole, "manage.py", "collectstatic", "--no-input")
        _run(whole, "-m", "benchmarks.prepared", str(folder))
        yield Site(whole, folder, _engine())


@contextmanager
def prepared_on_postgres() -> Iterator[Site]:
    """The peer (`benchmarks.on_postgres`) with the same. It uses `prepared`'s static files."""
    with peers.postgres() as env, _folder() as folder:
        paths = os.pathsep.join([str(ROOT), str(peers.added("psycopg"))])
        settings = {"DJANGO_SETTINGS_MODULE": "benchmarks.on_postgres.settings"}
        whole = env | SITE | settings | {"AWS_REGION": "us-east-1", "PYTHONPATH": paths}
        _run(whole, "-m", "django", "migrate", "--run-syncdb")
        _run(whole, "-m", "benchmarks.prepared", str(folder))
        yield Site(whole, folder, int(env["BENCH_PG_PID"]))


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _run(env: dict[str, str], *words: str) -> None:
    command = [sys.executable, *words]
    subprocess.run(command, env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def _engine() -> int:
    """The process of the engine that was started last."""
    engines = [
        pid
        for pid in children(os.getpid())
        if Path(f"/proc/{pid}/comm").read_text().strip() == "dynoxide"
    ]
    if not engines:
        raise SystemExit("The engine was not found.")
    return engines[-1]


@contextmanager
def served(command: Sequence[str], site: Site) -> Iterator[Server]:
    """The site under a server that is told port 0 in `command`."""
    port = free_port()
    words = [word.replace("127.0.0.1:0", f"127.0.0.1:{port}") for word in command]
    if "--port" in words:
        words[words.index("--port") + 1] = str(port)
    process = subprocess.Popen(
        words, env=site.env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait_until_served(process, port)
        yield Server(site, process.pid, port)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_until_served(process: subprocess.Popen[bytes], port: int) -> None:
    # Each worker loads the site on its own, and its URLs with the first page that is none of the
    # probes: so often in a row, and all of them have.
    headers = [word for item in HEADERS.items() for word in ("--header", ": ".join(item))]
    probe = ["curl", "--silent", "--fail", "--max-time", "20", *headers]
    answered = 0
    while answered < 10:
        if process.poll() is not None:
            raise SystemExit("The server did not start.")
        address = f"http://127.0.0.1:{port}/"
        ended = subprocess.run([*probe, address], stdout=subprocess.DEVNULL, check=False)
        answered = answered + 1 if ended.returncode == 0 else 0
        time.sleep(0.05)


def wait_until_idle(server: Server) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        before = cpu_seconds(server.process)
        time.sleep(0.25)
        if cpu_seconds(server.process) - before < IDLE_SECONDS:
            return
    raise SystemExit(f"The server does not answer after {PATIENCE_SECONDS} s.")


def ask(page: Asked, server: Server, clients: int = CLIENTS) -> Figures:
    """Request the page for this time; stop if a response is not a success.

    Begins when the server is done with what the clients before left unread.
    """
    wait_until_idle(server)
    before = _cpu_seconds(server)
    found = answered(page, subprocess.Popen(wrk(page, server, clients), stdout=subprocess.PIPE))
    after = _cpu_seconds(server)
    if found["good"] < 0.99 * found["done"] - clients:
        raise SystemExit(f"{page.name}: {found['good']} of {found['done']} were a success.")
    used = [1000 * (b - a) / found["done"] for a, b in zip(before, after, strict=True)]
    return Figures(found["done"] / found["seconds"], found["median_ms"], found["p99_ms"], *used)


def answered(page: Asked, clients: subprocess.Popen[bytes]) -> dict[str, float]:
    """What the clients print when they end: see `requests.lua`."""
    out, _none = clients.communicate()
    if clients.returncode:
        raise SystemExit(f"{page.name}: wrk failed with {clients.returncode}.")
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    if not found["done"]:
        raise SystemExit(f"{page.name}: nothing was answered.")
    return found


def wrk(page: Asked, server: Server, clients: int) -> list[str]:
    """The command that requests the page from so many clients at once."""
    threads = min(CLIENT_THREADS, clients)
    command = [
        *(_wrk(), "--threads", str(threads), "--connections", str(clients)),
        *("--duration", f"{page.seconds}s", "--timeout", "30s", "--script", str(SCRIPT)),
    ]
    for name, value in HEADERS.items():
        command += ["--header", f"{name}: {value}"]
    requests = str(server.site.folder / page.requests)
    command += [f"http://127.0.0.1:{server.port}{page.path}", "--", requests]
    return [*command, page.method, str(page.status), str(threads)]


def _cpu_seconds(server: Server) -> list[float]:
    """Of the server, the engine, and the clients that have ended."""
    times = os.times()
    return [
        cpu_seconds(server.process),
        cpu_seconds(server.site.engine),
        times.children_user + times.children_system,
    ]


def cpu_seconds(pid: int) -> float:
    """What a process and its children have used."""
    path = Path(f"/proc/{pid}")
    # Source: proc(5); the name before may have spaces.
    fields = (path / "stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(child) for child in children(pid))


def children(pid: int) -> list[int]:
    """The processes that it has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def median(runs: Sequence[Figures]) -> Figures:
    """The median of each figure."""
    names = Figures.__dataclass_fields__
    return Figures(*(statistics.median(getattr(run, name) for run in runs) for name in names))


def print_rows(
    title: str, heads: Sequence[str], rows: Sequence[tuple[Sequence[str], Figures]]
) -> None:
    print(f"\n### {title}\n")
    measured = ["per second", "median ms", "99 % ms", "CPU ms: server", "engine", "clients"]
    print(f"| {' | '.join([*heads, *measured])} |")
    print(f"|{'---|' * len(heads)}{'---:|' * len(measured)}")
    for names, figures in rows:
        print(
            f"| {' | '.join(names)} | {figures.rate:,.0f} | {figures.median_ms:.1f} | "
            f"{figures.p99_ms:.1f} | {figures.server_ms:.2f} | {figures.engine_ms:.2f} | "
            f"{figures.client_ms:.2f} |"
        )


def _wrk() -> str:
    if shutil.which("wrk") is None and os.geteuid() == 0:
        for words in (["update", "-qq"], ["install", "-y", "-qq", "wrk"]):
            apt_get = ["/usr/bin/apt-get", *words]
            subprocess.run(apt_get, check=True, stdout=subprocess.DEVNULL)
    if found := shutil.which("wrk"):
        return found
    raise SystemExit("wrk is missing: install Debian's package wrk.")
