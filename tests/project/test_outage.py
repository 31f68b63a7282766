"""What visitors of the documented server see while DynamoDB is unreachable or slow."""

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

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
