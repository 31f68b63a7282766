"""A page for the time when DynamoDB does not answer, and a limit to how long a page waits."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import cast

from django.conf import settings
from django.contrib.sessions import middleware as sessions
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.middleware.csrf import get_token
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.utils.log import log_response

from dynamo.client.breaker import failing_fast
from dynamo.client.deadline import page
from dynamo.exceptions import Busy, TableMissing, Unavailable

RETRY_AFTER_SECONDS = 5

TEMPLATE = "503.html"

_TOKEN = "csrfmiddlewaretoken"  # noqa: S105 - a field's name

#: Of a project without the template, as Django has pages of its own for its errors.
PLAIN_PAGE = """<!doctype html>
<html lang="en">
<head>
  <title>Please try again in a moment</title>
</head>
<body>
  <h1>Please try again in a moment</h1>
  <p>The database did not answer in time. What you typed may not have been stored.</p>
</body>
</html>
"""

logger = logging.getLogger(__name__)


class AvailabilityMiddleware(MiddlewareMixin):
    """Bounds a page's requests by `DYNAMODB_PAGE_SECONDS`; a view that gets no answer gives a 503.

    While DynamoDB cannot be reached, the 503 comes at once (`dynamo.client.breaker`).

    It stands before every middleware that talks to DynamoDB.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer `request` within the page's deadline."""
        if self.async_mode:  # type: ignore[attr-defined]  # absent from the stubs
            return self.__acall__(request)
        with page(settings.DYNAMODB_PAGE_SECONDS), failing_fast():
            return self.get_response(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer `request` within the page's deadline, asynchronously."""
        with page(settings.DYNAMODB_PAGE_SECONDS), failing_fast():
            return await cast(Awaitable[HttpResponseBase], self.get_response(request))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The 503 page for what a view raised because of DynamoDB; else None."""
        if isinstance(error, (Unavailable, TableMissing)):
            return unavailable(request, error)
        return None


class SessionMiddleware(sessions.SessionMiddleware):
    """Django's, which saves the session after the view: without an answer that is a 503 too.

    A session that was ended while the view ran is Django's `SessionInterrupted`, a 400: what the
    view wrote is written, and a redirect to the sign-in page would hide that.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """`response` with the session saved and its cookie set, or the 503 page."""
        try:
            return super().process_response(request, response)
        except (Unavailable, TableMissing) as error:
            page = unavailable(request, error)
            # A form on that page has the token that signing in has just drawn.
            if renewed := response.cookies.get(settings.CSRF_COOKIE_NAME):
                page.cookies[settings.CSRF_COOKIE_NAME] = renewed
            return page


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """The page that asks to try again in a moment; logs `error` in one line.

    A view that set `request.unavailable_page`, a function of `error`, decides what the page shows:
    the form that was sent, for example. It must not ask DynamoDB for anything. Otherwise it is the
    project's `503.html`, or a plain one. It is rendered without the request, so that no context
    processor asks DynamoDB for the user. The template gets `sent_fields`, the fields of a form that
    was sent, without passwords; None if there is nothing to send again.
    """
    if page := getattr(request, "unavailable_page", None):
        return as_unavailable(request, page(error), error)
    try:
        context = {"is_busy": isinstance(error, Busy), "sent_fields": _sent_fields(request)}
        html: str = render_to_string(TEMPLATE, context)
    except TemplateDoesNotExist as missing:
        if missing.args[:1] != (TEMPLATE,):
            raise
        html = PLAIN_PAGE
    return as_unavailable(request, HttpResponse(html), error)


def _sent_fields(request: HttpRequest) -> list[tuple[str, str]] | None:
    """The fields of the form in `request`, if it was read, with a CSRF token that is valid now.

    A form whose token was not checked keeps the one that was sent. With a new one, other sites
    could have a visitor send their forms from this page.
    """
    # A form that is not read yet stays so: its sender may be slow.
    sent: QueryDict | None = getattr(request, "_post", None)
    if not sent or _TOKEN not in sent:
        return None
    fields = [(name, value) for name, values in sent.lists() for value in values if name != _TOKEN]
    kept = [(name, value) for name, value in fields if "pass" not in name.lower()]
    if fields and not kept:
        # Of passwords alone nothing is left to send.
        return None
    is_checked = getattr(request, "csrf_processing_done", False)
    # Signing in draws a new token.
    return [(_TOKEN, get_token(request) if is_checked else str(sent[_TOKEN])), *kept]


def as_unavailable(request: HttpRequest, response: HttpResponse, error: Exception) -> HttpResponse:
    """Let a view's own `response` be a 503 that says when to try again; logs `error` in one line.

    For a page that has more to say than the one of this site, such as a form to be sent again.
    """
    response.status_code = 503
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "private, no-store"
    # A missing table does not pass by itself. Marked as logged, or Django logs a second line.
    log_response(
        "%s %s: %s",
        request.method,
        request.path,
        str(error),
        response=response,
        request=request,
        logger=logger,
        level="error" if isinstance(error, TableMissing) else "warning",
    )
    return response
