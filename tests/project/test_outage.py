"""What visitors of the documented server see while DynamoDB is away or slow."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.kinds import Answer
from tests.faults.proxy import NOWHERE, FaultProxy
from tests.production import checkout_in, collect_into
from tests.served import Server

VISITORS = 96
#: A visitor who is signed in, as far as the cookie says.
COOKIE = "__Host-sessionid=abcdefghijklmnopqrstuvwxyz012345"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, django_test_environment: None) -> Path:
    folder = checkout_in(tmp_path_factory.mktemp("served"))
    collect_into(folder / "staticfiles")
    return folder


def visit(server: Server) -> tuple[int, float]:
    """The status of a page that asks DynamoDB, and how many seconds it took."""
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


def test_visitors_are_told_soon_that_dynamodb_is_away(checkout: Path) -> None:
    with (
        Server(checkout, NOWHERE, target="project.wsgi:application") as server,
        ThreadPoolExecutor(VISITORS) as pool,
    ):
        with probed(server) as livez:
            first = list(pool.map(lambda _number: visit(server), range(VISITORS)))
        second = list(pool.map(lambda _number: visit(server), range(VISITORS)))
        health = server.get("/healthz")

    assert {status for status, _seconds in first + second} == {503}
    # A tenth of that on a machine that has nothing else to do; without the breaker it is over 30.
    assert max(seconds for _status, seconds in first + second) < 15
    assert max(livez) < 5
    assert health.status == 503


def test_livez_and_static_files_are_answered_while_pages_wait_for_dynamodb(
    checkout: Path, engine_url: str
) -> None:
    with (
        FaultProxy(engine_url) as proxy,
        Server(checkout, proxy.url, target="project.wsgi:application") as server,
        ThreadPoolExecutor(VISITORS) as pool,
    ):
        style = re.search(r'href="(/static/[^"]+\.css)"', server.get("/").body.decode())
        assert style is not None
        # Throttling is an answer, so each page goes on trying until its deadline.
        proxy.plan("*", Answer(400, "ThrottlingException"), times=1_000_000)
        with probed(server) as livez:
            pages = [pool.submit(visit, server) for _number in range(VISITORS)]
            while not all(page.done() for page in pages):
                assert server.get(style[1]).status == 200
            visits = [page.result() for page in pages]

    assert {status for status, _seconds in visits} == {503}
    assert 4 < max(seconds for _status, seconds in visits) < 30
    assert max(livez) < 5
