"""Credential providers on this machine that answer, fail, print garbage or hang."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

#: A name of the engine that is not this machine's, so that the whole credential chain is used.
HOST = "dynamodb.test"

#: botocore asks a provider only without these variables.
_NOBODY = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_PROFILE",
)


def keys(number: int, lives: float, token: str = "Token") -> dict[str, Any]:
    expires = datetime.now(UTC) + timedelta(seconds=lives)
    return {
        "AccessKeyId": f"AKID{number}",
        "SecretAccessKey": "secret",
        token: f"token{number}",
        "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }


class Provider:
    """A provider over HTTP: instance metadata (`imds`) or a container's (`container`).

    `calls` counts how often it was asked for credentials; those of the first call are `token1`.
    """

    def __init__(self) -> None:
        self.calls = 0
        #: How long credentials live, in seconds.
        self.lives = 3600.0
        #: Instead of credentials: a status and a body.
        self.failure: tuple[int, bytes] | None = None
        #: If this is cleared, the provider does not answer.
        self.answers = threading.Event()
        self.answers.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                self._answer(200, b"a-session-token")

            def do_GET(self) -> None:
                if self.path.endswith("/security-credentials/"):
                    self._answer(200, b"a-role")
                else:
                    self._give()

            def _give(self) -> None:
                provider.calls += 1
                made = json.dumps(keys(provider.calls, provider.lives)).encode()
                if provider.answers.wait(120):
                    self._answer(*(provider.failure or (200, made)))

            def _answer(self, status: int, body: bytes) -> None:
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # The client has given up.

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        return Handler

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()


def ask(kind: str, provider: Provider, patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Leave botocore one way to get credentials.

    It asks `nobody`; the `provider` as `imds` or as a `container`; a program that is `missing`; or
    a `process`, which prints what `prints` has written as soon as it is there.
    """
    for name in _NOBODY:
        patch.delenv(name, raising=False)
    if kind == "imds":
        patch.delenv("AWS_EC2_METADATA_DISABLED")
    program = folder / "process.sh"
    config = folder / "config"
    printed = folder / "prints.json"
    program.write_text(
        f"while [ ! -e {printed} ] && [ -d {folder} ]; do sleep 0.05; done\ncat {printed}\n"
    )
    run = f"/bin/sh {program}" if kind == "process" else "/nowhere/to/be/found"
    config.write_text(f"[default]\ncredential_process = {run}\n")
    variables = {
        "imds": {"AWS_EC2_METADATA_SERVICE_ENDPOINT": provider.url},
        "container": {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{provider.url}/keys"},
        "process": {"AWS_CONFIG_FILE": str(config)},
        "missing": {"AWS_CONFIG_FILE": str(config)},
        "nobody": {},
    }
    for name, value in variables[kind].items():
        patch.setenv(name, value)


def prints(folder: Path, text: str) -> None:
    """Let the process of `folder` print this from now on."""
    new = folder / "prints.new"
    new.write_text(text)
    new.replace(folder / "prints.json")
