"""A small stand-in for AWS Lambda's runtime API, and functions that run against it.

    with Function(environment, folder=checkout, log=file) as function:
        reply = function.request("GET", "/livez")

Each function is a process of `awslambdaric`, AWS's own runtime client.

Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import base64
import json
import queue
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from tests.fork_server import fork_server
from tests.forked import Forked
from tests.production import HOST

VERSION = "/2018-06-01/runtime"

#: The client's address, as AWS saw it.
CLIENT = "203.0.113.7"

#: In the environment of a function that waits for its restore.
SNAP_START = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}

#: How long a test waits for a function at most.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Reply:
    """What the function answered, as a browser would see it."""

    status: int
    headers: Mapping[str, str]
    cookies: list[str]
    body: bytes
    is_base64: bool

    @property
    def text(self) -> str:
        return self.body.decode()


class FunctionError(Exception):
    """The function reported an error instead of an answer, or ended."""


@dataclass
class _Invocation:
    event: dict[str, Any]
    seconds: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    result: Any = None
    error: Any = None
    done: threading.Event = field(default_factory=threading.Event)


class _RuntimeApi(ThreadingHTTPServer):
    """Hands out invocations and takes their results."""

    daemon_threads = True

    def __init__(self) -> None:
        self.waiting: queue.Queue[_Invocation | None] = queue.Queue()
        self.running: dict[str, _Invocation] = {}
        self.init_error: Any = None
        #: Set when the function asked for its restore; it is answered when `restore` is set.
        self.is_snapshot_taken = threading.Event()
        self.restore = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: _RuntimeApi
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == f"{VERSION}/restore/next":
            self.server.is_snapshot_taken.set()
            self.server.restore.wait(PATIENCE_SECONDS)
            self._reply(200, b"")
            return
        invocation = self.server.waiting.get()
        if invocation is None:
            self._reply(410, b"")
            return
        self.server.running[invocation.id] = invocation
        ends_at = round((time.time() + invocation.seconds) * 1000)
        self._reply(
            200,
            json.dumps(invocation.event).encode(),
            {
                "Lambda-Runtime-Aws-Request-Id": invocation.id,
                "Lambda-Runtime-Deadline-Ms": str(ends_at),
                "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:1:function:site",
                "Content-Type": "application/json",
            },
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        kind = self.path.rsplit("/", 1)[1]
        if self.path.startswith(f"{VERSION}/invocation/"):
            invocation = self.server.running.pop(self.path.split("/")[4])
            said = json.loads(body)
            if kind == "response":
                invocation.result = said
            else:
                invocation.error = said
            invocation.done.set()
        else:
            self.server.init_error = json.loads(body)
        self._reply(202, b"")

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_said: Any) -> None:
        pass


class Function:
    """One instance of the function, from `with` on until it is ended."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        folder: Path,
        log: Path,
        handler: str = "project.serverless.handler",
        python: Path | None = None,
    ) -> None:
        """`python` starts this interpreter, instead of a fork that has imported packages."""
        self._environment = environment
        self._folder = folder
        self._python = python
        self._handler = handler
        self._log = log
        self._seen = 0
        self.cookies: SimpleCookie = SimpleCookie()
        self._ahead_seconds = 0.0

    def __enter__(self) -> Self:
        self.api = _RuntimeApi()
        address = f"127.0.0.1:{self.api.server_address[1]}"
        env = {**self._environment, "AWS_LAMBDA_RUNTIME_API": address}
        with self._log.open("a+b") as log:
            if self._python is None:
                streams = [log.fileno()] * 3
                self.process: Forked | subprocess.Popen[bytes] = fork_server.fork(
                    "awslambdaric", [self._handler], streams, env=env, folder=self._folder
                )
            else:
                command = [self._python, "-m", "awslambdaric", self._handler]
                self.process = subprocess.Popen(
                    command, cwd=self._folder, env=env, stdin=log, stdout=log, stderr=log
                )
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()
        self.api.shutdown()
        self.api.server_close()

    def invoke(self, event: dict[str, Any], *, seconds: float = 15.0) -> Any:
        """Send `event` with `seconds` of time, and return what the handler returned."""
        # The deadline is told by the clock of the function.
        invocation = _Invocation(event, seconds + self._ahead_seconds)
        self.api.waiting.put(invocation)
        ends_at = time.monotonic() + PATIENCE_SECONDS
        while not invocation.done.wait(0.05):
            if self.process.poll() is not None or self.api.init_error is not None:
                raise FunctionError(f"ended: {self.api.init_error}")
            if time.monotonic() > ends_at:
                raise FunctionError("no answer")
        if invocation.error is not None:
            raise FunctionError(invocation.error)
        return invocation.result

    def request(
        self,
        method: str,
        path: str,
        fields: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        client: str = CLIENT,
        seconds: float = 15.0,
    ) -> Reply:
        """Send an HTTP request as a browser with cookies would."""
        sent = event(method, path, fields, headers=headers, client=client, cookies=self.cookies)
        return self.reply(self.invoke(sent, seconds=seconds))

    def reply(self, answer: Any) -> Reply:
        """`answer` as a reply, whose cookies are kept."""
        for cookie in answer["cookies"]:
            self.cookies.load(cookie)
        body = answer["body"]
        raw = base64.b64decode(body) if answer["isBase64Encoded"] else body.encode()
        said = (answer["statusCode"], answer["headers"], answer["cookies"])
        return Reply(*said, raw, answer["isBase64Encoded"])

    @property
    def log(self) -> str:
        """What it has printed since the last `forget`."""
        return self._log.read_text()[self._seen :]

    def forget(self) -> None:
        """Forget all cookies and what it has printed."""
        self.cookies.clear()
        self._seen = len(self._log.read_text())

    def wait_for_snapshot(self) -> None:
        """With SNAP_START in its environment: it is ready, and waits for `restore`."""
        assert self.api.is_snapshot_taken.wait(PATIENCE_SECONDS)

    def restore(self) -> None:
        """Let it go on from its snapshot."""
        self.api.restore.set()

    def jump(self, seconds: float) -> None:
        """Set its wall clock so far ahead of this machine's; only with the handlers of tests."""
        self.invoke({"do": "jump", "seconds": seconds})
        self._ahead_seconds = seconds


def event(
    method: str,
    path: str,
    fields: Mapping[str, str] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    client: str = CLIENT,
    cookies: SimpleCookie | None = None,
) -> dict[str, Any]:
    """An HTTP request as function URLs and HTTP APIs send it (format 2.0)."""
    parts = urlsplit(path)
    body = None if fields is None else urlencode(fields)
    sent: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.path,
        "rawQueryString": parts.query,
        "cookies": [f"{name}={morsel.value}" for name, morsel in (cookies or {}).items()],
        "headers": {
            "host": HOST,
            "x-forwarded-proto": "https",
            "x-forwarded-port": "443",
            "x-forwarded-for": f"198.51.100.99, {client}",
            "referer": f"https://{HOST}{parts.path}",
            **({} if body is None else {"content-type": "application/x-www-form-urlencoded"}),
            **(headers or {}),
        },
        "requestContext": {
            "http": {
                "method": method,
                "path": parts.path,
                "protocol": "HTTP/1.1",
                "sourceIp": client,
                "userAgent": "a browser",
            },
            "requestId": str(uuid.uuid4()),
        },
        "isBase64Encoded": body is not None,
    }
    if body is not None:
        sent["body"] = base64.b64encode(body.encode()).decode()
    return sent
