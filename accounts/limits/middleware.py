"""The page that says when to try again, after too many attempts or too many pages at once."""

import logging

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext, ngettext

from accounts.exceptions import TooManyAttempts
from dynamo.middleware import logged
from dynamo.runtime.gates import GateFull

logger = logging.getLogger(__name__)


#: After too many pages at once, an account or a client should wait this long.
RETRY_AFTER_SECONDS = 5


class TooManyAttemptsMiddleware(MiddlewareMixin):
    """Answers 429 if a view raises TooManyAttempts, or the GateFull of an account or a client."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, GateFull) and error.is_own:
            error = TooManyAttempts(RETRY_AFTER_SECONDS, error.operation)
        if not isinstance(error, TooManyAttempts):
            return None
        context = {
            "wait": in_words(error.retry_after_seconds),
            "is_sign_in": error.limit in {"sign_in", "reauthentication"},
            "is_password": error.limit in {"sign_in", "sign_in_client", "reauthentication"},
        }
        # Rendered without the request, so that no context processor reads the user from DynamoDB.
        response = HttpResponse(render_to_string("429.html", context), status=429)
        response["Retry-After"] = str(error.retry_after_seconds)
        response["Cache-Control"] = "private, no-store"
        return logged(response, request, logger, "Too many attempts (%s).", error.limit)


def in_words(seconds: int) -> str:
    """A time to wait, rounded up, such as "15 minutes"."""
    if seconds < 60:
        return gettext("less than a minute")
    minutes = -(-seconds // 60)
    if minutes < 120:
        return ngettext("%(count)s minute", "%(count)s minutes", minutes) % {"count": minutes}
    hours = -(-minutes // 60)
    return ngettext("%(count)s hour", "%(count)s hours", hours) % {"count": hours}
