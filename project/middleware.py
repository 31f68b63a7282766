"""What the whole site demands of a request."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, DisallowedHost, SuspiciousOperation
from django.http import HttpRequest, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.utils.log import log_response
from django.views.defaults import bad_request

from dynamo.client.deadline import page_seconds_left
from dynamo.exceptions import Busy
from dynamo.middleware import unavailable

log = logging.getLogger(__name__)

#: How many pages of a process wait for their turn; more get a 503 at once. With the pages under way
#: they must be fewer than the threads of the server (`--blocking-threads`), so that one is left for
#: `/livez` whatever visitors do.
MOST_WAITING = 96

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

    An answer for which the session was read depends on who asked, whether or not somebody is signed
    in. No cache keeps it: not a proxy, and not the browser, which would show it after the sign-out.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """`response` with them."""
        for name, value in settings.ANSWER_HEADERS.items():
            response.headers.setdefault(name, value)
        session = getattr(request, "session", None)
        if session is not None and session.accessed and not _is_kept_nowhere(response):
            response.headers["Cache-Control"] = "private, no-store"
        return response


def _is_kept_nowhere(response: HttpResponseBase) -> bool:
    return "no-store" in response.headers.get("Cache-Control", "")


class HostMiddleware(MiddlewareMixin):
    """Answers 400 to a request for a host that is not ours (`ALLOWED_HOSTS`), and logs one line.

    Django does so itself, but logs a traceback for each, and anybody can send such requests.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        """Let `request` pass, or answer it."""
        try:
            request.get_host()
        except DisallowedHost as error:
            response = bad_request(request, error)
            log_response(
                "%.300s",
                str(error),
                response=response,
                request=request,
                logger=log,
                level="warning",
            )
            return response
        return None


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


class TooManyPages(Busy):
    """The process has as many pages under way as it may; this one did not get its turn."""

    def __init__(self) -> None:
        super().__init__("a page")


class PagesAtOnceMiddleware(MiddlewareMixin):
    """Lets `PAGES_AT_ONCE` pages be under way in a process; the others wait for their turn.

    The server has more threads than that. So health checks and static files, which do not come
    here, are answered while pages wait for DynamoDB. A page waits no longer than its deadline.
    """

    def __init__(self, get_response: Any) -> None:
        super().__init__(get_response)
        self._turns = threading.Semaphore(settings.PAGES_AT_ONCE)
        self._places = threading.Semaphore(settings.PAGES_AT_ONCE + MOST_WAITING)

    def __call__(self, request: HttpRequest) -> Any:
        """Answer `request` when it is its turn, or with a 503."""
        if self.async_mode:  # type: ignore[attr-defined]  # absent from the stubs
            # There views run in one thread, one after the other.
            return self.get_response(request)
        try:
            with self._turn(request):
                return self.get_response(request)
        except TooManyPages as error:
            return unavailable(request, error)

    @contextmanager
    def _turn(self, request: HttpRequest) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise TooManyPages
        try:
            if not self._turns.acquire(timeout=page_seconds_left()):
                _read_form(request)
                raise TooManyPages
            try:
                yield
            finally:
                self._turns.release()
        finally:
            self._places.release()


def _read_form(request: HttpRequest) -> None:
    """Read the form for the 503 page, which keeps it. Takes as long as its sender."""
    with suppress(BadRequest, SuspiciousOperation, MultiPartParserError, UnreadablePostError):
        _form = request.POST
