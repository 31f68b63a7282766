"""The debug toolbar: who sees it, and what our panel lists."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from dynamo.client.sending import send
from project.toolbar import DynamoPanel, is_shown

GET = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}


def asked_from(address: str, **headers: str) -> HttpRequest:
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": address} | headers
    return request


def panel(kind: type[Any], kept: dict[str, Any], view: Any = None) -> Any:
    """A panel of a toolbar that has no others."""
    store = SimpleNamespace(save_panel=lambda _request, _panel, stats: kept.update(stats))
    return kind(SimpleNamespace(stats={}, store=store, request_id="one"), view)


def test_the_toolbar_is_shown_under_debug_to_visitors_on_this_machine_only(settings: Any) -> None:
    settings.DEBUG = True
    for address in ("127.0.0.1", "127.1.2.3", "::1"):
        assert is_shown(asked_from(address))
    assert not is_shown(asked_from("192.0.2.7"))
    assert not is_shown(asked_from(""))
    assert not is_shown(asked_from("127.0.0.1", HTTP_X_FORWARDED_FOR="127.0.0.1"))
    settings.DEBUG = False
    assert not is_shown(asked_from("127.0.0.1"))


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
@pytest.mark.usefixtures("engine")
def test_the_panel_lists_each_request_and_the_line_that_sent_it() -> None:
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
