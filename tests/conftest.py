"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dynamo import client, deadline, tables
from dynamo.batches import write_batches
from dynamo.signals import request_sent
from tests import engines
from tests.faults import FaultProxy, through
from tests.requests import Requests


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        default="dynoxide",
        help="dynoxide, ministack, moto, or the URL of an engine whose tables may be emptied",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "fault_of(engine, fault): the engine's known fault that this test meets"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    engine = config.getoption("--engine")
    for item in items:
        for marker in item.iter_markers("fault_of"):
            name, fault = marker.args
            if name == engine:
                item.add_marker(pytest.mark.skip(reason=f"{name} {fault}"))
    if engine != "dynoxide":
        # What talks to no engine has nothing to say about another one.
        talking = [item for item in items if "engine_url" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(talking)])
        items[:] = talking


@pytest.fixture(scope="session")
def engine_url(request: pytest.FixtureRequest) -> Iterator[str]:
    with engines.running(request.config.getoption("--engine")) as url:
        patch = pytest.MonkeyPatch()
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        client.reset()
        for table in tables.all_tables():
            tables.create(table)
        yield url
        patch.undo()
        client.reset()


@pytest.fixture
def engine(engine_url: str) -> str:
    """A real engine with empty tables; its URL."""
    for table in tables.all_tables():
        empty(table.name, [part.name for part in table.key])
    return engine_url


@pytest.fixture(scope="module")
def _modules_proxy(engine_url: str) -> Iterator[FaultProxy]:
    # One for a module, as each takes a client of its own, which is slow to make.
    with (
        pytest.MonkeyPatch.context() as patch,
        FaultProxy(engine_url) as proxy,
    ):
        # Before the client is made: that is when it is told how long to wait.
        patch.setattr(client, "READ_SECONDS", 0.6)
        with through(proxy):
            yield proxy


@pytest.fixture
def proxy(_modules_proxy: FaultProxy, engine: str) -> Iterator[FaultProxy]:
    """A proxy before the engine, and a client that waits little for a reply.

    From its first use on, all tests of the module talk through it.
    """
    _modules_proxy.forget()
    yield _modules_proxy
    _modules_proxy.forget()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """How many seconds an operation is repeated in this test."""
    client.client()  # made now, as that takes its time
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 0.9)
    return deadline.OPERATION_SECONDS


def empty(table: str, key: list[str] | None = None) -> None:
    """Delete every item of a table, which has the key `pk` unless told otherwise."""
    key = key or ["pk"]
    request = {
        "TableName": table,
        "ProjectionExpression": ", ".join(f"#{number}" for number, _name in enumerate(key)),
        "ExpressionAttributeNames": {f"#{number}": name for number, name in enumerate(key)},
    }
    while True:
        page = client.send("Scan", request)
        write_batches(table, [{"DeleteRequest": {"Key": item}} for item in page["Items"]])
        if not page.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


@pytest.fixture(autouse=True)
def _cheap_password_hashes(settings: Any) -> None:
    """Argon2 is slow on purpose; tests about hashes set their own."""
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.MD5PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]


@pytest.fixture
def requests_sent() -> Iterator[Requests]:
    """Every request that leaves from here on, with what it consumed."""
    requests = Requests()
    request_sent.connect(requests.note)
    yield requests
    request_sent.disconnect(requests.note)


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """Call a function of one number from many threads at once; the results in that order."""

    def run(function: Callable[[int], Any], threads: int = 8) -> list[Any]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(function, range(threads)))

    return run
