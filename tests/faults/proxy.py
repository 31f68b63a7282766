"""A proxy before the engine that injects planned faults.

    with FaultProxy(engine) as proxy, through(proxy):
        proxy.plan("PutItem", DropReply())
        register(…)                      # carried out; its first reply is lost
        assert proxy.count("PutItem") == 2

A local engine never throttles, never answers TransactionConflict and loses no reply.
"""

import http.client
import json
import socket
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from dynamo.client import sending
from dynamo.client.lean import LeanClient
from tests.faults.handler import Handler, RawReply, Seen
from tests.faults.kinds import (
    Answer,
    CloseBefore,
    Delay,
    DropReply,
    Duplicate,
    Fault,
    Garble,
    Hold,
    Meanwhile,
    Reply,
    TimeOut,
    Torn,
    Truncate,
)
from tests.faults.tearing import torn

#: How long the client waits for a reply under a TimeOut.
SHORT_SECONDS = 0.4

#: Connections are refused there, so a request is certainly not carried out.
NOWHERE = "http://127.0.0.1:9"


@dataclass
class _Plan:
    operation: str
    fault: Fault
    times: int
    when: Callable[[dict[str, Any]], bool]


class FaultProxy:
    """Listens on a free port, and forwards requests without a planned fault to the engine."""

    def __init__(self, engine_url: str) -> None:
        self._engine = urlsplit(engine_url).netloc
        self._plans: list[_Plan] = []
        self._open: set[socket.socket] = set()
        self._dropped: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._hurried: LeanClient | None = None
        self._transactions = 0
        self._committed = threading.Condition()
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
        """Inject `fault` into the next `times` requests of `operation` whose body meets `when`.

        `"*"` is every operation. Plans apply in the order in which they were made.
        """
        with self._lock:
            self._plans.append(_Plan(operation, fault, times, when))
        if isinstance(fault, TimeOut):
            self._hurry()

    def forget(self) -> None:
        """Remove all plans and recorded requests."""
        with self._lock:
            self._plans.clear()
            self.seen.clear()

    def drop_connections(self) -> None:
        """Lose all data on the open connections, as a NAT gateway that has forgotten them does.

        Neither end is told. New connections work.
        """
        with self._lock:
            self._dropped |= self._open

    def is_dropped(self, connection: socket.socket) -> bool:
        """Whether data on this connection is lost."""
        with self._lock:
            return connection in self._dropped

    def wait_for_end(self) -> None:
        """Wait until the proxy ends."""
        self._ended.wait()

    def _hurry(self) -> None:
        """Shorten the client's time-out for each request under a TimeOut, and for no other."""
        lean = sending._shared().lean
        assert lean is not None
        if lean is self._hurried:
            return
        self._hurried = lean
        usual = copy(lean)
        short = copy(lean)
        short._read_seconds = SHORT_SECONDS

        def exchange(body: bytes, headers: dict[str, str]) -> Any:
            is_short = self._lets_time_out(headers["x-amz-target"], body)
            return (short if is_short else usual)._exchange(body, headers)

        lean._exchange = exchange  # type: ignore[method-assign]  # of this one client

    def _lets_time_out(self, target: str, body: bytes) -> bool:
        with self._lock:
            if not any(isinstance(plan.fault, TimeOut) and plan.times for plan in self._plans):
                return False
            plan = self._plan_for(Seen(target.rpartition(".")[2], json.loads(body)))
            return plan is not None and isinstance(plan.fault, TimeOut)

    def count(self, operation: str | None = None) -> int:
        """How many requests arrived, of one operation or of all."""
        with self._lock:
            return sum(operation in {None, seen.operation} for seen in self.seen)

    @property
    def url(self) -> str:
        """The URL of the proxy."""
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

    def __exit__(self, *_error: object) -> None:
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
            plan = self._plan_for(seen)
            if plan is None:
                return None
            plan.times -= 1
            return plan.fault

    def _plan_for(self, seen: Seen) -> _Plan | None:
        for plan in self._plans:
            if plan.times and plan.operation in {"*", seen.operation} and plan.when(seen.body):
                return plan
        return None

    def _forward(
        self, path: str, headers: dict[str, str], body: bytes, method: str = "POST"
    ) -> RawReply:
        connection = http.client.HTTPConnection(self._engine, timeout=120)
        try:
            connection.request(method, path, body, headers)
            with connection.getresponse() as reply:
                return RawReply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    def _reply_under(
        self, fault: Fault | None, request: dict[str, Any], forward: Callable[[], RawReply]
    ) -> RawReply | None:
        """The reply for the client; None if the connection closes without one."""
        match fault:
            case CloseBefore():
                return None
            case DropReply():
                forward()
                return None
            case Answer() as answer:
                if answer.carried_out:
                    forward()
                return RawReply(answer.status, _own_headers(), answer.body())
            case Reply(body_for):
                return RawReply(200, _own_headers(), json.dumps(body_for(request)).encode())
            case Delay(seconds):
                reply = forward()
                self._ended.wait(seconds)
                return reply
            case TimeOut():
                forward()
                # Until the client has given up.
                self._ended.wait(SHORT_SECONDS * 2)
                return None
            case Garble(old, new):
                reply = forward()
                assert old in reply.body
                reply.headers["x-amz-crc32"] = str(zlib.crc32(reply.body))
                reply.body = reply.body.replace(old, new)
                return reply
            case Hold(seconds):
                self._ended.wait(seconds)
            case Duplicate(seconds):
                reply = forward()
                if reply.status != 200:
                    return forward()
                threading.Thread(target=self._again, args=(forward, seconds), daemon=True).start()
                return reply
            case Truncate():
                reply = forward()
                reply.is_cut = True
                return reply
            case Torn(seconds):
                return self._torn(request, forward, seconds)
            case Meanwhile(action):
                action()
        return forward()

    def _again(self, forward: Callable[[], RawReply], seconds: float) -> None:
        self._ended.wait(seconds)
        with suppress(OSError, http.client.HTTPException):
            forward()

    def _torn(
        self, request: dict[str, Any], forward: Callable[[], RawReply], seconds: float
    ) -> RawReply:
        before = forward()
        with self._committed:
            seen = self._transactions
            self._committed.wait_for(lambda: self._transactions > seen, seconds)
        after = forward()
        if (before.status, after.status) == (200, 200):
            mixed = torn(request, json.loads(before.body), json.loads(after.body))
            return RawReply(200, _own_headers(), json.dumps(mixed).encode())
        return after

    def note(self, seen: Seen, reply: RawReply) -> None:
        """Called with each reply of the engine."""
        if seen.operation == "TransactWriteItems" and reply.status == 200:
            with self._committed:
                self._transactions += 1
                self._committed.notify_all()


def _own_headers() -> dict[str, str]:
    return {"Content-Type": "application/x-amz-json-1.0", "x-amzn-RequestId": str(uuid.uuid4())}


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client has closed it.
        return


@contextmanager
def through(endpoint: FaultProxy | str) -> Iterator[None]:
    """Use `endpoint` for DynamoDB in the block, in this process and those that it starts."""
    url = endpoint.url if isinstance(endpoint, FaultProxy) else endpoint
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        # The earlier client is used again afterwards, as clients are slow to make.
        patch.setattr(sending._shared, "_made", None)
        yield
