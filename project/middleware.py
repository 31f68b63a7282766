"""What the whole site demands of a request."""

from __future__ import annotations

from django.core.exceptions import BadRequest
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin


class FormEncodingMiddleware(MiddlewareMixin):
    """Answers 400 to a form that is not in UTF-8, as every page of ours is.

    Django does so itself, but for multipart forms: those it decodes with whatever codec the
    client names, and some raise, or make of plain bytes what cannot be encoded again.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Let `request` pass, or raise BadRequest."""
        if (request.encoding or "utf-8").lower() not in {"utf-8", "utf8"}:
            raise BadRequest("The form is not in UTF-8.")
