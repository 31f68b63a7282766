"""The site under the production server, as a separate process.

    with Server(checkout, engine_url) as server:
        reply = server.get("/livez")

Granian imports this module, too. Its `application` is the site with two more pages. Each process of
Granian has a thread that holds a lock until the process ends.
"""

import http.client
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.commands import ROOT
from tests.engines import free_port
from tests.production import HOST, PRODUCTION
from tests.waiting import wait_until

BIN = Path(sys.executable).parent

#: As behind a trusted proxy that ends TLS.
VISITOR = {"Host": HOST, "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
BEHIND_A_PROXY = {"DJANGO_BEHIND_TLS_PROXY": "on", "ACCOUNTS_TRUSTED_HOPS": "1"}

#: A page that acquires the lock `of a request` and reads an item while it holds it.
LOCKED = "/under-a-lock"
#: A page without an end. When it is closed, the log says so.
ENDLESS = "/endless"


@dataclass(frozen=True)
class Reply:
    """A response of the server."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Server:
    """A Granian process with two workers, from `with` on until it is ended.

    `env` are further variables of its environment.
    """

    def __init__(
        self, checkout: Path, engine_url: str, target: str = f"{__name__}:application", **env: str
    ):
        self.port = free_port()
        self._target = target
        self._checkout = checkout
        self._log = checkout / f"{self.port}.log"
        self._env = (
            PRODUCTION
            | BEHIND_A_PROXY
            | {
                "AWS_ENDPOINT_URL_DYNAMODB": engine_url,
                # Some engines have other tables in each region.
                "AWS_REGION": os.environ["AWS_REGION"],
                "PYTHONPATH": str(checkout),
            }
            | env
        )

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [BIN / "granian", *documented_options(self.port), self._target],
                cwd=self._checkout,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        # A worker that is still starting does not handle signals, even if another one answers.
        wait_until(lambda: self.log.count("Started worker") == 2 or self.process.poll() is not None)
        return self

    def __exit__(self, *_error: object) -> None:
        # Not a graceful end: no test waits for it here.
        workers = self.workers() if self.process.poll() is None else set()
        self.process.kill()
        self.process.wait()
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text()

    def pages(self) -> list[dict[str, Any]]:
        """What its log says of each page, without health checks."""
        lines = (json.loads(line) for line in self.log.splitlines() if line.startswith("{"))
        return [line for line in lines if line["logger"] == "project.access"]

    def workers(self) -> set[int]:
        """The ids of its worker processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in children.read_text().split()}

    def get(self, path: str, **headers: str) -> Reply:
        """Request a page as the proxy does for a visitor."""
        return self.ask(
            "GET", path, headers={name.replace("_", "-"): headers[name] for name in headers}
        )

    def ask(self, method: str, path: str, body: bytes = b"", headers: Any = None) -> Reply:
        """Send a request, with `headers` besides those of a visitor."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, VISITOR | (headers or {}))
            reply = connection.getresponse()
            return Reply(reply.status, reply.headers, reply.read())
        finally:
            connection.close()


def documented_options(port: int) -> list[str]:
    """The options of docs/deployment.md's command, on this port."""
    text = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    found = re.search(r"^\.venv/bin/granian ((?:.*\\\n)*.*) project\.wsgi:application$", text, re.M)
    assert found is not None
    options = shlex.split(found[1].replace("\\\n", " "))
    options[options.index("--port") + 1] = str(port)
    return options


def _serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["PATH_INFO"] == ENDLESS:
        _site(environ, lambda *_answer: None)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return _endless()
    if environ["PATH_INFO"] != LOCKED:
        return _site(environ, start_response)
    with Lock("of a request"):
        send("GetItem", {"TableName": "cache", "Key": {"key": {"S": "held"}}})
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]


def _endless() -> Iterator[bytes]:
    try:
        while True:
            yield b"x" * 65_536
    finally:
        print("The endless page was closed.", flush=True)


def _hold() -> None:
    with Lock(f"of a thread of {os.getpid()}"):
        threading.Event().wait()


if "granian" in sys.modules:
    from dynamo.client.sending import send
    from locks.lock import Lock
    from project import start

    start.READER_SECONDS = 1
    from project.wsgi import application as _site

    application = _serve
    threading.Thread(target=_hold, daemon=True).start()
