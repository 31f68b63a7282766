"""The processes that are killed: workers that run clients, and servers of the site.

Each is forked from one process that has loaded everything (`multiprocessing`'s fork server), so a
new one starts at once. Each writes its history under the name of its life.
"""

from __future__ import annotations

import os
import random
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django

django.setup()

from django.conf import settings  # noqa: E402 - Django first

from project.wsgi import application  # noqa: E402
from tests.torture.clients.accounts import AccountClient  # noqa: E402
from tests.torture.clients.editor import Editor  # noqa: E402
from tests.torture.clients.inspector import Inspector  # noqa: E402
from tests.torture.clients.invoices import InvoiceClient  # noqa: E402
from tests.torture.clients.locks import LockClient  # noqa: E402
from tests.torture.clients.pages import Visitor  # noqa: E402
from tests.torture.clients.uploads import UploadClient  # noqa: E402
from tests.torture.history import Journal  # noqa: E402
from uploads import claims  # noqa: E402


@dataclass(frozen=True)
class Place:
    """The folders of a run."""

    folder: Path

    @property
    def histories(self) -> Path:
        return self.folder / "histories"

    @property
    def resources(self) -> Path:
        return self.folder / "resources"

    @property
    def uploads(self) -> Path:
        return self.folder / "uploads"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def engine(self) -> Path:
        return self.folder / "engine"

    def make(self) -> None:
        """Make the folders."""
        for each in (self.histories, self.resources, self.uploads, self.logs, self.engine):
            each.mkdir(parents=True)


@dataclass(frozen=True)
class Plan:
    """What a worker does: no call begins after `ends_at`; `slowness` multiplies all pauses."""

    place: Place
    seed: str
    ends_at: float
    ports: list[int]
    slowness: float


class Client(Protocol):
    def step(self) -> None:
        """Make the next call."""


def work(life: str, plan: Plan) -> None:
    """Run clients in threads until the end, or until killed."""
    _begin(life, plan.place)
    claims.POLL_SECONDS = 0.2
    journal = Journal(plan.place.histories / f"{life}.jsonl")
    stop = threading.Event()
    threads = []
    for name, make, pause_seconds in _clients(plan, stop):
        chance = random.Random(f"{plan.seed} {life} {name}")
        pause = _Pause(chance, pause_seconds * plan.slowness, stop)
        client = make(journal, chance)
        thread = threading.Thread(target=_run, args=(client, pause), name=name, daemon=True)
        thread.start()
        threads.append(thread)
    time.sleep(max(0, plan.ends_at - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join()


Make = Callable[[Journal, random.Random], Client]


def _clients(plan: Plan, stop: threading.Event) -> list[tuple[str, Make, float]]:
    """The name, class and pause in seconds of each client of a worker.

    A page costs twenty times as much as a call, and the inspector reads whole tables.
    """
    place = plan.place
    return [
        ("accounts-0", AccountClient, 0.15),
        ("accounts-1", AccountClient, 0.15),
        ("invoices-0", InvoiceClient, 0.15),
        ("invoices-1", InvoiceClient, 0.15),
        ("locks", lambda journal, chance: LockClient(journal, chance, place.resources), 0.2),
        ("visitor", lambda journal, chance: Visitor(journal, chance, plan.ports), 1.0),
        ("editor", lambda journal, chance: Editor(journal, chance, plan.ports), 1.0),
        (
            "uploads",
            lambda journal, chance: UploadClient(journal, chance, place.uploads, stop),
            2.0,
        ),
        ("inspector", Inspector, 6.0),
    ]


@dataclass(frozen=True)
class _Pause:
    """Pauses between two steps: up to twice `seconds`."""

    chance: random.Random
    seconds: float
    stop: threading.Event

    def is_over(self) -> bool:
        """Wait, and return whether to go on."""
        return not self.stop.wait(self.chance.uniform(0, 2 * self.seconds))


def _run(client: Client, pause: _Pause) -> None:
    while pause.is_over():
        client.step()


def serve(life: str, place: Place, port: int) -> None:
    """Serve the site."""
    _begin(life, place)
    with make_server("127.0.0.1", port, application, _Server, _QuietHandler) as server:
        server.serve_forever()


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _begin(life: str, place: Place) -> None:
    """Write the output of the process to its log, and set what is different in torture."""
    log = os.open(place.logs / f"{life}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    # Argon2 is slow on purpose.
    settings.ROOT_URLCONF = "tests.torture.editing"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
