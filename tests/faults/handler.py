"""Connections of clients to the fault proxy: requests and replies."""

from __future__ import annotations

import http.client
import json
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.proxy import FaultProxy


@dataclass(frozen=True)
class Seen:
    """One request that arrived at the proxy, as it was sent."""

    operation: str
    body: dict[str, Any]


@dataclass
class RawReply:
    """The reply of the engine, or of the proxy."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: Only half of it is sent.
    is_cut: bool = False


class Handler(BaseHTTPRequestHandler):
    """One connection of a client, which is kept open between requests."""

    protocol_version = "HTTP/1.1"
    # Otherwise the system would send the body only 40 ms later, when the headers are acknowledged.
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

    def handle(self) -> None:
        # Otherwise a client that is killed during a request would be reported on stderr.
        with suppress(ConnectionError):
            super().handle()

    def do_POST(self) -> None:
        body = self.read_body()
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        headers = dict(self.headers.items())
        if self.proxy.is_dropped(self.connection):
            self.proxy.wait_for_end()
            return
        self._serve(Seen(operation, json.loads(body)), headers, body)

    def read_body(self) -> bytes:
        """The whole body. Raises ConnectionError if the client was killed before it had sent it."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError
        return body

    def _serve(self, seen: Seen, headers: dict[str, str], body: bytes) -> None:
        # Copied, as a duplicate is forwarded when the connection may have its next request.
        path, command = self.path, self.command

        def forward() -> RawReply:
            reply = self.proxy._forward(path, headers, body, command)
            self.proxy.note(seen, reply)
            return reply

        fault = self.proxy._fault_for(seen)
        try:
            reply = self.proxy._reply_under(fault, seen.body, forward)
            if reply is not None:
                self._pass_on(reply)
        except (OSError, http.client.HTTPException):
            # The client has given up, or the client or the engine was killed.
            reply = None
        if reply is None or reply.is_cut:
            self.close_connection = True

    def _pass_on(self, reply: RawReply) -> None:
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.is_cut else reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
