"""Writes log lines, plain or JSON, and hides secrets in them and in crash reports, at any level.

Secrets are passwords, session keys, CSRF and link tokens. They are found in two ways. In each path,
even one that a client invented, the part with the name `token` in the URL map is hidden. Therefore,
a new URL only has to give its parameter this name. In each text about a request, the values of the
request's own secrets are hidden.

This covers the handlers of `LOGGING`, at all levels of the loggers. A server's own access log
(granian's, a proxy's) is not covered: it writes paths unchanged.

All lines that a page wrote have its HTTP request id: see `project.middleware.AnswerMiddleware`.

Django's crash reports are the page in development and the mail to admins. They also leave out
variables by their names. In code that sends requests to DynamoDB they leave out all variables,
because those contain hashes and session keys. Django does this only in production.
"""

import functools
import html
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, get_resolver
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

HIDDEN = "[hidden]"

#: The parameter of a URL whose value is a secret.
_HIDDEN_PARAMETER = "token"

#: Shorter secrets are hidden only in paths, because elsewhere they could be parts of words.
_LEAST_LENGTH = 6

#: Packages with items and session keys in their variables, and the module of Django's decorators.
_STORAGE = ("botocore", "django.utils.asyncio", "dynamo", "pynamodb", "urllib3")

_PARAMETER = re.compile("<[^<>]+>")
# A slash in a path, or quoted in a query such as ?next=.
_SLASH = "(?:/|%2[Ff])"
_PART = r"(?:(?!%2[Ff])[^\s/?&#\"'<>])+"
_SECRET_FIELD = re.compile("pass|token|key|secret", re.IGNORECASE)

#: Below WARNING these log whole requests, answers or template contexts. Those contain password
#: hashes, session keys and tokens in too many forms to be found.
TALKATIVE = ("boto3.", "botocore.", "django.template.", "pynamodb.", "s3transfer.", "urllib3.")

#: The HTTP request id of the current page, or of the current call on AWS Lambda.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

log = logging.getLogger(__name__)

# `json.dumps` would make a new encoder for each line.
_as_json = json.JSONEncoder(default=str).encode


def hiding(request: object = None) -> Callable[[str], str]:
    """A function that hides the tokens of paths in a text, and the secrets of `request`."""
    secrets: list[str] = []
    if isinstance(request, HttpRequest):
        secrets = sorted(_secrets(request), key=len, reverse=True)
    # If the URL map is not loaded, no request was handled yet. It is not loaded here, because a
    # log line may come from the middle of its import.
    is_mapped = hasattr(sys.modules.get(settings.ROOT_URLCONF), "urlpatterns")
    paths = _paths_with_tokens(settings.ROOT_URLCONF) if is_mapped else None

    def hidden(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        return paths.sub(rf"\1{HIDDEN}", text) if paths else text

    return hidden


@functools.cache
def _paths_with_tokens(urlconf: str) -> re.Pattern[str] | None:
    """Matches paths with a token, if the URL map has any: the text before and after the token.

    The rest may be missing, because a mistyped path shows the token, too.
    """
    found = []
    for route in _routes(get_resolver(urlconf)):
        if f"{_HIDDEN_PARAMETER}>" in route:
            before = route.partition(f"{_HIDDEN_PARAMETER}>")[0].rpartition("<")[0]
            path = re.escape(before).replace("/", _SLASH)
            found.append(_PARAMETER.sub(lambda _each: _PART, path))
    # All patterns begin with a slash, so that the search can skip all other characters.
    return re.compile(f"({_SLASH}(?:{'|'.join(found)})){_PART}") if found else None


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from _routes(pattern, route)


def _secrets(request: HttpRequest) -> set[str]:
    """The secrets of a request as they are, and as HTML or Python write them."""
    plain = {value for value in _values(request) if len(value) >= _LEAST_LENGTH}
    return {form for item in plain for form in (item, html.escape(item), repr(item)[1:-1])}


def _values(request: HttpRequest) -> Iterator[str]:
    if request.resolver_match:
        yield str(request.resolver_match.kwargs.get(_HIDDEN_PARAMETER, ""))
    # A bearer token is a secret.
    yield request.META.get("HTTP_AUTHORIZATION", "").partition(" ")[2]
    for name in (
        settings.SESSION_COOKIE_NAME,
        settings.ACCOUNTS_COOKIE_NAME,
        settings.CSRF_COOKIE_NAME,
    ):
        yield request.COOKIES.get(name, "")
    yield request.META.get("CSRF_COOKIE") or ""
    if hasattr(request, "session"):
        yield request.session.session_key or ""
    # Only a form that was read before is searched, because a log line must not read the body.
    if posted := getattr(request, "_post", None):
        for name, values in posted.lists():
            if _SECRET_FIELD.search(name):
                yield from values


def capture_python_messages() -> None:
    """Log what Python would write to stderr: warnings, and errors that end threads."""
    logging.captureWarnings(True)
    hook = threading.excepthook

    def log_end(end: threading.ExceptHookArgs) -> None:
        if end.exc_value is not None and not issubclass(end.exc_type, SystemExit):
            name = end.thread.name if end.thread else "without a name"
            log.error("The thread %s ended with an error", name, exc_info=end.exc_value)
        if hook is not threading.__excepthook__:
            hook(end)

    threading.excepthook = log_end


class TalkativeFilter(logging.Filter):
    """Drops the lines of `TALKATIVE` loggers below WARNING."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_talkative = f"{record.name}.".startswith(TALKATIVE)
        return record.levelno >= logging.WARNING or not is_talkative


class HidingFormatter(logging.Formatter):
    """Writes lines and their tracebacks without secrets, with the HTTP request id at their end."""

    def format(self, record: logging.LogRecord) -> str:
        return hiding(getattr(record, "request", None))(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - of the base class
        """The line without its traceback."""
        line = super().formatMessage(record)
        return f"{line} [{name}]" if (name := request_id.get()) else line


class HidingJsonFormatter(logging.Formatter):
    """Writes each line as one JSON object without secrets. See `docs/operators.md`.

    They are hidden before the values become JSON, which escapes some of their characters. Other
    attributes of a record than `fields` are left out: some are whole requests and answers.
    """

    def format(self, record: logging.LogRecord) -> str:
        hidden = hiding(getattr(record, "request", None))
        message = record.getMessage()
        fields = getattr(record, "fields", None)
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # Pages and commands have hidden secrets in their fields already: searching takes time.
            "message": hidden(message) if fields is None else message,
            "requestId": request_id.get(),
            **(fields or {}),
            "exception": hidden(self.formatException(record.exc_info)) if record.exc_info else None,
            "stack": hidden(record.stack_info) if record.stack_info else None,
        }
        line = {name: value for name, value in found.items() if value is not None}
        return _as_json(line)


class ReporterFilter(SafeExceptionReporterFilter):
    """Also hides the variables of the packages that talk to DynamoDB.

    Servers put the whole environment into each request's META. Django hides its keys and passwords
    by their names, but not the mail server's URL, which contains a password.
    """

    hidden_settings = re.compile(
        f"{SafeExceptionReporterFilter.hidden_settings.pattern}|EMAIL_URL", re.IGNORECASE
    )

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> Any:
        module = str(tb_frame.f_globals.get("__name__", ""))
        if module.startswith(_STORAGE) and self.is_active(request):
            return [(name, self.cleansed_substitute) for name in tb_frame.f_locals]
        return super().get_traceback_frame_variables(request, tb_frame)


class CrashReporter(ExceptionReporter):
    """Also hides the secrets of the request."""

    def get_traceback_html(self) -> Any:
        return hiding(self.request)(super().get_traceback_html())

    def get_traceback_text(self) -> Any:
        return hiding(self.request)(super().get_traceback_text())
