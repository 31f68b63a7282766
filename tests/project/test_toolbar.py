"""The debug toolbar, where it is on: who sees it, and what our panel lists."""

from __future__ import annotations

import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import _does_token_match
from django.template.loader import render_to_string

from dynamo.client.sending import send
from dynamo.sessions import SessionStore
from project.headers import CONTENT, with_toolbar
from project.toolbar import DynamoPanel, RequestPanel, is_shown
from tests.development import development_server
from tests.requests import Requests

GET = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}


def asked_from(address: str, **headers: str) -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": address} | headers
    return request


def panel(kind: type[Any], kept: dict[str, Any], view: Any = None) -> Any:
    """A panel of a toolbar that has no others."""
    store = SimpleNamespace(save_panel=lambda _request, _panel, stats: kept.update(stats))
    return kind(SimpleNamespace(stats={}, store=store, request_id="one"), view)


def test_only_who_sits_at_this_machine_sees_it_and_only_under_debug(settings: Any) -> None:
    settings.DEBUG = True
    assert is_shown(asked_from("127.0.0.1"))
    assert is_shown(asked_from("127.1.2.3"))
    assert is_shown(asked_from("::1"))
    assert not is_shown(asked_from("192.0.2.7"))
    assert not is_shown(asked_from(""))
    assert not is_shown(asked_from("127.0.0.1", HTTP_X_FORWARDED_FOR="127.0.0.1"))

    settings.DEBUG = False
    assert not is_shown(asked_from("127.0.0.1"))


def test_the_policy_differs_in_one_directive_and_that_of_production_stays() -> None:
    before = {name: list(sources) for name, sources in CONTENT["DIRECTIVES"].items()}

    directives = with_toolbar(CONTENT)["DIRECTIVES"]

    assert CONTENT["DIRECTIVES"] == before
    assert {name for name in before if before[name] != directives[name]} == {"connect-src"}
    assert directives["connect-src"] == ["'self'"]


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
@pytest.mark.usefixtures("engine")
def test_the_panel_lists_each_request_and_who_asked() -> None:
    def view(_request: HttpRequest) -> HttpResponse:
        send("GetItem", GET)
        return HttpResponse()

    kept: dict[str, Any] = {}
    shows = panel(DynamoPanel, kept, view)

    assert shows.process_request(asked_from("127.0.0.1")).status_code == 200

    assert shows.nav_subtitle == "1 request, 1 RCU"
    (call,) = kept["calls"]
    assert (call["operation"], call["table"], call["read_units"]) == ("GetItem", "users", 1)
    assert call["asked_by"].startswith("project/test_toolbar.py:")
    shown = render_to_string(shows.template, kept)
    assert "<td>GetItem</td>" in shown
    assert call["asked_by"].partition(":")[0] in shown
    assert "more." not in shown


@pytest.mark.usefixtures("engine")
def test_the_panel_of_the_request_asks_nothing_of_a_session_the_page_did_not_read(
    requests_sent: Requests,
) -> None:
    request = asked_from("127.0.0.1")
    request.session = session = SessionStore("k" * 32)
    kept: dict[str, Any] = {}

    panel(RequestPanel, kept).generate_stats(request, HttpResponse(status=503))

    assert requests_sent.operations == []
    assert "cookies" in kept
    assert "session" not in kept
    assert request.session is session


@pytest.mark.usefixtures("engine")
def test_the_panel_of_the_request_shows_a_session_that_was_read(requests_sent: Requests) -> None:
    request = asked_from("127.0.0.1")
    request.session = SessionStore()
    request.session["colour"] = "green"
    kept: dict[str, Any] = {}

    panel(RequestPanel, kept).generate_stats(request, HttpResponse())

    assert kept["session"] == {"list": [("colour", "green")]}
    assert request.session["colour"] == "green"
    assert requests_sent.operations == []


def test_pages_served_at_once_have_the_token_of_their_own_cookie(engine: str) -> None:
    with development_server(engine) as address, ThreadPoolExecutor(16) as visitors:
        pages = list(
            visitors.map(lambda _n: sign_up_page(f"{address}/accounts/signup/"), range(400))
        )

    assert [_does_token_match(token, secret) for token, secret in pages] == [True] * 400


def sign_up_page(url: str) -> tuple[str, str]:
    """The token in the form that a new visitor gets, and the secret in the cookie."""
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - ours
        form, cookie = answer.read().decode(), answer.headers["Set-Cookie"]
    token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', form)
    secret = re.search("csrftoken=([^;]+)", cookie)
    assert token
    assert secret
    return token[1], secret[1]
