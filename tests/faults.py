"""A proxy before the engine that loses, delays and refuses what it is told to.

    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("PutItem", DropReply())
        register(…)                      # is carried out; its first reply is lost
        assert proxy.count("PutItem") == 2

A local engine never throttles, never answers TransactionConflict and loses no reply; the network
and AWS do all of that.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from urllib3 import Timeout

from dynamo import client


@dataclass(frozen=True)
class DropReply:
    """The engine carries the request out; the connection closes before the reply."""


@dataclass(frozen=True)
class CloseBefore:
    """The connection closes and the engine never sees the request: it looks like `DropReply`."""


@dataclass(frozen=True)
class Answer:
    """An error of DynamoDB's, such as `Answer(400, "ThrottlingException")`.

    The engine does not see the request, or carries it out first where `carried_out` says so.
    `reasons` are the codes of a TransactionCanceledException, one per action, `"None"` for an
    innocent one; or whole reasons, with `Code`, `Message` and `Item`.
    """

    status: int
    code: str
    message: str = "planned by a test"
    reasons: Sequence[str | dict[str, Any]] = ()
    carried_out: bool = False

    def body(self) -> bytes:
        """The error as on the wire."""
        error: dict[str, Any] = {
            "__type": f"com.amazonaws.dynamodb.v20120810#{self.code}",
            "message": self.message,
            "Message": self.message,
        }
        if self.reasons:
            error["CancellationReasons"] = [
                {"Code": reason} if isinstance(reason, str) else reason for reason in self.reasons
            ]
        return json.dumps(error).encode()


@dataclass(frozen=True)
class Reply:
    """A successful answer made from the request, which the engine does not see.

    The engine never leaves part of a batch undone; `Reply(nothing_processed)` does.
    """

    body_for: Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Delay:
    """The engine carries the request out; its reply is held for `seconds` (or till the end)."""

    seconds: float


@dataclass(frozen=True)
class TimeOut:
    """The engine carries the request out; this process gives up waiting for the reply.

    It waits long for all others, so that no machine that stands still looks like a lost reply.
    """


@dataclass(frozen=True)
class Garble:
    """The engine carries the request out; its reply arrives with `new` for `old`, under its CRC."""

    old: bytes
    new: bytes


@dataclass(frozen=True)
class Meanwhile:
    """`action` happens just before the engine sees the request."""

    action: Callable[[], object]


Fault = DropReply | CloseBefore | Answer | Reply | Delay | TimeOut | Garble | Meanwhile

#: How long the client waits for a reply while a TimeOut is planned; else `client.READ_SECONDS`.
SHORT_SECONDS = 0.4

#: Nobody listens there: a connection is refused, so a request was certainly not carried out.
NOWHERE = "http://127.0.0.1:9"


def nothing_processed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a batch of which DynamoDB did nothing."""
    left = request["RequestItems"]
    if all("Keys" in wanted for wanted in left.values()):
        return {"Responses": {}, "UnprocessedKeys": left}
    return {"UnprocessedItems": left}


@dataclass(frozen=True)
class Seen:
    """One request that arrived at the proxy, as it was sent."""

    operation: str
    body: dict[str, Any]


@dataclass
class _Plan:
    operation: str
    fault: Fault
    times: int
    when: Callable[[dict[str, Any]], bool]


@dataclass
class _Reply:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class FaultProxy:
    """Listens on a free port from `with` on, and passes on to the engine what no plan meets."""

    def __init__(self, engine_url: str) -> None:
        self._engine = urlsplit(engine_url).netloc
        self._plans: list[_Plan] = []
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_short = False
        #: Every request that arrived, in order.
        self.seen: list[Seen] = []

    def plan(
        self,
        operation: str,
        fault: Fault,
        times: int = 1,
        *,
        when: Callable[[dict[str, Any]], bool] = lambda _body: True,
    ) -> None:
        """Let the next `times` requests of `operation`, whose body `when` likes, meet `fault`.

        `"*"` is every operation. Plans are used up in the order in which they were made.
        """
        with self._lock:
            self._plans.append(_Plan(operation, fault, times, when))
        self._set_patience()

    def forget(self) -> None:
        """Begin again: no plans, and nothing seen."""
        with self._lock:
            self._plans.clear()
            self.seen.clear()
        self._set_patience()

    def _set_patience(self) -> None:
        with self._lock:
            is_short = any(isinstance(each.fault, TimeOut) and each.times for each in self._plans)
            if is_short == self._is_short:
                return
            self._is_short = is_short
        # A request under way keeps the time-out that it began with.
        lean = client._ways().lean
        assert lean is not None
        read_seconds = SHORT_SECONDS if is_short else client.READ_SECONDS
        lean._pool.timeout = Timeout(connect=client.CONNECT_SECONDS, read=read_seconds)

    def count(self, operation: str | None = None) -> int:
        """How many requests arrived, of one operation or of all."""
        with self._lock:
            return sum(operation in {None, seen.operation} for seen in self.seen)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        handler = type("Handler", (self._handler(),), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def _handler(self) -> type[Handler]:
        return Handler

    def _fault_for(self, seen: Seen) -> Fault | None:
        with self._lock:
            self.seen.append(seen)
            for plan in self._plans:
                if plan.times and plan.operation in {"*", seen.operation} and plan.when(seen.body):
                    plan.times -= 1
                    return plan.fault
        return None

    def _forward(
        self, path: str, headers: dict[str, str], body: bytes, method: str = "POST"
    ) -> _Reply:
        connection = http.client.HTTPConnection(self._engine, timeout=120)
        try:
            connection.request(method, path, body, headers)
            with connection.getresponse() as reply:
                return _Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def _reply_under(
        self, fault: Fault | None, request: dict[str, Any], forward: Callable[[], _Reply]
    ) -> _Reply | None:
        """What the client gets, None where the connection closes without a word."""
        match fault:
            case CloseBefore():
                return None
            case DropReply():
                forward()
                return None
            case Answer() as answer:
                if answer.carried_out:
                    forward()
                return _Reply(answer.status, _own_headers(), answer.body())
            case Reply(body_for):
                return _Reply(200, _own_headers(), json.dumps(body_for(request)).encode())
            case Delay(seconds):
                reply = forward()
                self._ended.wait(seconds)
                return reply
            case TimeOut():
                forward()
                # Until its client has gone.
                self._ended.wait(SHORT_SECONDS * 2)
                return None
            case Garble(old, new):
                reply = forward()
                assert old in reply.body
                reply.headers["x-amz-crc32"] = str(zlib.crc32(reply.body))
                reply.body = reply.body.replace(old, new)
                return reply
            case Meanwhile(action):
                action()
        return forward()


class Handler(BaseHTTPRequestHandler):
    """One connection of a client; it is kept open between requests, as DynamoDB does."""

    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; the second would wait 40 ms for the first's acknowledgement.
    disable_nagle_algorithm = True
    proxy: FaultProxy

    def setup(self) -> None:
        super().setup()
        with self.proxy._lock:
            self.proxy._open.add(self.connection)

    def finish(self) -> None:
        with self.proxy._lock:
            self.proxy._open.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        headers = dict(self.headers.items())
        request = json.loads(body)
        fault = self.proxy._fault_for(Seen(operation, request))
        if isinstance(fault, TimeOut):
            self.proxy._set_patience()
        reply = self.proxy._reply_under(
            fault, request, lambda: self.proxy._forward(self.path, headers, body)
        )
        if reply is None:
            self.close_connection = True
            return
        try:
            self._pass_on(reply)
        except OSError:
            # The client gave up waiting.
            self.close_connection = True

    def _pass_on(self, reply: _Reply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""


def _own_headers() -> dict[str, str]:
    return {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": str(uuid.uuid4())}


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client was faster.
        return


@contextmanager
def through(endpoint: FaultProxy | str) -> Iterator[None]:
    """Let this process, and those that it starts, talk to DynamoDB at `endpoint` for a while."""
    url = endpoint.url if isinstance(endpoint, FaultProxy) else endpoint
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        # Another client inside; the one from before comes back, as clients are slow to make.
        patch.setattr(client._ways, "_made", None)
        yield
