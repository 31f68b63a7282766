"""The documented server and proxy: their answers, their end, and clients that hold connections."""

import gzip
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from locks import registry
from locks.lock import Lock
from locks.registry import State
from tests.commands import ROOT
from tests.engines import free_port, is_listening
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.production import HOST
from tests.served import ENDLESS, LOCKED, VISITOR, Server
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server(served_checkout: Path, engine_url: str) -> Iterator[Server]:
    with Server(served_checkout, engine_url) as running:
        yield running


def test_a_page_and_its_static_files_come_from_one_process(server: Server) -> None:
    page = server.get("/")

    assert page.status == 200
    found = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.body.decode())
    assert len(found) >= 2
    for address in found:
        plain = server.get(address)
        packed = server.get(address, Accept_Encoding="gzip")
        assert (plain.status, packed.status) == (200, 200)
        assert re.search(r"\.[0-9a-f]{12}\.\w+$", address)
        for reply in (plain, packed):
            assert reply.headers["Cache-Control"] == "max-age=315360000, public, immutable"
            # A file that gzip does not make smaller has one form.
            is_packed = packed.headers["Content-Encoding"] == "gzip"
            assert reply.headers["Vary"] == ("Accept-Encoding" if is_packed else None)
        if is_packed:
            assert gzip.decompress(packed.body) == plain.body


def test_only_probes_are_answered_without_tls_and_for_any_host(server: Server) -> None:
    def answer(path: str) -> tuple[int, bytes]:
        reply = server.ask("GET", path, headers={"Host": "10.0.0.9", "X-Forwarded-Proto": "http"})
        return reply.status, reply.body

    assert answer("/livez") == (200, b"ok\n")
    # Its time-out is short, and the engine may stand still on a machine under load.
    wait_until(lambda: answer("/healthz") == (200, b"ok\n"))
    assert server.get("/accounts/login/", X_Forwarded_Proto="http").status == 301


def test_a_worker_that_is_killed_is_replaced(server: Server) -> None:
    killed = min(server.workers())

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: server.log.count("Started worker") == 3)
    wait_until(lambda: len(server.workers() - {killed}) == 2)
    assert server.get("/livez").status == 200


# Under high load granian sometimes misses a SIGTERM.
@pytest.mark.slow
def test_sigterm_answers_accepted_requests_and_releases_all_leases(
    served_checkout: Path, engine_url: str
) -> None:
    reached = threading.Event()
    go_on = threading.Event()

    def hold() -> None:
        reached.set()
        go_on.wait(60)

    with FaultProxy(engine_url) as proxy, ThreadPoolExecutor(1) as pool:
        held = {"key": {"S": "held"}}
        proxy.plan("GetItem", Meanwhile(hold), when=lambda body: body["Key"] == held)
        with Server(served_checkout, proxy.url) as server:
            threads = {f"of a thread of {pid}" for pid in server.workers()}
            locks = {"of a request", *threads}
            wait_until(lambda: held_among(locks) == threads)
            answer = pool.submit(server.get, LOCKED)
            reached.wait(60)
            assert held_among(locks) == locks

            server.process.terminate()
            wait_until(lambda: not is_listening(server.port))
            go_on.set()

            reply = answer.result(60)
            assert (reply.status, reply.body) == (200, b"done")
            assert server.process.wait(60) == 0
    assert len(threads) == 2
    assert held_among(locks) == set()
    for name in locks:
        lease = Lock(name).try_acquire()
        assert lease is not None
        lease.release()


def held_among(names: set[str]) -> set[str]:
    return {lock.name for lock in registry.all_locks() if lock.state is State.HELD} & names


# Clients that hold their connections --------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="The system of others has no such limit.")
def test_a_reader_that_takes_nothing_is_cut_off(server: Server) -> None:
    with closing(socket.create_connection(("127.0.0.1", server.port))) as reader:
        reader.sendall(f"GET {ENDLESS} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())

        wait_until(lambda: "The endless page was closed." in server.log)

        assert server.get("/livez").status == 200


CLIENTS = 300
#: How long a visitor waits.
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
def proxy(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nginx(server.port, tmp_path_factory.mktemp("nginx")) as port:
        yield port


def connected(port: int, *, source: str = "127.0.0.1", seconds: float = 60) -> socket.socket:
    """A connection to the proxy."""
    plain = socket.create_connection(("127.0.0.1", port), seconds, (source, 0))
    return _UNVERIFIED.wrap_socket(plain)


def status_of(path: str, port: int) -> int:
    """The status of a page that a visitor of the proxy asks for."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as made:
        made.sock = connected(port, seconds=PATIENCE_SECONDS)
        made.request("GET", path, headers=VISITOR)
        return made.getresponse().status


def reply_to(client: socket.socket) -> bytes | None:
    """The first bytes of the answer, empty if the connection was closed; None while it waits."""
    client.settimeout(0)
    try:
        return client.recv(12)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except OSError:
        return b""


#: What clients send at first, and then again and again.
KINDS = {
    "silent": (b"", b""),
    "idle": (_HEAD + b"X-Forwarded-Proto: https\r\n\r\n", b""),
    "slow headers": (_HEAD, b"X-Slow: a\r\n"),
    "slow bodies": (_POST, b"a"),
}


def begin(kind: str, client: socket.socket) -> socket.socket:
    client.sendall(KINDS[kind][0])
    if kind == "idle":
        reply = http.client.HTTPResponse(client)
        reply.begin()
        reply.read()
    return client


@contextmanager
def held(kinds: Sequence[str], port: int) -> Iterator[None]:
    """Let clients hold connections to the proxy, from one address as many as it allows."""

    def hold(number: int) -> tuple[socket.socket, str]:
        kind = kinds[number % len(kinds)]
        return begin(kind, connected(port, source=f"127.0.0.{2 + number // 50}")), kind

    def go_on() -> None:
        while not over.wait(1):
            for client, kind in clients:
                with suppress(OSError):
                    client.sendall(KINDS[kind][1])

    over = threading.Event()
    with ThreadPoolExecutor(30) as pool:
        clients = list(pool.map(hold, range(CLIENTS)))
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for client, _kind in clients:
            client.close()


# The bodies are more than the threads of the server.
@pytest.mark.parametrize("kinds", [["slow bodies"], ["silent", "idle", "slow headers"]])
def test_the_proxy_serves_others_while_clients_hold_connections(
    proxy: int, kinds: list[str]
) -> None:
    with held(kinds, proxy):
        # Several times, as the server has two workers.
        for _visit in range(8):
            assert status_of("/", proxy) == 200
            assert status_of("/livez", proxy) == 200


def test_the_proxy_limits_the_requests_of_one_address(proxy: int) -> None:
    with ExitStack() as stack:
        connect = partial(connected, proxy, source="127.0.0.99")
        clients = [stack.enter_context(begin("slow bodies", connect())) for _number in range(101)]
        replies: list[bytes] = []

        def refused() -> list[bytes]:
            replies.extend(reply for client in clients if (reply := reply_to(client)))
            return replies

        wait_until(refused)
        assert replies == [b"HTTP/1.1 429"]
        assert status_of("/", proxy) == 200


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["silent", "idle", "slow headers"])
def test_the_server_closes_connections_that_clients_hold(server: Server, kind: str) -> None:
    with begin(kind, socket.create_connection(("127.0.0.1", server.port), 60)) as client:

        def is_closed() -> bool:
            with suppress(OSError):
                client.settimeout(1)
                client.sendall(KINDS[kind][1])
            return reply_to(client) is not None

        wait_until(is_closed)


# nginx with deploy/nginx.conf before a server on this machine -------------------------------------


_MAIN = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{limits}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def program() -> str:
    """The path of nginx; skips the test without it, but fails in CI."""
    # On Debian it is not on the PATH of users.
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if found is None:
        missing = "nginx is not installed"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


@contextmanager
def nginx(server_port: int, folder: Path) -> Iterator[int]:
    """Serve HTTPS in the block; yields the port."""
    path = program()
    port = free_port()
    _certify(folder)
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    # Its first comment lists the settings of the main file.
    limits = "\n".join(re.findall(r"^#     (\w.*)$", text, re.MULTILINE))
    for old, new in {
        "127.0.0.1:8000": f"127.0.0.1:{server_port}",
        "/etc/ssl/site": str(folder),
        "www.example.com": HOST,
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{free_port()}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"^ *listen \[::\].*$", "", text, flags=re.MULTILINE)
    (folder / "site.conf").write_text(text)
    main = folder / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    main.write_text(_MAIN.format(folder=folder, user=user, limits=limits))
    with subprocess.Popen([path, "-p", folder, "-c", main, "-e", folder / "error.log"]) as process:
        try:
            wait_until(lambda: process.poll() is not None or is_listening(port))
            assert process.poll() is None, (folder / "error.log").read_text()
            yield port
        finally:
            process.terminate()
            process.wait(60)


def _certify(folder: Path) -> None:
    curve = ("-pkeyopt", "ec_paramgen_curve:prime256v1")
    made = ("-keyout", folder / "key.pem", "-out", folder / "fullchain.pem")
    said = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    subprocess.run([*command, *curve, *said, *made], check=True, capture_output=True)
