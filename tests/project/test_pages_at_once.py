"""A process makes a few pages at once; the others wait for their turn."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from dynamo.auth import passwords
from dynamo.runtime.deadline import page_deadline
from dynamo.runtime.gates import turn_passed_on
from project import middleware
from project.middleware import PagesAtOnceMiddleware
from tests.accounts.test_passwords import Blocking
from tests.pages import Page

REQUEST = RequestFactory().get("/")
PASSING_ON = RequestFactory().get("/passing-on/")


class Site:
    """A view behind the middleware that answers when it may.

    `PASSING_ON` first passes its turn on until `has_waited` is set.
    """

    def __init__(self) -> None:
        self.passed_on = threading.Semaphore(0)
        self.has_waited = threading.Event()
        self.reached = threading.Semaphore(0)
        self.may_answer = threading.Event()
        self._pages = PagesAtOnceMiddleware(self._answer)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if request is PASSING_ON:
            with turn_passed_on():
                self.passed_on.release()
                assert self.has_waited.wait(60)
        self.reached.release()
        assert self.may_answer.wait(60)
        return HttpResponse("done")

    def visit(self, seconds: float = 60, request: HttpRequest = REQUEST) -> HttpResponse:
        with page_deadline(seconds):
            response: HttpResponse = self._pages(request)
            return response

    @contextmanager
    def making(self, pages: int) -> Iterator[ThreadPoolExecutor]:
        """Make so many pages during the block. They, and those that the block adds, end with it."""
        with ThreadPoolExecutor(5) as pool:
            for _number in range(pages):
                pool.submit(self.visit)
                assert self.reached.acquire(timeout=60)
            yield pool
            self.has_waited.set()
            self.may_answer.set()


@pytest.fixture
def site(settings: Any) -> Site:
    settings.PAGES_AT_ONCE = 2
    return Site()


def test_a_page_that_waits_too_long_is_answered_with_503_and_shows_the_form_again(
    site: Site,
) -> None:
    form = {"csrfmiddlewaretoken": "sent", "full_name": "Ann & Co", "password": "secret"}
    with site.making(2):
        asked = site.visit(0.1)
        sent = site.visit(0.1, RequestFactory().post("/", form))

    assert (asked.status_code, asked["Retry-After"], sent.status_code) == (503, "5", 503)
    shown = Page(sent)
    kept = {name: shown.value(name) for name in shown.fields}
    assert kept == {"csrfmiddlewaretoken": "sent", "full_name": "Ann & Co"}
    assert "Nothing was stored or sent." in shown.text
    assert site.visit().status_code == 200


@pytest.mark.parametrize("request_", [REQUEST, PASSING_ON], ids=["made", "passed its turn on"])
def test_a_page_that_finds_the_queue_full_is_answered_with_503_at_once(
    request_: HttpRequest, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PAGES_AT_ONCE = 1
    monkeypatch.setattr(middleware, "MOST_WAITING", 0)
    site = Site()
    with site.making(0) as pool:
        pool.submit(site.visit, 60, request_)
        assert (site.reached if request_ is REQUEST else site.passed_on).acquire(timeout=60)

        # Its deadline is in a minute.
        response = site.visit()

    assert response.status_code == 503
    assert site.visit().status_code == 200


def test_a_page_that_fails_gives_up_its_turn(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1

    def fail(request: HttpRequest) -> HttpResponse:
        raise LookupError

    pages = PagesAtOnceMiddleware(fail)
    for _number in range(3):
        with page_deadline(0.1), pytest.raises(LookupError):
            pages(REQUEST)


def _hash(_settings: Any, stack: ExitStack) -> tuple[Callable[[], object], Callable[[], object]]:
    Blocking.may_end.clear()
    stack.callback(Blocking.may_end.set)
    return lambda: passwords.make_password("blocks"), lambda: Blocking.entered.acquire(timeout=60)


def test_a_page_does_not_wait_for_those_that_wait_for_a_password_hash(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1
    settings.PASSWORD_HASHERS = ["tests.accounts.test_passwords.Blocking"]
    reached = threading.Event()
    may_answer = threading.Event()

    with ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        block, has_begun = _hash(settings, stack)

        def view(request: HttpRequest) -> HttpResponse:
            if request is REQUEST:
                reached.set()
                assert may_answer.wait(60)
            else:
                block()
            return HttpResponse("done")

        pages = PagesAtOnceMiddleware(view)
        blocked = pool.submit(pages, RequestFactory().post("/accounts/login/"))
        has_begun()
        other = pool.submit(pages, REQUEST)
        assert reached.wait(60)
        assert not blocked.done()
        stack.close()
        may_answer.set()

        assert (blocked.result().status_code, other.result().status_code) == (200, 200)


@pytest.mark.parametrize(("seconds", "status"), [(60, 200), (1, 503)])
def test_a_page_that_passed_its_turn_on_waits_for_another_one_and_adds_none(
    settings: Any, seconds: float, status: int
) -> None:
    settings.PAGES_AT_ONCE = 1
    site = Site()
    with site.making(0) as pool:
        first = pool.submit(site.visit, seconds, PASSING_ON)
        assert site.passed_on.acquire(timeout=60)
        visits = [pool.submit(site.visit)]
        assert site.reached.acquire(timeout=60)

        site.has_waited.set()
        if status == 503:
            assert first.result().status_code == 503
            visits.append(pool.submit(site.visit))
        assert not site.reached.acquire(timeout=0.2)

    assert first.result().status_code == status
    assert [visit.result().status_code for visit in visits] == [200] * len(visits)
