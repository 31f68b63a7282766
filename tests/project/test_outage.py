"""What visitors of the documented server see while DynamoDB is unreachable or slow."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from dynamo._internal.client.breaker import OPEN_SECONDS, OPENING_FAILURES
from tests.conftest import READ_SECONDS
from tests.faults.kinds import Answer
from tests.faults.proxy import NOWHERE, FaultProxy
from tests.served import Server

VISITORS = 96
#: The cookie of a signed-in visitor.
COOKIE = "__Host-sessionid=abcdefghijklmnopqrstuvwxyz012345"


def visit(server: Server) -> tuple[int, float]:
    """The status of a page that reads from DynamoDB, and how many seconds it took."""
    began = time.monotonic()
    reply = server.get("/", Cookie=COOKIE)
    return reply.status, time.monotonic() - began


@contextmanager
def probed(server: Server) -> Iterator[list[float]]:
    """How many seconds each answer of /livez took during the block."""
    over = threading.Event()
    seconds: list[float] = []

    def probe() -> None:
        while not over.wait(0.05):
            began = time.monotonic()
            assert server.get("/livez").status == 200
            seconds.append(time.monotonic() - began)

    with ThreadPoolExecutor(1) as pool:
        probing = pool.submit(probe)
        yield seconds
        over.set()
        probing.result()


def test_visitors_soon_get_a_503_while_dynamodb_is_unreachable(served_checkout: Path) -> None:
    with (
        Server(served_checkout, NOWHERE, target="project.wsgi:application") as server,
        ThreadPoolExecutor(VISITORS) as pool,
    ):
        with probed(server) as livez:
            first = list(pool.map(lambda _number: visit(server), range(VISITORS)))
        second = list(pool.map(lambda _number: visit(server), range(VISITORS)))
        health = server.get("/healthz")

    assert {status for status, _seconds in first + second} == {503}
    # A tenth of that on an idle machine; without the circuit breaker it is over 30.
    assert max(seconds for _status, seconds in first + second) < 15
    assert max(livez) < 5
    assert health.status == 503


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of an engine that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=VISITORS * 8) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_few_visitors_wait_for_an_engine_that_does_not_answer(
    served_checkout: Path, silent: str
) -> None:
    with (
        Server(served_checkout, silent, target="project.wsgi:application") as server,
        ThreadPoolExecutor(VISITORS) as pool,
    ):
        list(pool.map(lambda _number: visit(server), range(VISITORS)))
        first = server.pages()
        began = time.monotonic()
        list(pool.map(lambda _number: visit(server), range(VISITORS)))
        seconds = time.monotonic() - began
        later = server.pages()[len(first) :]

    assert [page["status"] for page in first + later] == [503] * 2 * VISITORS
    workers = 2
    # The failures before the last one that opens the breaker are tried again.
    assert sum(page["retries"] > 0 for page in first) <= workers * (OPENING_FAILURES - 1)
    # Of each process, one page at a time tries whether the engine answers.
    tries = workers * (1 + seconds // (READ_SECONDS + OPEN_SECONDS))
    assert sum(page["dynamodbRequests"] > 0 for page in later) <= tries


def test_livez_and_static_files_are_answered_while_pages_wait_for_dynamodb(
    served_checkout: Path, engine_url: str
) -> None:
    with (
        FaultProxy(engine_url) as proxy,
        Server(served_checkout, proxy.url, target="project.wsgi:application") as server,
        ThreadPoolExecutor(VISITORS) as pool,
    ):
        style = re.search(r'href="(/static/[^"]+\.css)"', server.get("/").body.decode())
        assert style is not None
        # Each page retries a throttled request until its deadline.
        proxy.plan("*", Answer(400, "ThrottlingException"), times=1_000_000)
        with probed(server) as livez:
            pages = [pool.submit(visit, server) for _number in range(VISITORS)]
            while not wait(pages, timeout=0.05).done.issuperset(pages):
                assert server.get(style[1]).status == 200
            visits = [page.result() for page in pages]

    assert {status for status, _seconds in visits} == {503}
    assert 4 < max(seconds for _status, seconds in visits) < 30
    assert max(livez) < 5
