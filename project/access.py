"""One log line for each request with its cost, and a signal with the same data for metrics.

Its account and its client's address are personal data: see `docs/operators.md`.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import cast
from urllib.parse import urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.dispatch import Signal
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from accounts.sessions.visitor import address, known_account
from dynamo.client.tally import Tally, collect, counted_on
from dynamo.runtime.terminal import printable
from project.logs import hiding

log = logging.getLogger(__name__)

#: A request was answered. Arguments: url (str): the name in the URL map, "static" or "none"; method
#: (str): as the client sent it; status (int); seconds (float): the time until the answer was sent
#: or handed to the server. Errors of receivers are only logged.
page_answered = Signal()

#: Paths and URL names of pages that are requested every few seconds. They are logged at DEBUG
#: unless they fail. They are answered before the URL map is used.
PROBES = {"/healthz": "healthz", "/livez": "livez", "/metrics": "metrics"}


class AccessMiddleware(MiddlewareMixin):
    """Writes the line with the cost when the answer is complete.

    Under DEBUG, the answer has the header `Server-Timing`, which browsers show next to the request.
    In production it does not, because the cost could tell a client whether an account exists.
    """

    async_mode: bool

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.async_mode:
            return self.__acall__(request)
        began = time.perf_counter()
        with collect() as tally:
            response = cast(HttpResponseBase, self.get_response(request))
        return _logged(request, response, tally, began)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        with collect() as tally:
            response = await cast(Awaitable[HttpResponseBase], self.get_response(request))
        return _logged(request, response, tally, began)


def _logged(
    request: HttpRequest, response: HttpResponseBase, tally: Tally, began: float
) -> HttpResponseBase:
    def log_now() -> None:
        _log(request, response, tally, time.perf_counter() - began)

    if settings.DEBUG:
        _add_timing(response, tally, time.perf_counter() - began)
    # The server sends a file by itself. An iterator around the file would prevent this.
    is_file = getattr(response, "file_to_stream", None) is not None
    if isinstance(response, StreamingHttpResponse) and not (response.is_async or is_file):
        response.streaming_content = _Counted(iter(response), tally, log_now)
    else:
        log_now()
    is_asgi = isinstance(request, ASGIRequest)
    if is_asgi and isinstance(response, StreamingHttpResponse) and not response.is_async:
        # Each part is sent as soon as it is made. Django would make all parts before it sends the
        # first.
        response.streaming_content = _each_in_thread(iter(response))
    return response


async def _each_in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts of a streamed answer. Each is made in a thread."""
    while (part := await sync_to_async(lambda: next(parts, None))()) is not None:
        yield part


class _Counted(Iterator[bytes]):
    """The parts of a streamed answer. Their cost is counted as well."""

    def __init__(self, parts: Iterator[bytes], tally: Tally, when_sent: Callable[[], None]) -> None:
        self._parts = parts
        self._tally = tally
        self._when_sent = when_sent

    def __next__(self) -> bytes:
        with counted_on(self._tally):
            return next(self._parts)

    def close(self) -> None:
        """Django calls this when everything is sent or the client is gone."""
        self._when_sent()


def _log(request: HttpRequest, response: HttpResponseBase, tally: Tally, seconds: float) -> None:
    method = request.method or ""
    url = _url_name(request)
    page_answered.send_robust(
        sender=None, url=url, method=method, status=response.status_code, seconds=seconds
    )
    is_quiet = request.path_info in PROBES and response.status_code < 400
    level = logging.DEBUG if is_quiet else logging.INFO
    if not log.isEnabledFor(level):
        return
    milliseconds = round(seconds * 1000, 1)
    # Secrets are hidden here, not by the formatter, so that no handler gets them.
    hidden = hiding(request)
    method = hidden(method)
    path = hidden(request.path)
    account = known_account(request)
    client = address(request)
    fields = {"method": method, "path": path, "url": url, "status": response.status_code}
    fields |= {"milliseconds": milliseconds, "account": account, "client": client or None}
    log.log(
        level,
        "%s %s %d, %s ms, %s, %s from %s",
        *(method, printable(path), response.status_code, milliseconds, tally),
        *(account or "nobody", client or "nowhere"),
        extra={"fields": fields | tally.fields()},
    )


def _url_name(request: HttpRequest) -> str:
    """The name in the URL map, or `static`, or `none`. It is never a text from the client."""
    if request.resolver_match is not None:
        return request.resolver_match.view_name
    if request.path.startswith(urlsplit(settings.STATIC_URL).path):
        return "static"
    return PROBES.get(request.path_info, "none")


def _add_timing(response: HttpResponseBase, tally: Tally, seconds: float) -> None:
    ours = f'dynamodb;dur={tally.seconds * 1000:.1f};desc="{tally}", total;dur={seconds * 1000:.1f}'
    others = response.headers.get("Server-Timing")
    response.headers["Server-Timing"] = f"{ours}, {others}" if others else ours
