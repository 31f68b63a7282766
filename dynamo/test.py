"""Tools for tests of your app, on a local engine that only the tests use.

    class MemberTests(TestCase):
        @classmethod
        def setUpTestData(cls):
            cls.ann = Member.create(email="ann@example.org")

        def test_the_page_of_a_member(self):
            …
            with self.max_requests(2):
                self.client.get(…)

pytest has the fixtures `dynamodb` and `max_requests` (`dynamo.pytest_plugin`).

No test reaches another engine or AWS. While `DYNAMODB_TEST_ENDPOINT` is in the environment,
requests are sent there, with the credentials of a local engine. Settings, profiles, other variables
and the engine of development are ignored. Outside of tests with tables the variable is empty, and
requests raise RuntimeError. Child processes inherit it.
"""

import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Never
from unittest import TestResult

from botocore.exceptions import ClientError, ReadTimeoutError
from django.core.exceptions import ImproperlyConfigured
from django.test import SimpleTestCase, testcases
from django.test.runner import DiscoverRunner
from django.test.testcases import TestData  # type: ignore[attr-defined]  # absent from the stubs
from django.test.utils import iter_test_cases  # type: ignore[attr-defined]  # absent from the stubs

from dynamo.client import engine, sending
from dynamo.client.bulk import projection, query_pages, write_batches
from dynamo.client.endpoints import TEST_ENDPOINT
from dynamo.client.plain import PlainModel
from dynamo.client.retries import is_read
from dynamo.client.tally import Tally, table_names
from dynamo.exceptions import Unavailable
from dynamo.runtime.no_database.base import has_database
from dynamo.runtime.processes import PerProcess
from dynamo.signals import request_sent, tables_emptied
from dynamo.tables.definitions import Table, all_tables, create
from dynamo.wire.types import Answer, Item

# The client of this endpoint is never made.
_refusing = PerProcess(sending._make_shared)


def refuse_requests() -> None:
    """Refuse all requests of this process and its children, except inside `Tables.open`."""
    _lead_to("", _refusing)


def _lead_to(url: str | None, clients: PerProcess) -> None:
    if url is None:
        os.environ.pop(TEST_ENDPOINT, None)
    else:
        os.environ[TEST_ENDPOINT] = url
    sending._shared = clients


class Tables:
    """The project's tables on the engine at `url`, which are created, and emptied if they exist."""

    def __init__(self, url: str) -> None:
        self.url = url
        # The clients of this engine are kept while all requests are refused.
        self._clients = PerProcess(sending._make_shared)
        with self._reached():
            self.all = all_tables()
            for table in self.all:
                create(table)
        self.empty()

    @contextmanager
    def open(self) -> Iterator[None]:
        """Send the requests of the body to this engine, and empty the tables at its end."""
        with self._reached():
            try:
                yield
            finally:
                self.empty()

    @contextmanager
    def _reached(self) -> Iterator[None]:
        before = os.environ.get(TEST_ENDPOINT), sending._shared
        _lead_to(self.url, self._clients)
        try:
            yield
        finally:
            _lead_to(*before)

    def items(self) -> dict[str, list[Item]]:
        """All items, by table. Costs 1 request per table."""
        with self._reached():
            return {
                table.name: [
                    item
                    for items, _has_more in query_pages({"TableName": table.name}, "Scan")
                    for item in items
                ]
                for table in self.all
            }

    def put(self, items: Mapping[str, list[Item]]) -> None:
        """Store `items`, by table. Costs 1 request per 25 items."""
        with self._reached():
            for name, value in items.items():
                write_batches(name, [{"PutRequest": {"Item": item}} for item in value])

    def empty(self, names: Iterable[str] | None = None) -> None:
        """Delete all items, and what this process has cached of them. Costs 1 request per table.

        `names` are the tables that may have items; by default, all tables.
        """
        with self._reached():
            for table in self.all:
                if names is None or table.name in names:
                    _empty(table)
        tables_emptied.send(None)


def _empty(table: Table) -> None:
    request = projection(name for name, _type in table.key) | {"TableName": table.name}
    for keys, _has_more in query_pages(request, "Scan"):
        write_batches(table.name, [{"DeleteRequest": {"Key": key}} for key in keys])


_engine_of_process = PerProcess(engine.start_temporary)

#: The tables of this process, on its own engine, which starts with the first use.
tables_of_process = PerProcess(lambda: Tables(_engine_of_process()))


@contextmanager
def max_requests(most: int) -> Iterator[Tally]:
    """Fail if more than `most` requests are sent in the body, by any thread, retries included.

    Raises:
        AssertionError: it names each request and the line that asked for it.
    """
    tally = Tally(keep_calls=True)
    request_sent.connect(tally.note)
    try:
        yield tally
    finally:
        request_sent.disconnect(tally.note)
    if tally.requests > most:
        calls = "".join(f"\n{call.operation} {call.table} {call.asked_by}" for call in tally.calls)
        raise AssertionError(f"{tally}; at most {most} expected:{calls}")


# Faults -------------------------------------------------------------------------------------------

_Attempt = Callable[[], Answer]
#: Replaces an attempt. It gets the operation, the request, and a function that makes the real
#: attempt.
_Fault = Callable[[_Attempt, str, Mapping[str, Any]], Answer]


@contextmanager
def _failing(
    fault: _Fault, times: float, model: type[PlainModel] | None, *, reads: bool = True
) -> Iterator[list[str]]:
    hit: list[str] = []
    count = itertools.count()
    perform = sending._perform

    def failing(shared: Any, operation: str, request: Mapping[str, Any]) -> Answer:
        real = partial(perform, shared, operation, request)
        concerns = model is None or model.table() in table_names(request).split("+")
        if not concerns or not (reads or not is_read(operation)) or next(count) >= times:
            return real()
        hit.append(operation)
        return fault(real, operation, request)

    sending._perform = failing
    try:
        yield hit
    finally:
        sending._perform = perform
        if shared := sending._shared.made():
            # Otherwise, the breaker would remain open, and later pages would fail fast.
            shared.breaker.note(0.0, None)
    if not hit:
        raise AssertionError("No request met the fault.")


def lost_reply(
    times: float = 1, *, model: type[PlainModel] | None = None
) -> AbstractContextManager[list[str]]:
    """Carry out the next `times` writes, but lose the replies. The library sends the writes again.

    Like the other faults, it yields the list of the operations that it changed, and fails if there
    were none. It concerns the requests of all threads, or only those to the table of `model`.
    """
    return _failing(_lose, times, model, reads=False)


def _lose(real: _Attempt, *_request: object) -> Answer:
    real()
    raise ReadTimeoutError(endpoint_url="")


def throttled(
    times: float = 1, *, model: type[PlainModel] | None = None
) -> AbstractContextManager[list[str]]:
    """Throttle the next `times` requests. The library sends them again."""

    def fault(_real: object, operation: str, _request: object) -> Answer:
        raise _error("ThrottlingException", operation)

    return _failing(fault, times, model)


def conflict(
    times: float = 1, *, model: type[PlainModel] | None = None
) -> AbstractContextManager[list[str]]:
    """Let the next `times` writes conflict with another transaction.

    The library sends them again.
    """

    def fault(_real: object, operation: str, request: Mapping[str, Any]) -> Answer:
        if operation != "TransactWriteItems":
            raise _error("TransactionConflictException", operation)
        reasons = [{"Code": "None"} for _item in request["TransactItems"]]
        reasons[0] = {"Code": "TransactionConflict"}
        raise _error("TransactionCanceledException", operation, CancellationReasons=reasons)

    return _failing(fault, times, model, reads=False)


def unavailable(
    *, maybe_written: bool = False, model: type[PlainModel] | None = None
) -> AbstractContextManager[list[str]]:
    """Let all requests fail, without repetition: each call raises `Unavailable` at once.

    With `maybe_written`, only the replies to writes are lost. The writes are carried out, and reads
    are answered.
    """

    def fault(real: _Attempt, operation: str, _request: object) -> Answer:
        if maybe_written:
            real()
        raise Unavailable(operation, "injected by dynamo.test", maybe_written)

    return _failing(fault, math.inf, model, reads=not maybe_written)


def late(
    seconds: float, times: float = math.inf, *, model: type[PlainModel] | None = None
) -> AbstractContextManager[list[str]]:
    """Delay the replies to the next `times` requests by `seconds`.

    After 3 seconds, the library stops waiting, and sends a repeatable request again.
    """

    def fault(real: _Attempt, *_request: object) -> Answer:
        answer = real()
        time.sleep(min(seconds, sending.READ_SECONDS))
        if seconds > sending.READ_SECONDS:
            raise ReadTimeoutError(endpoint_url="")
        return answer

    return _failing(fault, times, model)


def _error(code: str, operation: str, **members: object) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": "injected by dynamo.test"}, **members}
    return ClientError(answer, operation)


if TYPE_CHECKING:
    _Base = SimpleTestCase  # the class that uses the mixin
else:
    _Base = object


class TablesMixin(_Base):
    """Each test has the project's tables, with the items that its class made before the tests.

    Put it before one of Django's test cases.
    """

    max_requests: Callable[[int], AbstractContextManager[Tally]] = staticmethod(max_requests)

    #: The items that the class made; None until its first test.
    _made: ClassVar[dict[str, list[Item]] | None] = None

    @classmethod
    def setUpClass(cls) -> None:
        cls._made = None
        if not has_database():
            cls.databases = set()
        # The tables are opened here, so that an error of the engine fails the class and not the
        # whole run.
        cls.enterClassContext(tables_of_process().open())
        super().setUpClass()

    def run(self, result: TestResult | None = None) -> TestResult | None:
        tables = tables_of_process()
        made = self._made
        if made is None:
            type(self)._made = tables.items()
        else:
            tables.put(made)
        with tables.open():
            return super().run(result)


#: What to use instead of names of Django's `TestCase`.
_INSTEAD = {
    "assertNumQueries": "max_requests(…)",
    "assertQuerySetEqual": "assertEqual(list(…), …)",
    "captureOnCommitCallbacks": "run_tasks() of outbox.test, after the transaction",
    "fixtures": "loaddata in setUpTestData",
}


class TestCase(TablesMixin, SimpleTestCase):
    """Django's test case, with DynamoDB instead of a database."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if vars(cls).get("fixtures"):
            raise TypeError(f"{cls.__name__}.fixtures has no effect. Use {_INSTEAD['fixtures']}.")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            text = f"{type(self).__name__!r} object has no attribute {name!r}."
            raise AttributeError(f"{text} Use {_INSTEAD[name]}." if name in _INSTEAD else text)

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        before = dict(vars(cls))
        cls.setUpTestData()
        for name, value in dict(vars(cls)).items():
            if value is not before.get(name):
                setattr(cls, name, TestData(name, value))

    @classmethod
    def setUpTestData(cls) -> None:
        """Make items for all tests of the class, as in Django. Each test begins with these items.

        Attributes that this sets on the class are copied for each test.
        """


class LiveServerTestCase(TablesMixin, testcases.LiveServerTestCase):
    """Django's test case, with DynamoDB instead of a database."""


def check_case(case: Any) -> None:
    """Raise ImproperlyConfigured for a test case that needs a database, if there is none."""
    is_djangos = isinstance(case, type) and issubclass(case, testcases.TransactionTestCase)
    if is_djangos and not issubclass(case, TablesMixin) and not has_database():
        is_live = issubclass(case, testcases.LiveServerTestCase)
        name = "LiveServerTestCase" if is_live else "TestCase"
        raise ImproperlyConfigured(
            f"{case.__module__}.{case.__qualname__} needs a relational database. Derive it from "
            f"dynamo.test.{name}; another class takes dynamo.test.TablesMixin as its first base."
        )


class Runner(DiscoverRunner):
    """The runner of `manage.py test`. Tests of other test cases cannot reach DynamoDB."""

    def build_suite(self, *args: Any, **options: Any) -> Any:
        suite = super().build_suite(*args, **options)
        for case in {type(test) for test in iter_test_cases(suite)}:
            check_case(case)
        return suite

    def setup_test_environment(self, **options: object) -> None:
        super().setup_test_environment(**options)
        refuse_requests()
