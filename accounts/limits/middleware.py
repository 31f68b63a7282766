"""The page that says when to try again, after too many attempts or too many pages at once."""

import logging
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.utils.timesince import timesince

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
    """A time to wait, rounded up, such as "15 minutes" or "1 hour, 5 minutes"."""
    now = timezone.now()
    return timesince(now, now + timedelta(minutes=-(-seconds // 60)))
