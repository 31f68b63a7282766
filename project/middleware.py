"""What the whole site demands of a request."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


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

    def process_request(self, request: HttpRequest) -> None:
        """Let `request` pass, or raise BadRequest."""
        if (request.encoding or "utf-8").lower() not in {"utf-8", "utf8"}:
            raise BadRequest("The form is not in UTF-8.")
