"""Fixtures of the whole suite."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader, Loader
from django.template.base import Template

from dynamo import client, deadline, tables
from dynamo.signals import request_sent
from tests import engines
from tests.emptying import empty_all
from tests.faults import FaultProxy, through
from tests.requests import Requests
from tests.touched import Touched, noted


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


@pytest.fixture(scope="session", autouse=True)
def _descriptions_read_once() -> Iterator[None]:
    """Let botocore keep what it reads: the suite makes a thousand clients, a site only one."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((JSONFileLoader, "load_file"), (Loader, "list_available_services")):
            patch.setattr(owner, name, _kept(getattr(owner, name)))
        yield


def _kept(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a loader whose answers are the same for every loader."""
    answers: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(method)
    def kept(loader: Any, *arguments: Any, **named: Any) -> Any:
        where = tuple(getattr(loader, "search_paths", ()))
        question = (where, arguments, tuple(named.items()))
        if question not in answers:
            answers[question] = method(loader, *arguments, **named)
        return answers[question]

    return kept


@pytest.fixture(scope="session", autouse=True)
def _templates_unwatched(django_test_environment: None) -> Iterator[None]:
    """Let templates render as on a site: Django's tests keep a copy of the context of each.

    A page has hundreds of them, one for each widget, and nobody here asks for their contexts.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Template, "_render", lambda self, context: self.nodelist.render(context))
        yield


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


@pytest.fixture(scope="session")
def _touched() -> Iterator[Touched]:
    with noted() as touched:
        yield touched


@pytest.fixture
def engine(engine_url: str, _touched: Touched) -> str:
    """A real engine with empty tables; its URL."""
    keys = {table.name: [part.name for part in table.key] for table in tables.all_tables()}
    empty_all(engine_url, {name: keys[name] for name in _touched.among(list(keys))})
    return engine_url


@pytest.fixture(scope="module")
def read_seconds() -> float:
    """How long the client waits for a reply through the proxy."""
    return 0.6


@pytest.fixture(scope="module")
def _modules_proxy(engine_url: str, read_seconds: float) -> Iterator[FaultProxy]:
    # One for a module, as each takes a client of its own, which is slow to make.
    with (
        pytest.MonkeyPatch.context() as patch,
        FaultProxy(engine_url) as proxy,
    ):
        # Before the client is made: that is when it is told how long to wait.
        patch.setattr(client, "READ_SECONDS", read_seconds)
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
