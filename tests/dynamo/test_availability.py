"""What a page shows while DynamoDB does not answer, and how long the page takes."""

import asyncio
import logging
from typing import Any

import pytest
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.test.utils import override_settings
from django.urls import path

from dynamo.cache.items import CacheItem
from dynamo.runtime import deadline
from dynamo.runtime.deadline import operation_ends_at, page_is_over, uncounted, within
from tests.clocks import LeapingClock, use_clock
from tests.faults.kinds import Answer, TimeOut
from tests.faults.proxy import NOWHERE, FaultProxy, through

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.urls(__name__)]

DOWN = Answer(500, "InternalServerError")
#: No page waits for long.
SOON: dict[str, Any] = {"DYNAMODB_PAGE_SECONDS": 0.2}


def read(request: HttpRequest) -> HttpResponse:
    return HttpResponse(cache.get("key", "nothing"))


def read_twice(request: HttpRequest) -> HttpResponse:
    cache.get("key")
    return HttpResponse(cache.get("key"))


def read_session(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.session.get("user", "nobody"))


def write_session(request: HttpRequest) -> HttpResponse:
    request.session["user"] = "ann"
    return HttpResponse("written")


def left() -> float:
    """How many seconds an operation that begins now has."""
    return operation_ends_at() - deadline.time.monotonic()


def patience(request: HttpRequest) -> HttpResponse:
    return HttpResponse(str(left()))


def wait_elsewhere(request: HttpRequest) -> HttpResponse:
    with uncounted():
        deadline.time.leap(100)  # type: ignore[attr-defined]  # of the fixture `clock`
        assert page_is_over()
    return patience(request)


def broken(request: HttpRequest) -> HttpResponse:
    raise LookupError("a fault of our own")


urlpatterns = [
    path("", read, name="home"),
    path("how-it-works/", read, name="how_it_works"),
    path("twice", read_twice),
    path("session", read_session),
    path("session/write", write_session),
    path("patience", patience),
    path("patience/elsewhere", wait_elsewhere),
    path("broken", broken),
]


def assert_asks_to_try_again(response: HttpResponse) -> None:
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert response["Cache-Control"] == "private, no-store"
    assert "try again" in response.content.decode()
    # Otherwise the visitor would be signed out, or have a session that may not be stored.
    assert "sessionid" not in response.cookies


@pytest.mark.parametrize("setting", [{}, {"DEBUG": True}, {"TEMPLATES": []}], ids=str)
def test_a_page_without_an_answer_asks_to_try_again_and_warns_who_sent_a_form_and_is_logged(
    client: Client, settings: Any, setting: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for name, value in {**setting, **SOON}.items():
        setattr(settings, name, value)

    with through(NOWHERE):
        shown = client.get("/?token=secret")
        sent = client.post("/", {"text": "x"})

    for page, is_sent in ((shown, False), (sent, True)):
        assert_asks_to_try_again(page)
        assert ("What you typed may not have been stored" in page.text) is is_sent
    [(level, text), _of_the_form] = logged(caplog)
    assert text.startswith("GET /: DynamoDB gave no answer to GetItem in time (")
    assert (level, "\n" in text, "secret" in text) == (logging.WARNING, False, False)


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """What the middleware has logged: the level and the text, with a traceback if there is one."""
    records = [record for record in caplog.records if record.name == "dynamo.middleware"]
    assert not [record for record in caplog.records if record.name == "django.request"]
    return [(record.levelno, logging.Formatter().format(record)) for record in records]


def test_a_missing_table_has_the_same_page_and_logs_the_command(
    client: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CacheItem.Meta, "table_name", "nosuchtable")

    assert_asks_to_try_again(client.get("/"))

    [(level, text)] = logged(caplog)
    assert (level, "createtables" in text, "\n" in text) == (logging.ERROR, True, False)


def test_a_visitor_stays_signed_in_if_the_session_cannot_be_read(client: Client) -> None:
    client.get("/session/write")

    with through(NOWHERE), override_settings(**SOON):
        assert_asks_to_try_again(client.get("/session"))

    assert client.get("/session").content == b"ann"


@override_settings(**SOON)
def test_a_session_that_cannot_be_saved_asks_to_try_again(
    client: Client, proxy: FaultProxy
) -> None:
    proxy.plan("PutItem", DOWN, times=1000)

    assert_asks_to_try_again(client.get("/session/write"))


@override_settings(**SOON)
@pytest.mark.parametrize(
    ("fault", "page"), [(DOWN, "/session"), (TimeOut(), "/twice")], ids=["fails", "hangs"]
)
def test_a_page_waits_for_one_answer_and_sends_nothing_more(
    client: Client, proxy: FaultProxy, fault: Any, page: str
) -> None:
    client.get("/session/write")
    proxy.plan("GetItem", fault, times=1000)
    proxy.seen.clear()

    assert_asks_to_try_again(client.get(page))

    assert {seen.operation for seen in proxy.seen} == {"GetItem"}
    assert len({seen.body["Key"]["key"]["S"] for seen in proxy.seen}) == 1


def test_an_error_of_the_view_is_not_a_503(client: Client) -> None:
    client.raise_request_exception = False

    assert client.get("/broken").status_code == 500


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Long deadlines, which a slow machine does not use up."""
    use_clock(LeapingClock(), monkeypatch)
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", 60.0)
    settings.DYNAMODB_PAGE_SECONDS = 30


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("page", ["/patience", "/patience/elsewhere"])
def test_all_requests_of_a_page_share_one_deadline_that_ends_with_it(
    client: Client, page: str
) -> None:
    assert 0 < float(client.get(page).content) <= 30
    assert left() > 30


@pytest.mark.usefixtures("clock")
def test_an_operation_ends_at_its_own_deadline_within_a_longer_one() -> None:
    with within(90):
        assert 30 < left() <= 60


def test_asynchronous_pages_do_the_same(
    proxy: FaultProxy, settings: Any, request: pytest.FixtureRequest
) -> None:
    # Other middleware of the site cannot run asynchronously.
    settings.MIDDLEWARE = [
        "dynamo.middleware.AvailabilityMiddleware",
        "dynamo.middleware.SessionMiddleware",
    ]
    settings.DYNAMODB_PAGE_SECONDS = 0.2
    proxy.plan("GetItem", DOWN, times=1000)
    proxy.plan("PutItem", DOWN, times=1000)

    assert_asks_to_try_again(asyncio.run(AsyncClient().get("/")))
    assert_asks_to_try_again(asyncio.run(AsyncClient().get("/session/write")))

    request.getfixturevalue("clock")
    response = asyncio.run(AsyncClient().get("/patience"))
    assert 0 < float(response.content) <= 30
