"""What the whole site demands of a request."""

from __future__ import annotations

import re

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import bad_request

# What nginx, HAProxy, Envoy and ourselves make: 32 hex digits, or a UUID as it is mostly written.
_REQUEST_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class RequestIdMiddleware(MiddlewareMixin):
    """Lets django-guid, which comes next, see only an `X-Request-ID` that may be believed.

    Two things are called by nearly one name. The *HTTP request id*, this one, names one request of
    a browser's: it is the `requestId` of log lines and the `X-Request-ID` of the answer, and
    nothing is decided by it. The `request_id` of a form (`web.requestids`), of a registration
    and of an invoice names what is asked for, however many requests ask for it, and makes it
    happen once; it is in no log.

    An HTTP request id is taken over from proxies of ours alone (`ACCOUNTS_TRUSTED_HOPS`), and only
    when it is a UUID: whatever else a client may send would stand in our lines as it likes. Where
    the proxy passes on its client's id, that client chooses among UUIDs, and could at most let two
    of its own requests look like one.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Forget the header where it is not to be believed; django-guid then draws an id."""
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        if not (settings.ACCOUNTS_TRUSTED_HOPS and _REQUEST_ID.fullmatch(given)):
            request.META.pop("HTTP_X_REQUEST_ID", None)


class HeadersMiddleware(MiddlewareMixin):
    """Gives every answer the headers `ANSWER_HEADERS`, where it has not said something else.

    Django's own middlewares miss some of them: probes, and requests for a host that is not ours,
    which are answered before they are reached.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """`response` with them."""
        for name, value in settings.ANSWER_HEADERS.items():
            response.headers.setdefault(name, value)
        return response


class FormEncodingMiddleware(MiddlewareMixin):
    """Answers 400 to a form that is not in UTF-8, as every page of ours is.

    Django does so itself, but for multipart forms: those it decodes with whatever codec the
    client names, and some raise, or make of plain bytes what cannot be encoded again.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        """Let `request` pass, or answer it."""
        if (request.encoding or "utf-8").lower() in {"utf-8", "utf8"}:
            return None
        # Not raised: Django's page for developers would read the form, and so become a 500.
        return bad_request(request, BadRequest("The form is not in UTF-8."))
