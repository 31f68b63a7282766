"""Fixtures of the whole suite."""

import gc
import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import boto3
import hypothesis
import pytest
from django.conf import settings
from django.template.base import Template
from django.test import override_settings

from dynamo import test
from dynamo.client import engine as local_engine, sending
from dynamo.client.endpoints import TEST_ENDPOINT
from dynamo.runtime import deadline
from dynamo.test import Tables
from locks import leases
from tests import botocore_files, engines
from tests.clocks import StallProofClock, use_clock
from tests.faults.proxy import FaultProxy, through
from tests.fork_server import fork_server
from tests.parameters import Parameter
from tests.requests import Requests, told
from tests.written_tables import WrittenTables, recorded

# Tests also run in projects without the site (`tests/library/`, `tests/own_user.py`).
_PLUGINS = {"accounts": "tests.registration", "invoices": "tests.site"}
pytest_plugins = [plugin for app, plugin in _PLUGINS.items() if app in settings.INSTALLED_APPS]

# The plugin refuses requests. This suite also tests how clients find an engine, so no variable may
# lead past that; `tests.environment` keeps them from real tables.
os.environ.pop(TEST_ENDPOINT, None)

#: Longer than a machine under load stalls.
PATIENCE_SECONDS = 60.0
# Examples are few and the same each time, so that a commit does not fail by bad luck; with
# STRESS=full they are many and random. There is no deadline, as the machine may stall.
_IS_FULL = os.environ.get("STRESS") == "full"
hypothesis.settings.register_profile(
    "suite",
    database=None,
    deadline=None,
    derandomize=not _IS_FULL,
    max_examples=100 if _IS_FULL else 30,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")
# Until all tests are collected.
gc.disable()

#: Time-outs and a deadline, which are longer in the suite.
CONNECT_SECONDS, READ_SECONDS = sending.CONNECT_SECONDS, sending.READ_SECONDS
PAGE_SECONDS = settings.DYNAMODB_PAGE_SECONDS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        default="dynoxide",
        help="dynoxide, ministack, moto, or the URL of an engine whose tables may be emptied",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fault_of(engine, fault): a known fault of the engine, which makes this test fail",
    )


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among what is there for the whole session."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Still in random order, but those that need the same program are together, so that few workers
    # start it, and come first, as they take long.
    items.sort(key=_programs_of)
    engine = config.getoption("--engine")
    for item in items:
        for marker in item.iter_markers("fault_of"):
            name, fault = marker.args
            if name == engine:
                item.add_marker(pytest.mark.skip(reason=f"{name} {fault}"))
    if engine != "dynoxide":
        # Tests without an engine would do the same as on dynoxide.
        talking, silent = [], []
        for item in items:
            talks = "engine_url" in getattr(item, "fixturenames", ())
            (talking if talks else silent).append(item)
        config.hook.pytest_deselected(items=silent)
        items[:] = talking


def _programs_of(item: pytest.Item) -> list[bool]:
    """False for each program that a test needs: Chromium, S3, the parameter store."""
    names = getattr(item, "fixturenames", ())
    return [not item.get_closest_marker("browser"), "s3_url" not in names, "_ssm" not in names]


@pytest.fixture(scope="session", autouse=True)
def _suited(django_test_environment: None) -> Iterator[None]:
    """What all tests share. One fixture, as each costs something in each test."""
    with pytest.MonkeyPatch.context() as patch:
        botocore_files.keep(patch.setattr)
        # As on a site. Django's test runner copies the context of each template: a page has
        # hundreds of templates, one for each widget, and no test needs their contexts.
        patch.setattr(Template, "_render", lambda self, context: self.nodelist.render(context))
        # A slow machine does not look like a lost reply.
        patch.setattr(sending, "CONNECT_SECONDS", PATIENCE_SECONDS)
        patch.setattr(sending, "READ_SECONDS", PATIENCE_SECONDS)
        # A slow machine does not make pages late; tests of deadlines set their own.
        with override_settings(DYNAMODB_PAGE_SECONDS=PATIENCE_SECONDS):
            yield
    fork_server.end()


@pytest.fixture(scope="session")
def dynamodb_tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """As the plugin's, with any engine."""
    name = request.config.getoption("--engine")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(local_engine, "START_SECONDS", PATIENCE_SECONDS)
        if name != "dynoxide":
            tables = Tables(stack.enter_context(engines.running(name)))
            patch.setattr(test, "tables_of_process", lambda: tables)
        yield test.tables_of_process()


@pytest.fixture(scope="session")
def engine_url(dynamodb_tables: Tables) -> Iterator[str]:
    """The URL of the engine, which clients find by the environment, as those of a site do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_tables.url)
        sending.reset()
        yield dynamodb_tables.url
    sending.reset()


@pytest.fixture(scope="session")
def _written_tables() -> Iterator[WrittenTables]:
    with recorded() as written:
        yield written


@pytest.fixture
def engine(engine_url: str, dynamodb_tables: Tables, _written_tables: WrittenTables) -> str:
    """The URL of a real engine with empty tables."""
    names = [table.name for table in dynamodb_tables.all]
    dynamodb_tables.empty(_written_tables.among(names))
    return engine_url


@pytest.fixture(scope="session")
def s3_url() -> Iterator[str]:
    """An S3 of this session's own, which clients find by the environment."""
    with engines.running("s3") as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", url)
        yield url


@pytest.fixture(scope="session")
def s3(s3_url: str) -> Any:
    """A plain client to read what is stored."""
    return boto3.client("s3", endpoint_url=s3_url, region_name="us-east-1")


@pytest.fixture
def bucket(s3: Any) -> str:
    """The name of an empty bucket of this test's own."""
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


@pytest.fixture(scope="module")
def _modules_proxy(engine_url: str) -> Iterator[FaultProxy]:
    # One per module, as each needs a client of its own, which is slow to make.
    with FaultProxy(engine_url) as proxy, through(proxy):
        yield proxy


@pytest.fixture
def proxy(
    _modules_proxy: FaultProxy,
    engine: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[FaultProxy]:
    """A fault proxy before the engine, which this process uses.

    After its first use all tests of the module use it. Operations are repeated for a long time,
    unless a test is `impatient`.
    """
    if "impatient" not in request.fixturenames:
        monkeypatch.setattr(deadline, "OPERATION_SECONDS", 15.0)
    _modules_proxy.forget()
    yield _modules_proxy
    _modules_proxy.forget()


@pytest.fixture(scope="session")
def _ssm() -> Iterator[str]:
    with engines.running("ssm") as url:
        # Its first answer takes longer than a site under load waits for one.
        boto3.client("ssm", "us-east-1", endpoint_url=url).describe_parameters()
        yield url


@pytest.fixture
def parameter(_ssm: str) -> Iterator[Parameter]:
    """A parameter that nobody has stored yet."""
    with FaultProxy(_ssm) as proxy:
        yield Parameter(_ssm, proxy)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> float:
    """How many seconds an operation is repeated in this test.

    Stalls of the machine do not count, so they do not use up the time of all attempts. Pauses
    between attempts are over at once.
    """
    sending.client()  # now, as that is slow
    use_clock(StallProofClock(0.2), monkeypatch)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 0.9)
    monkeypatch.setattr(deadline, "RECOVERY_SECONDS", 1.0)
    return deadline.OPERATION_SECONDS


@pytest.fixture(autouse=True)
def _no_lease_is_left_behind() -> Iterator[None]:
    """Otherwise it would be renewed in other tests, and released when the engine is gone."""
    yield
    leases._of_process().drop_all()


@pytest.fixture
def real_patience(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-outs and deadlines of the site."""
    settings.DYNAMODB_PAGE_SECONDS = PAGE_SECONDS
    monkeypatch.setattr(sending, "CONNECT_SECONDS", CONNECT_SECONDS)
    monkeypatch.setattr(sending, "READ_SECONDS", READ_SECONDS)


@pytest.fixture
def own_client() -> Iterator[None]:
    """A client of this test's own, made on first use."""
    sending.reset()
    yield
    sending.reset()


@pytest.fixture
def requests_sent() -> Iterator[Requests]:
    """Every request that is sent from now on, with the capacity that it consumed."""
    requests = Requests()
    with told(requests.note):
        yield requests


@pytest.fixture
def at_once() -> Callable[..., list[Any]]:
    """Call a function with the numbers of many threads at once; returns the results in order."""

    def run(function: Callable[[int], Any], threads: int = 8) -> list[Any]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(function, range(threads)))

    return run
