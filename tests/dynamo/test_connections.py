"""Connections: name servers that hang or fail, and connections that were idle."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from dynamo import Unavailable
from dynamo.client import connections, sending
from dynamo.client.sending import send
from dynamo.runtime import clock
from dynamo.runtime.deadline import within
from sequences import next_value
from tests.clocks import LeapingClock, Stopwatch
from tests.conftest import PATIENCE_SECONDS
from tests.dynamo.bands import Band
from tests.faults.proxy import FaultProxy, through
from tests.waiting import wait_until

HOST = "dynamodb.test"
KEY = {"pk": {"S": "thing"}}
SOON_SECONDS = 10.0


class NameServer:
    """Replaces the resolver for one name; it may hang, or not know the name."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answers.set()
        self.knows = True
        self.addresses = ["127.0.0.1"]
        #: How many lookups there were.
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
    """Give the engine a host name, which every request looks up."""
    monkeypatch.setattr(connections, "FRESH_SECONDS", 0.0)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.replace("127.0.0.1", HOST))
    sending.reset()
    yield
    sending.reset()


def get() -> dict[str, Any]:
    return send("GetItem", {"TableName": Band.table(), "Key": KEY})


def looking_up() -> list[threading.Thread]:
    return [item for item in threading.enumerate() if item.name == f"Looking up {HOST}"]


@pytest.mark.usefixtures("away", "path")
def test_a_request_waits_for_a_hanging_name_server_until_its_deadline(
    name_server: NameServer,
) -> None:
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


@pytest.mark.usefixtures("away", "path")
@pytest.mark.parametrize("fault", ["hangs", "fails"])
def test_the_last_addresses_are_used_while_a_name_server_hangs_or_fails_until_they_are_old(
    name_server: NameServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    get()
    if fault == "hangs":
        name_server.answers.clear()
    else:
        name_server.knows = False
    sending.reset()

    get()
    assert name_server.asked == 2

    name_server.answers.set()
    name_server.knows = False
    sending.reset()
    monkeypatch.setattr(connections, "STALE_SECONDS", 0.0)
    with within(0), pytest.raises(Unavailable, match="EndpointConnectionError"):
        get()


@pytest.mark.usefixtures("away")
def test_concurrent_connections_share_a_lookup(
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


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]"])
def test_ip_addresses_are_not_looked_up_and_names_once_in_a_short_time(
    name_server: NameServer, host: str
) -> None:
    assert connections.addresses(host, 0.0) == [host.strip("[]")]
    for _lookup in range(3):
        assert connections.addresses(HOST, PATIENCE_SECONDS) == ["127.0.0.1"]

    assert name_server.asked == 1


@pytest.mark.usefixtures("away", "path")
def test_the_next_address_is_used_if_one_refuses_connections(name_server: NameServer) -> None:
    name_server.addresses = ["127.0.0.7", "127.0.0.1"]

    assert get()


@contextmanager
def silent(host: str, port: int = 0) -> Iterator[int]:
    """A server that never accepts, with a full queue. Yields its port."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server((host, port), backlog=0))
        for _number in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        yield full.getsockname()[1]


@pytest.mark.usefixtures("away", "path")
def test_the_next_address_is_used_if_one_is_silent(name_server: NameServer, engine: str) -> None:
    name_server.addresses = ["127.0.0.7", "127.0.0.1"]

    with silent("127.0.0.7", urlsplit(engine).port or 0):
        assert get()


@pytest.mark.usefixtures("path", "real_patience", "own_client")
def test_a_host_whose_addresses_are_all_silent_is_unavailable_in_time(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_server.addresses = ["127.0.0.1"] * 50
    with silent("127.0.0.1") as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://{HOST}:{port}")
        with Stopwatch() as watch, within(0), pytest.raises(Unavailable):
            get()

    assert watch.seconds < SOON_SECONDS


# Idle connections ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("path", "real_patience")
def test_an_idle_connection_is_replaced_and_a_recently_used_one_is_not(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaping = LeapingClock()
    monkeypatch.setattr(clock, "time", leaping)
    with FaultProxy(engine) as proxy, through(proxy):
        assert next_value("visitors") == 1
        opened = len(proxy._open)
        for number in (2, 3):
            leaping.leap(connections.IDLE_SECONDS - 1)
            assert next_value("visitors") == number
        assert len(proxy._open) == opened == 1
        # As a gateway on the way to DynamoDB drops them.
        proxy.drop_connections()

        leaping.leap(connections.IDLE_SECONDS + 1)

        assert next_value("visitors") == 4
        assert proxy.count("UpdateItem") == 4


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="Linux has this clock")
def test_idle_time_is_measured_on_a_clock_that_runs_during_suspend() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)

    assert before <= clock.now() <= time.clock_gettime(time.CLOCK_BOOTTIME)
