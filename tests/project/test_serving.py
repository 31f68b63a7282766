"""The documented server: its answers, its end, and a worker that is killed."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from locks._internal import registry
from locks._internal.lock import Lock
from locks._internal.registry import State
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.served import LOCKED, Server
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
        plain, packed = server.get(address), server.get(address, Accept_Encoding="gzip")
        assert (plain.status, packed.status) == (200, 200)
        assert re.search(r"\.[0-9a-f]{12}\.\w+$", address)
        for reply in (plain, packed):
            assert reply.headers["Cache-Control"] == "max-age=315360000, public, immutable"
            # A file that gzip does not make smaller has one form.
            is_packed = packed.headers["Content-Encoding"] == "gzip"
            assert reply.headers["Vary"] == ("Accept-Encoding" if is_packed else None)
        if is_packed:
            assert gzip.decompress(packed.body) == plain.body


def test_a_missing_static_file_is_404_and_not_cached(server: Server) -> None:
    reply = server.get("/static/accounts/site.0123456789ab.css")

    assert reply.status == 404
    assert "immutable" not in str(reply.headers["Cache-Control"])


def test_probes_are_answered_without_tls_and_for_any_host(server: Server) -> None:
    def answer(path: str) -> tuple[int, bytes]:
        reply = server.ask("GET", path, headers={"Host": "10.0.0.9", "X-Forwarded-Proto": "http"})
        return reply.status, reply.body

    assert answer("/livez") == (200, b"ok\n")
    # Its time-out is short, and the engine may stand still on a machine under load.
    wait_until(lambda: answer("/healthz") == (200, b"ok\n"))


def test_a_request_without_tls_is_redirected(server: Server) -> None:
    reply = server.get("/accounts/login/", X_Forwarded_Proto="http")

    assert reply.status == 301
    assert reply.headers["Location"] == "https://www.example.org/accounts/login/"


def test_a_worker_that_is_killed_is_replaced(server: Server) -> None:
    before = server.workers()
    killed = min(before)

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: server.log.count("Started worker") == 3)
    wait_until(lambda: len(server.workers()) == 2)
    assert killed not in server.workers()
    assert server.get("/livez").status == 200


# Under high load granian sometimes misses a SIGTERM.
@pytest.mark.slow
def test_sigterm_answers_accepted_requests_and_releases_all_leases(
    served_checkout: Path, engine_url: str
) -> None:
    reached, go_on = threading.Event(), threading.Event()

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
            wait_until(lambda: is_refused(server.port))
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


def is_refused(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != 0
