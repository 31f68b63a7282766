"""Pages fail fast while DynamoDB cannot be reached, and only then."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import (
    ChecksumError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ReadTimeoutError,
    SSLError,
)
from django.test import Client

from dynamo import Unavailable
from dynamo.cache.items import CacheItem
from dynamo.client import breaker as breakers, sending
from dynamo.client.breaker import (
    OPEN_SECONDS,
    OPENING_FAILURES,
    OPENING_SECONDS,
    Breaker,
    failing_fast,
)
from dynamo.client.sending import is_unreachable, send
from dynamo.runtime.deadline import page_deadline
from tests.clocks import SleeplessClock, use_clock
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import NOWHERE, FaultProxy, through
from tests.requests import Requests

URL: Any = {"endpoint_url": NOWHERE}
REFUSED = EndpointConnectionError(**URL)
COUNTED: list[BaseException] = [REFUSED, ConnectTimeoutError(**URL), ReadTimeoutError(**URL)]
NOT_COUNTED: list[BaseException] = [
    ConnectionClosedError(**URL),
    SSLError(**URL, error="bad record MAC"),
    HTTPClientError(error="no text"),
    ChecksumError(checksum_type="crc32", expected_checksum="1", actual_checksum="2"),
    NoCredentialsError(),
    KeyboardInterrupt(),
]
ANSWERS: list[BaseException | None] = [
    None,
    *(
        ClientError({"Error": {"Code": code}}, "GetItem")
        for code in ("ThrottlingException", "InternalServerError", "ValidationException")
    ),
]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SleeplessClock]:
    clock = SleeplessClock()
    use_clock(clock, monkeypatch)
    # The breaker of an earlier client has used another clock.
    sending.reset()
    yield clock
    sending.reset()


def read() -> None:
    send("GetItem", {"TableName": CacheItem.table(), "Key": {"key": {"S": "any"}}})


def read_in_a_page() -> None:
    with page_deadline(5.5), failing_fast():
        read()


def read_without_an_answer(_number: int) -> None:
    with pytest.raises(Unavailable):
        read_in_a_page()


def fail(breaker: Breaker, clock: SleeplessClock, error: BaseException | None = REFUSED) -> None:
    """Note as many failures as open the breaker."""
    began = clock.monotonic()
    for _request in range(OPENING_FAILURES - 1):
        breaker.note(began, error)
    clock.leap(OPENING_SECONDS)
    breaker.note(clock.monotonic(), error)


def opened(clock: SleeplessClock) -> Breaker:
    """This process's breaker, open."""
    sending.client()
    breaker = sending._shared().breaker
    fail(breaker, clock)
    assert breaker.is_open
    return breaker


# What opens and closes the breaker ----------------------------------------------------------------


def test_only_failures_to_reach_dynamodb_open_the_breaker(clock: SleeplessClock) -> None:
    for error in [*COUNTED, *NOT_COUNTED, *ANSWERS]:
        breaker = Breaker()
        for _time in range(1 if error in COUNTED else 10):
            fail(breaker, clock, error)
        assert breaker.is_open == (error in COUNTED), error


@pytest.mark.parametrize(
    ("failures", "seconds"), [(100, OPENING_SECONDS * 0.99), (OPENING_FAILURES - 1, 240)]
)
def test_few_failures_or_a_short_outage_do_not_open_the_breaker(
    clock: SleeplessClock, failures: int, seconds: float
) -> None:
    breaker = Breaker()
    for _request in range(failures):
        breaker.note(clock.monotonic(), REFUSED)
        clock.leap(seconds / failures)
    assert not breaker.is_open


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_an_answer_between_failures_resets_the_breaker(
    clock: SleeplessClock, answer: BaseException | None
) -> None:
    breaker = Breaker()
    for _time in range(10):
        for _request in range(OPENING_FAILURES - 1):
            breaker.note(clock.monotonic(), REFUSED)
            clock.leap(1)
        breaker.note(clock.monotonic(), answer)
    assert not breaker.is_open


def test_a_failure_of_a_request_during_which_another_was_answered_does_not_count(
    clock: SleeplessClock,
) -> None:
    breaker = Breaker()
    for _time in range(10):
        began = clock.monotonic()
        clock.leap(1)
        breaker.note(began, None)
        clock.leap(2)
        for _request in range(OPENING_FAILURES):
            breaker.note(began, ReadTimeoutError(**URL))
    assert not breaker.is_open


def probing(clock: SleeplessClock) -> Breaker:
    """An open breaker that has just admitted a probe."""
    breaker = Breaker()
    fail(breaker, clock)
    assert not breaker.admits()
    clock.leap(OPEN_SECONDS)
    assert breaker.admits()
    return breaker


def test_an_open_breaker_admits_one_probe_a_second(clock: SleeplessClock) -> None:
    breaker = probing(clock)
    for _second in range(3):
        assert [breaker.admits() for _request in range(2)] == [False, False]
        clock.leap(OPEN_SECONDS)
        assert breaker.admits()


@pytest.mark.parametrize("result", [*COUNTED, *NOT_COUNTED, *ANSWERS], ids=repr)
def test_an_answered_probe_closes_the_breaker_and_a_failed_one_leaves_it_open(
    clock: SleeplessClock, result: BaseException | None
) -> None:
    breaker = probing(clock)

    breaker.note(clock.monotonic(), result)

    assert breaker.is_open == (result not in ANSWERS)
    assert breaker.admits() == (result in ANSWERS)
    clock.leap(OPEN_SECONDS)
    assert breaker.admits()


# Requests while it is open ------------------------------------------------------------------------


@pytest.mark.usefixtures("engine")
def test_a_page_that_cannot_reach_dynamodb_gives_up_after_a_second_and_the_next_at_once(
    clock: SleeplessClock, requests_sent: Requests
) -> None:
    with through(NOWHERE):
        with pytest.raises(Unavailable) as unavailable:
            read_in_a_page()
        assert OPENING_SECONDS <= clock.monotonic() <= OPENING_SECONDS + 1
        assert is_unreachable()
        assert not unavailable.value.maybe_written

        clock.leap(-0.5)
        requests_sent.clear()
        with pytest.raises(Unavailable):
            read_in_a_page()

    assert requests_sent.operations == []


def test_other_pages_fail_during_the_probe_and_work_after_it(
    proxy: FaultProxy, clock: SleeplessClock, at_once: Callable[..., list[Any]]
) -> None:
    def others() -> None:
        at_once(read_without_an_answer, threads=4)

    opened(clock)
    clock.leap(OPEN_SECONDS)
    proxy.plan("GetItem", Meanwhile(others))

    read_in_a_page()
    read_in_a_page()

    assert proxy.count("GetItem") == 2


@pytest.mark.usefixtures("engine")
def test_a_request_outside_of_a_page_is_sent_and_closes_the_breaker(clock: SleeplessClock) -> None:
    opened(clock)

    read()

    assert not is_unreachable()
    read_in_a_page()


@pytest.mark.usefixtures("engine")
def test_healthz_asks_once_while_dynamodb_cannot_be_reached(
    clock: SleeplessClock, requests_sent: Requests
) -> None:
    with through(NOWHERE):
        opened(clock)
        assert Client().get("/healthz").status_code == 503

    assert requests_sent.operations == ["GetItem"]


@pytest.mark.usefixtures("engine")
def test_opening_and_closing_are_logged_once(
    clock: SleeplessClock, caplog: pytest.LogCaptureFixture
) -> None:
    breaker = opened(clock)
    fail(breaker, clock)
    read()
    read()

    told = [record.getMessage() for record in caplog.records if record.name == breakers.__name__]
    assert [item.partition(",")[0].rstrip(".") for item in told] == [
        "DynamoDB cannot be reached",
        "DynamoDB can be reached again",
    ]
