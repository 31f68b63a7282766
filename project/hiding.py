"""What no log line and no crash report may say: passwords, session keys, CSRF and link tokens.

They are found in two ways. In paths, whoever wrote them: the part that the URL map calls `token`,
so that a new URL is covered by the name of its parameter. And of the request that a line is about,
the values themselves, wherever they stand.
"""

from __future__ import annotations

import functools
import html
import re
import sys
from collections.abc import Callable, Iterator

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, get_resolver

HIDDEN = "[hidden]"

#: The parameter of a URL that is a secret.
_HIDDEN_PARAMETER = "token"

#: Shorter ones are hidden in paths alone: elsewhere they would be parts of many a word.
_LEAST_LENGTH = 6

_PARAMETER = re.compile(r"<(?:[^<>:]+:)?(\w+)>")
# As they stand in a path, and as a query such as ?next= quotes them.
_SLASH = "(?:/|%2[Ff])"
_PART = r"(?:(?!%2[Ff])[^\s/?&#\"'<>])+"
_SECRET_FIELD = re.compile("pass|token|key|secret", re.IGNORECASE)


def hide(text: str, request: object = None) -> str:
    """`text` without the tokens in its paths and without the secrets of `request`, if it is one."""
    return hiding(request)(text)


def hiding(request: object = None) -> Callable[[str], str]:
    """What `hide` does, for several texts about one request: its secrets are looked up once."""
    secrets: list[str] = []
    if isinstance(request, HttpRequest):
        secrets = sorted(_secrets(request), key=len, reverse=True)
    # Before the map is there, no request was looked at; to load it here could be in mid-import.
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
    """How to find each path with a token, and what to put in its place."""
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
    """For `a/<token>/b/`: what matches any `/a/` and the part behind it, and `/a/[hidden]`."""
    pieces = _PARAMETER.split(f"/{route}")
    kept = [""]
    for at, piece in enumerate(pieces):
        if at % 2 == 0:
            kept[-1] += re.escape(piece).replace("/", _SLASH)
        elif piece == _HIDDEN_PARAMETER:
            kept.append("")
        else:
            kept[-1] += _PART
    # What follows the last token need not be there: a mistyped path shows the token as well.
    kept.pop()
    expression = "".join(f"({each}){_PART}" for each in kept)
    return re.compile(expression), "".join(rf"\{at + 1}{HIDDEN}" for at in range(len(kept)))


def _secrets(request: HttpRequest) -> set[str]:
    """The secrets of a request as they are, and as HTML or Python write them."""
    # Some of them are the same: a cookie, and what was read of it.
    plain = {each for each in _values(request) if len(each) >= _LEAST_LENGTH}
    return {form for each in plain for form in (each, html.escape(each), repr(each)[1:-1])}


def _values(request: HttpRequest) -> Iterator[str]:
    if request.resolver_match:
        yield str(request.resolver_match.kwargs.get(_HIDDEN_PARAMETER, ""))
    # A bearer's token, and nothing where there is none.
    yield request.META.get("HTTP_AUTHORIZATION", "").partition(" ")[2]
    for name in (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME):
        yield request.COOKIES.get(name, "")
    yield request.META.get("CSRF_COOKIE") or ""
    if hasattr(request, "session"):
        yield request.session.session_key or ""
    # Only a form that was read already: a log line must not read the body.
    if posted := getattr(request, "_post", None):
        for name, values in posted.lists():
            if _SECRET_FIELD.search(name):
                yield from values
