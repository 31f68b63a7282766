"""django-debug-toolbar under DEBUG: who sees it, and a panel of what a page asked of DynamoDB.

It is for developers, comes with the test extra, and may be absent: nothing else imports this.
"""

from __future__ import annotations

import ipaddress
from dataclasses import asdict
from typing import Any

from debug_toolbar.panels import Panel
from debug_toolbar.panels.request import RequestPanel as ToolbarsRequestPanel
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo.tally import Tally, counting

#: What a proxy adds: then the visitor is not on this machine, though the connection is.
_FORWARDED = {"HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_VIA"}


def is_shown(request: HttpRequest) -> bool:
    """Whether the visitor sits at this machine, and the site is under development."""
    if not settings.DEBUG or _FORWARDED & request.META.keys():
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


class DynamoPanel(Panel):
    """Each request to DynamoDB: operation, table, units, milliseconds, and which line asked."""

    title = "DynamoDB"
    template = "project/toolbar.html"

    @property
    def nav_subtitle(self) -> str:
        """What stands below the title."""
        return str(self.get_stats().get("summary", ""))

    def process_request(self, request: HttpRequest) -> HttpResponseBase:
        """Answer, and keep what was asked meanwhile."""
        with counting(keep_calls=True) as tally:
            response: HttpResponseBase = super().process_request(request)
        self.record_stats(_told(tally))
        return response


class RequestPanel(ToolbarsRequestPanel):
    """The toolbar's, which never reads a session that the page has not read.

    It looks when the page's time is over, and what it asked for would come on top of that: where
    DynamoDB gives no answer, it would turn our 503 into a crash, seconds later.
    """

    def generate_stats(self, request: HttpRequest, response: HttpResponseBase) -> None:
        """Keep what `request` holds. Costs no request."""
        session = request.__dict__.pop("session", None)
        if hasattr(session, "_session_cache"):
            request.session = session
        try:
            super().generate_stats(request, response)
        finally:
            if session is not None:
                request.session = session


def _told(tally: Tally) -> dict[str, Any]:
    # The toolbar keeps it as JSON.
    return {
        "summary": str(tally),
        "milliseconds": round(tally.seconds * 1000, 1),
        "calls": [asdict(call) for call in tally.calls],
        "left_out": tally.requests - len(tally.calls),
    }
