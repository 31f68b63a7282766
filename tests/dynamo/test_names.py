"""A name server that never answers does not hold a request, and its last answer is used."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from dynamo.client import connections, sending
from dynamo.client.deadline import within
from dynamo.client.sending import send
from dynamo.exceptions import Unavailable
from dynamo.processes import MOST_THREADS
from locks.lock import Lock
from tests.clocks import Stopwatch
from tests.conftest import PATIENCE_SECONDS
from tests.waiting import wait_until

HOST = "dynamodb.test"
KEY = {"pk": {"S": "thing"}}
SOON_SECONDS = 10.0


class NameServer:
    """In place of the system's resolver for one name; it may hang, or know no such name."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.knows = True
        self.addresses = ["127.0.0.1"]
        #: How often it was asked.
        self.asked = 0
        self._lookup = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *others: Any, **named: Any) -> Any:
        if host != HOST:
            return self._lookup(host, port, *others, **named)
        self.asked += 1
        assert self.answers.wait(120)
        if not self.knows:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            found
            for address in self.addresses
            for found in self._lookup(address, port, *others, **named)
        ]


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    connections._lookups.reset()
    yield server
    server.answers.set()
    wait_until(lambda: not looking_up())


@pytest.fixture
def away(
    engine: str, name_server: NameServer, real_patience: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The engine under a name; every request opens a connection and looks the name up."""
    monkeypatch.setattr(connections, "FRESH_SECONDS", 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.replace("127.0.0.1", HOST))
    sending.reset()
    yield
    sending.reset()


@pytest.fixture(params=[True, False], ids=["lean", "botocore"])
def way(request: pytest.FixtureRequest, settings: Any) -> None:
    settings.DYNAMODB_LEAN = request.param


def get() -> dict[str, Any]:
    return send("GetItem", {"TableName": User.table(), "Key": KEY})


def looking_up() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"Looking up {HOST}"]


@pytest.mark.usefixtures("away", "way")
def test_a_name_server_that_hangs_does_not_hold_a_request(name_server: NameServer) -> None:
    name_server.answers.clear()
    with (
        Stopwatch() as watch,
        within(1),
        pytest.raises(Unavailable, match="EndpointConnectionError") as failed,
    ):
        get()

    assert not failed.value.maybe_written
    assert watch.seconds < SOON_SECONDS
    name_server.answers.set()
    get()


@pytest.mark.usefixtures("away")
def test_a_health_check_answers_while_a_name_server_hangs(name_server: NameServer) -> None:
    name_server.answers.clear()
    with Stopwatch() as watch:
        assert Client().get("/healthz").status_code == 503

    assert watch.seconds < SOON_SECONDS


@pytest.mark.usefixtures("away", "way")
def test_the_last_addresses_are_used_while_a_name_server_hangs(name_server: NameServer) -> None:
    get()
    name_server.answers.clear()
    sending.reset()

    get()

    assert name_server.asked == 2


@pytest.mark.usefixtures("away")
def test_a_lease_is_renewed_while_a_name_server_hangs(name_server: NameServer) -> None:
    lease = Lock("a lock", lease_seconds=20).acquire()
    name_server.answers.clear()
    sending.reset()

    with Stopwatch() as watch:
        lease.renew()

    assert watch.seconds < SOON_SECONDS
    lease.release()


@pytest.mark.usefixtures("away")
def test_the_last_addresses_are_used_while_a_name_server_fails(name_server: NameServer) -> None:
    get()
    name_server.knows = False
    sending.reset()

    get()

    assert name_server.asked == 2


@pytest.mark.usefixtures("away")
def test_addresses_that_are_too_old_are_not_used(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    get()
    name_server.knows = False
    sending.reset()
    monkeypatch.setattr(connections, "STALE_SECONDS", 0.0)

    with within(0), pytest.raises(Unavailable):
        get()


@pytest.mark.usefixtures("away", "way")
def test_a_name_that_nobody_has_is_said_at_once(name_server: NameServer) -> None:
    name_server.knows = False
    with within(0), pytest.raises(Unavailable, match="EndpointConnectionError"):
        get()


@pytest.mark.usefixtures("away")
def test_connections_look_up_a_name_together(
    name_server: NameServer, at_once: Callable[..., list[Any]]
) -> None:
    name_server.answers.clear()
    seen: list[int] = []

    def ask(_number: int) -> None:
        with within(0.5), pytest.raises(Unavailable):
            get()
        seen.append(len(looking_up()))

    at_once(ask, 16)

    assert set(seen) == {1}


@pytest.mark.usefixtures("away")
def test_however_long_a_name_server_hangs_few_threads_wait_for_it(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "STUCK_SECONDS", 0.0)
    name_server.answers.clear()
    for _lookup in range(20):
        with pytest.raises(socket.gaierror):
            connections.addresses(HOST, 0.0)

    wait_until(lambda: name_server.asked == MOST_THREADS)
    assert len(looking_up()) == MOST_THREADS


@pytest.mark.usefixtures("name_server")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]"])
def test_an_address_is_not_looked_up(host: str) -> None:
    assert connections.addresses(host, 0.0) == [host.strip("[]")]


def test_an_answer_is_used_again_for_a_short_time(name_server: NameServer) -> None:
    for _lookup in range(3):
        assert connections.addresses(HOST, PATIENCE_SECONDS) == ["127.0.0.1"]

    assert name_server.asked == 1


@pytest.mark.usefixtures("away", "way")
def test_the_next_address_is_used_where_one_refuses(name_server: NameServer) -> None:
    # Nobody listens at the first one.
    name_server.addresses = ["127.0.0.7", "127.0.0.1"]

    get()


@pytest.mark.usefixtures("name_server", "way", "real_patience")
def test_a_host_whose_addresses_are_all_silent_is_given_up_in_time(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_server.addresses = ["127.0.0.1"] * 50
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        # The queue of one that never accepts is full after these.
        waiting = []
        for _number in range(4):
            each = socket.socket()
            each.setblocking(False)
            each.connect_ex(full.getsockname())
            waiting.append(each)
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://{HOST}:{full.getsockname()[1]}")
        sending.reset()
        try:
            began = time.monotonic()
            with within(0), pytest.raises(Unavailable):
                get()
            assert time.monotonic() - began < SOON_SECONDS
        finally:
            sending.reset()
            for each in waiting:
                each.close()
