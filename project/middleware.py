"""The site's own middlewares, and the pages of errors."""

import logging
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    DisallowedHost,
    MiddlewareNotUsed,
    RequestDataTooBig,
    TooManyFieldsSent,
)
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils.crypto import constant_time_compare
from django.utils.deprecation import MiddlewareMixin
from django.utils.formats import number_format
from django.utils.http import parse_header_parameters
from django.utils.translation import gettext as _

from dynamo.middleware import logged, unavailable
from dynamo.runtime.gates import TooManyPages, in_turn
from dynamo.runtime.terminal import printable
from project import parameters
from project.logs import request_id

log = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]

#: The most pages of a process that wait for their turn; further pages get a 503 at once. Together
#: with the pages that are being made, they must be fewer than the threads of the server
#: (`--blocking-threads`), so that one thread is always left for `/livez`.
MOST_WAITING = 96

_CHUNK_BYTES = 64 * 1024

# The ids that nginx, HAProxy, Envoy and this site make: 32 hex digits, or a UUID with hyphens.
_REQUEST_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


#: The message for a form that is too long to be read. The limits are those of the settings.
_TOO_LONG: dict[type | None, Callable[[], str]] = {
    RequestDataTooBig: lambda: (
        _("This form has more than %(size)s of text.")
        % {"size": filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)}
    ),
    TooManyFieldsSent: lambda: (
        _("This form has more than %(count)s fields.")
        % {"count": number_format(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS, force_grouping=True)}
    ),
}


def error_page(status: int) -> Callable[..., HttpResponse]:
    """The view of an error. Django's own views read the form, and fail if it is not readable."""

    def show(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        too_long = _TOO_LONG.get(type(exception))
        context = {"too_long": too_long and too_long()}
        return HttpResponse(render_to_string(f"{status}.html", context), status=status)

    return show


class MetricsMiddleware(MiddlewareMixin):
    """Answers `/metrics` if the request has the token; without it, the answer is 404.

    Prometheus asks each process by its address and, within a private network, without TLS, so it is
    answered before the host and the scheme are checked.
    """

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.METRICS_TOKEN:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        given = request.META.get("HTTP_AUTHORIZATION", "")
        is_asked = request.path_info == "/metrics"
        if not is_asked or not constant_time_compare(given, f"Bearer {settings.METRICS_TOKEN}"):
            return None
        # Imported here, because prometheus-client is not needed without a token.
        from project import metrics

        return metrics.shown()


class AnswerMiddleware(MiddlewareMixin):
    """Gives each request its id, and each answer this id and the `ANSWER_HEADERS` that it lacks.

    Django's own middlewares do not see every request: probes and requests for other hosts are
    answered before.

    The *HTTP request id* names one HTTP request: it is the `requestId` of log lines and the
    `X-Request-ID` of the answer, and nothing depends on it. It is not the `request_id` of a form
    (`dynamo.forms`), which makes a registration or an invoice happen once, even if the form is sent
    several times, and which is never logged.

    An id is accepted only from our own proxies (`ACCOUNTS_TRUSTED_HOPS`), and only if it is a UUID,
    so that a client cannot put other text into log lines. A proxy may pass on the id of its client.
    In this case, a client can only give two of its requests the same id.

    An answer for which the session was read depends on the visitor, whether signed in or not. A
    proxy or the browser must not cache it, because the browser would show it after the sign-out.
    """

    def process_request(self, request: HttpRequest) -> None:
        given = request.META.get("HTTP_X_REQUEST_ID", "")
        # On AWS Lambda our own handler sets the header (`project.serverless`).
        trusted = settings.ACCOUNTS_TRUSTED_HOPS or "apig_wsgi.context" in request.META
        request_id.set(given if trusted and _REQUEST_ID.fullmatch(given) else uuid4().hex)

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        headers = response.headers
        headers["X-Request-ID"] = str(request_id.get())
        for name, value in settings.ANSWER_HEADERS.items():
            headers.setdefault(name, value)
        if settings.DEBUG and response.status_code in {404, 500}:
            # Django's own pages have inline styles and scripts.
            del headers["Content-Security-Policy"]
        session = getattr(request, "session", None)
        is_personal = session is not None and session.accessed
        if is_personal and "no-store" not in headers.get("Cache-Control", ""):
            headers["Cache-Control"] = "private, no-store"
        return response


@receiver(request_finished)
def _forget_id(**_signal: object) -> None:
    """Remove the id, because later log lines of the thread do not belong to the request."""
    request_id.set(None)


class HostMiddleware(MiddlewareMixin):
    """Answers 400 to a request for a host that is not in `ALLOWED_HOSTS`."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        try:
            request.get_host()
        except DisallowedHost as error:
            return _refused(request, error)
        return None


class FormMiddleware(MiddlewareMixin):
    """Reads the form, and answers 400 if it cannot be read or is not in UTF-8."""

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        error = _read_form(request)
        return _refused(request, error) if error else None


def _read_form(request: HttpRequest) -> Exception | None:
    """Read the form, which takes as long as the client needs to send it.

    Returns the error if the form cannot be read, and then replaces the form by an empty one.

    Some headers name the codec of a parameter, and parsers and codecs can raise any error.
    """
    try:
        _kind, parameters = parse_header_parameters(request.META.get("CONTENT_TYPE", ""))
        if parameters.get("charset", "utf-8").lower() not in {"utf-8", "utf8"}:
            raise BadRequest("The form is not in UTF-8.")
        _form = request.POST
    except Exception as error:
        # Otherwise, the debug page or the 503 page would try to read it again.
        request.POST = QueryDict()
        if isinstance(error, RequestDataTooBig):
            _read_rest(request)
        return error
    return None


def _read_rest(request: HttpRequest) -> None:
    """Read the rest of a body that is too large.

    A browser shows the answer only after it has sent the whole form. Bodies that are much larger do
    not come from browsers.
    """
    left = 10 * settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    with suppress(OSError):  # the client has disconnected
        while left > 0 and (read := len(request.read(_CHUNK_BYTES))):
            left -= read


def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    """The page 400. Logs only one line, because anybody can send such requests.

    Django would log a traceback.
    """
    return logged(error_page(400)(request, error), request, log, "%.300s", printable(str(error)))


class PagesAtOnceMiddleware(MiddlewareMixin):
    """Lets a process make `PAGES_AT_ONCE` pages at once. The others wait for their turn.

    The server has more threads than that, so health checks and static files, which do not come
    here, are answered while pages wait for DynamoDB. A page waits no longer than its deadline.

    A page that waits for a password hash does not count (`turn_passed_on`),
    except in the number of pages that wait. `dynamo.runtime.gates` says why this is not a `Gate`.
    """

    async_mode: bool

    def __init__(self, get_response: GetResponse) -> None:
        super().__init__(get_response)
        self._turns = threading.Semaphore(settings.PAGES_AT_ONCE)
        self._places = threading.Semaphore(settings.PAGES_AT_ONCE + MOST_WAITING)

    def __call__(self, request: HttpRequest) -> Any:
        if self.async_mode:
            # Under ASGI, views run in one thread, one after the other.
            return self.get_response(request)
        if not self._places.acquire(blocking=False):
            return unavailable(request, TooManyPages())
        try:
            with in_turn(self._turns):
                return self.get_response(request)
        except TooManyPages as error:
            _read_form(request)
            return unavailable(request, error)
        finally:
            self._places.release()


class SecretKeysMiddleware(MiddlewareMixin):
    """Lets a page begin with fresh secret keys. Health checks and static files need none."""

    def __init__(self, get_response: GetResponse) -> None:
        if not settings.SECRET_KEY_PARAMETER:
            raise MiddlewareNotUsed
        super().__init__(get_response)

    def process_request(self, request: HttpRequest) -> None:
        parameters.refresh_keys()
