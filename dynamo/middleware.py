"""The 503 page, and the limit to how long a page waits for DynamoDB."""

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
from dynamo.exceptions import Busy, TableMissing, Unavailable
from dynamo.runtime.deadline import page_deadline

RETRY_AFTER_SECONDS = 5

TEMPLATE = "503.html"

#: The field of a form that has its CSRF token.
TOKEN = "csrfmiddlewaretoken"  # noqa: S105 - a field's name

#: The page of a project without a template `503.html`.
PLAIN_PAGE = "Please try again in a moment. The database did not answer in time."
PLAIN_WARNING = " What you typed may not have been stored."

logger = logging.getLogger(__name__)


class AvailabilityMiddleware(MiddlewareMixin):
    """Limits a page's requests to `DYNAMODB_PAGE_SECONDS`. Without an answer, the page is a 503.

    While DynamoDB cannot be reached, the 503 is sent at once (`client.breaker`).

    Put it before every middleware that uses DynamoDB.
    """

    #: An attribute of Django's class that its stubs lack.
    async_mode: bool

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.async_mode:
            return self.__acall__(request)
        with page_deadline(settings.DYNAMODB_PAGE_SECONDS), failing_fast():
            return self.get_response(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        with page_deadline(settings.DYNAMODB_PAGE_SECONDS), failing_fast():
            return await cast(Awaitable[HttpResponseBase], self.get_response(request))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The 503 page, if DynamoDB is the reason why the view failed."""
        if isinstance(error, (Unavailable, TableMissing)):
            return unavailable(request, error)
        return None


class SessionMiddleware(sessions.SessionMiddleware):
    """Django's middleware, but with a 503 page if the session cannot be saved after the view.

    If the session was ended while the view ran, Django raises `SessionInterrupted`, a 400. The view
    has written its data, and a redirect to the sign-in page would hide this.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        try:
            return super().process_response(request, response)
        except (Unavailable, TableMissing) as error:
            page = unavailable(request, error)
            # A form on that page has the CSRF token that was drawn at the sign-in.
            if renewed := response.cookies.get(settings.CSRF_COOKIE_NAME):
                page.cookies[settings.CSRF_COOKIE_NAME] = renewed
            return page


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """The 503 page, which asks the visitor to try again soon. Logs `error` in one line.

    A view can set `request.unavailable_page`, a function of `error` that returns the page: for
    example the form that was sent. It must not send requests to DynamoDB. Otherwise the page is the
    project's `503.html`, or plain text. It is rendered without the request, so that no context
    processor reads the user from DynamoDB. The template gets `was_sent`, whether a form was
    sent, and `sent_fields`, its fields without passwords; None if there is nothing to send again.
    """
    if page := getattr(request, "unavailable_page", None):
        return as_unavailable(request, page(error), error)
    was_sent = request.method == "POST"
    context = {
        "is_busy": isinstance(error, Busy),
        "was_sent": was_sent,
        "sent_fields": _sent_fields(request),
    }
    try:
        response = HttpResponse(render_to_string(TEMPLATE, context))
    except TemplateDoesNotExist as missing:
        if missing.args[:1] != (TEMPLATE,):
            raise
        text = PLAIN_PAGE + (PLAIN_WARNING if was_sent else "")
        response = HttpResponse(text, content_type="text/plain")
    return as_unavailable(request, response, error)


def _sent_fields(request: HttpRequest) -> list[tuple[str, str]] | None:
    """The fields of the form in `request`, with a CSRF token that is valid now.

    A form whose token was not checked keeps the token that was sent. With a new one, another site
    could make a visitor send its form from this page.
    """
    # A form that was not read is not read here either, because its sender may be slow.
    sent: QueryDict | None = getattr(request, "_post", None)
    if not sent or TOKEN not in sent:
        return None
    kept = typed_fields(sent)
    if not kept and len(sent) > 1:
        # Without its passwords, the form would be empty.
        return None
    is_checked = getattr(request, "csrf_processing_done", False)
    # Signing in draws a new token.
    return [(TOKEN, get_token(request) if is_checked else str(sent[TOKEN])), *kept]


def typed_fields(sent: QueryDict) -> list[tuple[str, str]]:
    """The fields of a form that was sent, without its passwords and its CSRF token."""
    return [
        (name, value)
        for name, values in sent.lists()
        if name != TOKEN and "pass" not in name.lower()
        for value in values
    ]


def as_unavailable(request: HttpRequest, response: HttpResponse, error: Exception) -> HttpResponse:
    """Turn a view's own `response` into a 503 with `Retry-After`. Logs `error` in one line."""
    response.status_code = 503
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    response["Cache-Control"] = "private, no-store"
    # A missing table is an error: an operator has to create it.
    level = "error" if isinstance(error, TableMissing) else "warning"
    line = "%s %s: %s", request.method, request.path, str(error)
    return logged(response, request, logger, *line, level=level)


def logged(
    response: HttpResponse,
    request: HttpRequest,
    logger: logging.Logger,
    text: str,
    *values: object,
    level: str = "warning",
) -> HttpResponse:
    """Log `text`, and return `response`, which Django then does not log again.

    Otherwise, Django would log another line with the path, which may contain a token.
    """
    log_response(text, *values, response=response, request=request, logger=logger, level=level)
    return response
