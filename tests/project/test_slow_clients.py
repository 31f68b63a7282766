"""Clients that hold their connections do not stop the documented server and proxy."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.nginx import nginx
from tests.production import HOST
from tests.served import VISITOR, Server
from tests.waiting import wait_until

CLIENTS = 300
#: How long a visitor waits. Without its options granian needs longer.
PATIENCE_SECONDS = 20.0

_UNVERIFIED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE

_HEAD = f"GET /livez HTTP/1.1\r\nHost: {HOST}\r\n".encode()
_POST = (
    f"POST /accounts/login/ HTTP/1.1\r\nHost: {HOST}\r\nX-Forwarded-Proto: https\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100000\r\n\r\n"
).encode()


@pytest.fixture(scope="module")
def server(served_checkout: Path, engine_url: str) -> Iterator[Server]:
    with Server(served_checkout, engine_url, target="project.wsgi:application") as server:
        yield server


@pytest.fixture(scope="module")
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nginx(server.port, tmp_path_factory.mktemp("nginx")) as port:
        yield port


def connected(port: int, *, tls: bool, source: str = "127.0.0.1") -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
    return _UNVERIFIED.wrap_socket(plain) if tls else plain


def status_of(path: str, port: int, *, tls: bool) -> int:
    """The status of a page that a visitor asks for."""
    if tls:
        made: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=PATIENCE_SECONDS, context=_UNVERIFIED
        )
    else:
        made = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        made.request("GET", path, headers=VISITOR)
        return made.getresponse().status
    finally:
        made.close()


def reply_to(client: socket.socket) -> bytes | None:
    """The first bytes of the answer, empty if the connection was closed; None while it waits."""
    client.settimeout(0)
    try:
        return client.recv(12)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except OSError:
        return b""


def say_nothing(client: socket.socket) -> None:
    """Connect, and wait."""


def ask_once(client: socket.socket) -> None:
    client.sendall(_HEAD + b"X-Forwarded-Proto: https\r\n\r\n")
    reply = http.client.HTTPResponse(client)
    reply.begin()
    reply.read()


def begin_headers(client: socket.socket) -> None:
    client.sendall(_HEAD)


def begin_body(client: socket.socket) -> None:
    client.sendall(_POST)


KINDS: dict[str, tuple[Callable[[socket.socket], None], bytes]] = {
    "silent": (say_nothing, b""),
    "idle": (ask_once, b""),
    "slow headers": (begin_headers, b"X-Slow: a\r\n"),
    "slow bodies": (begin_body, b"a"),
}


class Holder:
    """A client that holds a connection as long as it can, and connects again when it is closed."""

    def __init__(self, kind: str, port: int, *, tls: bool, source: str) -> None:
        self._begin, self._drop = KINDS[kind]
        self._connect = partial(connected, port, tls=tls, source=source)
        self._hold()

    def _hold(self) -> None:
        self.connection = self._connect()
        self._begin(self.connection)

    def go_on(self) -> None:
        """Send a little, or connect again."""
        with suppress(OSError):
            self.connection.sendall(self._drop)
        if reply_to(self.connection) is not None:
            self.connection.close()
            with suppress(OSError):
                self._hold()


@contextmanager
def held(kind: str, port: int, *, tls: bool) -> Iterator[None]:
    """Let clients hold connections, from one address as many as the proxy allows."""

    def hold(number: int) -> Holder:
        return Holder(kind, port, tls=tls, source=f"127.0.0.{2 + number // 50}")

    def go_on() -> None:
        while not over.wait(1):
            for holder in holders:
                holder.go_on()

    over = threading.Event()
    with ThreadPoolExecutor(30) as pool:
        holders = list(pool.map(hold, range(CLIENTS)))
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for holder in holders:
            holder.connection.close()


def assert_serves_others(kind: str, port: int, *, tls: bool) -> None:
    with held(kind, port, tls=tls):
        # Several times, as the server has two workers.
        for _visit in range(8):
            assert status_of("/", port, tls=tls) == 200
            assert status_of("/livez", port, tls=tls) == 200


@pytest.mark.parametrize("kind", ["silent", "idle", "slow headers"])
def test_the_server_serves_others_while_clients_hold_connections(server: Server, kind: str) -> None:
    assert_serves_others(kind, server.port, tls=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_proxy_serves_others_while_clients_hold_connections(proxy: int, kind: str) -> None:
    assert_serves_others(kind, proxy, tls=True)


def test_the_proxy_limits_the_requests_of_one_address(proxy: int) -> None:
    with ExitStack() as stack:
        clients = [
            stack.enter_context(connected(proxy, tls=True, source="127.0.0.99"))
            for _number in range(101)
        ]
        for each in clients:
            begin_body(each)
        replies: list[bytes] = []

        def refused() -> list[bytes]:
            replies.extend(reply for each in clients if (reply := reply_to(each)))
            return replies

        wait_until(refused)
        assert replies == [b"HTTP/1.1 429"]
        assert status_of("/", proxy, tls=True) == 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["silent", "idle", "slow headers"])
def test_the_server_closes_connections_that_clients_hold(server: Server, kind: str) -> None:
    begin, drop = KINDS[kind]
    with connected(server.port, tls=False) as client:
        begin(client)

        def is_closed() -> bool:
            with suppress(OSError):
                client.settimeout(1)
                client.sendall(drop)
            return reply_to(client) is not None

        wait_until(is_closed)
