"""One log line for an answer that refuses a request."""

import logging

from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response


def logged(
    response: HttpResponse,
    request: HttpRequest,
    logger: logging.Logger,
    text: str,
    *values: object,
    level: str = "warning",
) -> HttpResponse:
    """Log `text`, and return `response`.

    Otherwise Django would log a line of its own with the path, which may contain a token.
    """
    log_response(text, *values, response=response, request=request, logger=logger, level=level)
    return response
