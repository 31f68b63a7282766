"""The debug toolbar: what our panel lists."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from dynamo.client.sending import send
from project.toolbar import DynamoPanel

GET = {"TableName": "users", "Key": {"pk": {"S": "nobody"}}}


def panel(kind: type[Any], kept: dict[str, Any], view: Any = None) -> Any:
    """A panel of a toolbar that has no others."""
    store = SimpleNamespace(save_panel=lambda _request, _panel, stats: kept.update(stats))
    return kind(SimpleNamespace(stats={}, store=store, request_id="one"), view)


@pytest.mark.fault_of("moto", "counts half a unit for a consistent read")
@pytest.mark.usefixtures("engine")
def test_the_panel_lists_each_request_and_the_line_that_sent_it() -> None:
    def view(_request: HttpRequest) -> HttpResponse:
        send("GetItem", GET)
        return HttpResponse()

    kept: dict[str, Any] = {}
    shows = panel(DynamoPanel, kept, view)

    assert shows.process_request(HttpRequest()).status_code == 200

    assert shows.nav_subtitle == "1 request, 1 RCU"
    (call,) = kept["calls"]
    assert (call["operation"], call["table"], call["read_units"]) == ("GetItem", "users", 1)
    assert call["asked_by"].startswith("project/test_toolbar.py:")
    shown = render_to_string(shows.template, kept)
    assert "<td>GetItem</td>" in shown
    assert call["asked_by"].partition(":")[0] in shown
    assert "more." not in shown
