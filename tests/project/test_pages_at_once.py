"""How many pages a process makes at once, and what happens to the others."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from accounts.emails import mails
from dynamo._internal.client.deadline import page
from dynamo._internal.turns import turn_passed_on
from dynamo.auth import passwords
from project import middleware
from project.middleware import PagesAtOnceMiddleware
from tests.accounts.test_passwords import Blocking
from tests.mailbox import MailServer, sent_by
from tests.pages import Page
from tests.waiting import wait_until

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
        with page(seconds):
            response: HttpResponse = self._pages(request)
            return response


@pytest.fixture
def site(settings: Any) -> Site:
    settings.PAGES_AT_ONCE = 2
    return Site()


def test_a_page_waits_for_its_turn(site: Site) -> None:
    with ThreadPoolExecutor(5) as pool:
        visits = [pool.submit(site.visit) for _number in range(5)]
        for _number in range(2):
            assert site.reached.acquire(timeout=60)
        assert not site.reached.acquire(timeout=0.2)
        site.may_answer.set()

        assert [visit.result().status_code for visit in visits] == [200] * 5


def test_a_page_that_waits_too_long_is_a_503(site: Site) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _number in range(2):
            pool.submit(site.visit)
            assert site.reached.acquire(timeout=60)

        response = site.visit(seconds=0.1)
        site.may_answer.set()

    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert site.visit().status_code == 200


def test_a_form_that_waits_too_long_is_shown_again(site: Site) -> None:
    form = {"csrfmiddlewaretoken": "sent", "full_name": "Ann & Co", "password": "secret"}
    with ThreadPoolExecutor(2) as pool:
        for _number in range(2):
            pool.submit(site.visit)
            assert site.reached.acquire(timeout=60)

        response = site.visit(0.1, RequestFactory().post("/", form))
        site.may_answer.set()

    shown = Page(response)
    kept = {name: shown.value(name) for name in shown.fields}
    assert kept == {"csrfmiddlewaretoken": "sent", "full_name": "Ann & Co"}
    assert "Nothing was stored or sent." in shown.text


def test_a_page_beyond_the_queue_is_a_503_at_once(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PAGES_AT_ONCE = 1
    monkeypatch.setattr(middleware, "MOST_WAITING", 0)
    site = Site()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.visit)
        assert site.reached.acquire(timeout=60)

        # Its deadline is in a minute.
        response = site.visit()
        site.may_answer.set()

    assert response.status_code == 503
    assert site.visit().status_code == 200


def test_a_page_that_fails_gives_up_its_turn(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1

    def fail(request: HttpRequest) -> HttpResponse:
        raise LookupError

    pages = PagesAtOnceMiddleware(fail)
    for _number in range(3):
        with page(0.1), pytest.raises(LookupError):
            pages(REQUEST)


def test_a_page_does_not_wait_for_those_that_wait_for_a_password_hash(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1
    settings.PASSWORD_HASHERS = ["tests.accounts.test_passwords.Blocking"]
    Blocking.may_end.clear()

    def view(request: HttpRequest) -> HttpResponse:
        if request is not REQUEST:
            passwords.make_password("blocks")
        return HttpResponse("done")

    pages = PagesAtOnceMiddleware(view)
    with ThreadPoolExecutor(1) as pool:
        signing_in = pool.submit(pages, RequestFactory().post("/accounts/login/"))
        assert Blocking.entered.acquire(timeout=60)

        with page(5):
            response = pages(REQUEST)
        assert not signing_in.done()
        Blocking.may_end.set()

        assert (response.status_code, signing_in.result().status_code) == (200, 200)


def test_a_page_that_sends_a_mail_lets_others_be_made_and_goes_on_without_a_turn(
    settings: Any,
) -> None:
    settings.PAGES_AT_ONCE = 1
    may_end, reached = threading.Event(), threading.Semaphore(0)

    def view(request: HttpRequest) -> HttpResponse:
        if request is REQUEST:
            reached.release()
            assert may_end.wait(60)
        else:
            assert mails.send("confirm", "ann@example.org", link="http://testserver/", days=3)
        return HttpResponse("done")

    pages = PagesAtOnceMiddleware(view)
    with MailServer() as server, ThreadPoolExecutor(3) as pool:
        sent_by(settings, server.port)
        server.may_answer.clear()
        sending = pool.submit(pages, RequestFactory().post("/accounts/password_reset/"))
        wait_until(lambda: bool(server.taken))
        visits = [pool.submit(pages, REQUEST)]
        assert reached.acquire(timeout=60)

        server.may_answer.set()
        assert sending.result(60).status_code == 200
        # It had no turn, so it adds none.
        visits.append(pool.submit(pages, REQUEST))
        assert not reached.acquire(timeout=0.2)
        may_end.set()

        assert [visit.result().status_code for visit in visits] == [200, 200]


def test_a_page_that_passed_its_turn_on_waits_for_another_one(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1
    site = Site()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(site.visit, 60, PASSING_ON)
        assert site.passed_on.acquire(timeout=60)
        second = pool.submit(site.visit)
        assert site.reached.acquire(timeout=60)

        site.has_waited.set()
        assert not site.reached.acquire(timeout=0.2)
        site.may_answer.set()

        assert [first.result().status_code, second.result().status_code] == [200, 200]


def test_a_page_that_gets_no_turn_again_is_a_503_and_adds_no_turn(settings: Any) -> None:
    settings.PAGES_AT_ONCE = 1
    site = Site()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(site.visit, 1, PASSING_ON)
        assert site.passed_on.acquire(timeout=60)
        visits = [pool.submit(site.visit)]
        assert site.reached.acquire(timeout=60)

        site.has_waited.set()
        assert first.result().status_code == 503
        visits.append(pool.submit(site.visit))
        assert not site.reached.acquire(timeout=0.2)
        site.may_answer.set()

        assert [visit.result().status_code for visit in visits] == [200, 200]


def test_a_page_that_passed_its_turn_on_counts_as_one_that_waits(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.PAGES_AT_ONCE = 1
    monkeypatch.setattr(middleware, "MOST_WAITING", 0)
    site = Site()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(site.visit, 60, PASSING_ON)
        assert site.passed_on.acquire(timeout=60)

        response = site.visit()
        site.has_waited.set()
        site.may_answer.set()

    assert response.status_code == 503
