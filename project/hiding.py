"""Hides secrets in log lines and crash reports: passwords, session keys, CSRF and link tokens.

They are found in two ways. In paths, also those that a client made up: the part that the URL map
calls `token`, so a new URL only has to name its parameter so. And anywhere in a text about a
request: the values of the request's own secrets.

Django's crash reports are the page in development and the mail to admins. They also leave out
variables: by their names, and all of them where requests to DynamoDB are made, as those contain
hashes and session keys. Django does that in production alone.
"""

from __future__ import annotations

import functools
import html
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, get_resolver
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

HIDDEN = "[hidden]"

#: The parameter of a URL that is a secret.
_HIDDEN_PARAMETER = "token"

#: Shorter ones are hidden in paths alone: elsewhere they would be parts of words.
_LEAST_LENGTH = 6

#: Packages through which items and session keys pass.
_STORAGE = {"botocore", "dynamo", "pynamodb", "urllib3"}

_PARAMETER = re.compile(r"<(?:[^<>:]+:)?(\w+)>")
# A slash in a path, or quoted in a query such as ?next=.
_SLASH = "(?:/|%2[Ff])"
_PART = r"(?:(?!%2[Ff])[^\s/?&#\"'<>])+"
_SECRET_FIELD = re.compile("pass|token|key|secret", re.IGNORECASE)


def hide(text: str, request: object = None) -> str:
    """`text` without the tokens in its paths, and without the secrets of `request` if given."""
    return hiding(request)(text)


def hiding(request: object = None) -> Callable[[str], str]:
    """As `hide`, for several texts about one request: its secrets are looked up once."""
    secrets: list[str] = []
    if isinstance(request, HttpRequest):
        secrets = sorted(_secrets(request), key=len, reverse=True)
    # Without the URL map no request was handled yet, and loading it here could be in mid-import.
    is_mapped = hasattr(sys.modules.get(settings.ROOT_URLCONF), "urlpatterns")
    paths = _paths_with_tokens(settings.ROOT_URLCONF) if is_mapped else []

    def hidden(text: str) -> str:
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        for path, shown in paths:
            text = path.sub(shown, text)
        return text

    return hidden


@functools.cache
def _paths_with_tokens(urlconf: str) -> list[tuple[re.Pattern[str], str]]:
    """A pattern for each path with a token, and the replacement."""
    return [
        _finder(route)
        for route in _routes(get_resolver(urlconf))
        if f"{_HIDDEN_PARAMETER}>" in route
    ]


def _routes(resolver: URLResolver, before: str = "") -> Iterator[str]:
    for each in resolver.url_patterns:
        route = before + str(each.pattern)
        if isinstance(each, URLPattern):
            yield route
        else:
            yield from _routes(each, route)


def _finder(route: str) -> tuple[re.Pattern[str], str]:
    """For `a/<token>/b/`: a pattern of `/a/` and the part after it, and `/a/[hidden]`."""
    pieces = _PARAMETER.split(f"/{route}")
    kept = [""]
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            kept[-1] += re.escape(piece).replace("/", _SLASH)
        elif piece == _HIDDEN_PARAMETER:
            kept.append("")
        else:
            kept[-1] += _PART
    # The rest after the last token may be missing: a mistyped path shows the token, too.
    kept.pop()
    expression = "".join(f"({each}){_PART}" for each in kept)
    return re.compile(expression), "".join(rf"\{at + 1}{HIDDEN}" for at in range(len(kept)))


def _secrets(request: HttpRequest) -> set[str]:
    """The secrets of a request as they are, and as HTML or Python write them."""
    plain = {each for each in _values(request) if len(each) >= _LEAST_LENGTH}
    return {form for each in plain for form in (each, html.escape(each), repr(each)[1:-1])}


def _values(request: HttpRequest) -> Iterator[str]:
    if request.resolver_match:
        yield str(request.resolver_match.kwargs.get(_HIDDEN_PARAMETER, ""))
    # A bearer token.
    yield request.META.get("HTTP_AUTHORIZATION", "").partition(" ")[2]
    for name in (
        settings.SESSION_COOKIE_NAME,
        settings.ACCOUNT_COOKIE_NAME,
        settings.CSRF_COOKIE_NAME,
    ):
        yield request.COOKIES.get(name, "")
    yield request.META.get("CSRF_COOKIE") or ""
    if hasattr(request, "session"):
        yield request.session.session_key or ""
    # Only a form that was already read: a log line must not read the body.
    if posted := getattr(request, "_post", None):
        for name, values in posted.lists():
            if _SECRET_FIELD.search(name):
                yield from values


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
        package = str(tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _STORAGE and self.is_active(request):
            return [(name, self.cleansed_substitute) for name in tb_frame.f_locals]
        return super().get_traceback_frame_variables(request, tb_frame)


class CrashReporter(ExceptionReporter):
    """Also hides the secrets of the request."""

    def get_traceback_html(self) -> Any:
        return hide(super().get_traceback_html(), self.request)

    def get_traceback_text(self) -> Any:
        return hide(super().get_traceback_text(), self.request)
