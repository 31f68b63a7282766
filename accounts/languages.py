"""In which language somebody is spoken to.

    1. the one of the profile, for who is signed in
    2. the one of the switch at the foot of each page, by its cookie
    3. the first of the browser's that the site speaks (Accept-Language)
    4. English

The cookie follows the profile: so pages that do not ask who is signed in (an unknown address, a
form without its token, DynamoDB out of reach) speak the same language, and signing out changes
none.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from dynamo.exceptions import TableMissing, Unavailable


def spoken(language: str | None) -> str | None:
    """`language`, if the site speaks it: what is stored may be older than `LANGUAGES`."""
    return language if language in dict(settings.LANGUAGES) else None


def language_of(user: Any) -> str | None:
    """The language that `user` has chosen in the profile; None for none, and for nobody."""
    return spoken(getattr(user, "language", None))


def speak_to(user: Any) -> None:
    """Go over to the language of `user`, until the request is answered; without one, stay."""
    if language := language_of(user):
        translation.activate(language)


def remember(response: HttpResponseBase, language: str | None) -> None:
    """Let the browser keep `language`; with None, forget the one that it keeps."""
    # As Django's `set_language` sets it.
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        language or "",
        max_age=settings.LANGUAGE_COOKIE_AGE if language else 0,
        path=settings.LANGUAGE_COOKIE_PATH,
        domain=settings.LANGUAGE_COOKIE_DOMAIN,
        secure=settings.LANGUAGE_COOKIE_SECURE,
        httponly=settings.LANGUAGE_COOKIE_HTTPONLY,
        samesite=cast(Any, settings.LANGUAGE_COOKIE_SAMESITE),
    )


class LanguageMiddleware(MiddlewareMixin):
    """Answers in the visitor's language; takes the place of Django's LocaleMiddleware.

    That one leaves its language to the thread, so what refuses a request before it would speak that
    of the request before. This one stands before all that may answer with a page.
    """

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        """Answer `request`."""
        if self.async_mode:  # type: ignore[attr-defined]  # absent from the stubs
            return self.__acall__(request)
        with translation.override(translation.get_language_from_request(request)):
            return _finished(request, cast(HttpResponseBase, self.get_response(request)))

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer `request`, asynchronously."""
        with translation.override(translation.get_language_from_request(request)):
            return _finished(
                request, await cast(Awaitable[HttpResponseBase], self.get_response(request))
            )


class ProfileLanguageMiddleware(MiddlewareMixin):
    """Lets a page that is about to be rendered speak the language of the profile, from its head on.

    `accounts.sessions.middleware` activates that language when it reads who is signed in, which is
    after the head of a page was written. This costs no request: every such page reads it.
    """

    def process_template_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """`response`, once it is known who reads it."""
        # Without an answer: the page asks again, where it is known how to say so.
        with suppress(Unavailable, TableMissing):
            bool(request.user.is_authenticated)
        return response


def _finished(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """`response`, which says how it came by its language, with the cookie as the profile has it."""
    # Only pages speak a language of their reader's: files say the same to everybody.
    if response.headers.get("Content-Type", "").startswith("text/html"):
        response.headers.setdefault("Content-Language", translation.get_language() or "")
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
    # Where it was not asked who is signed in, it is not asked for this either.
    chosen = language_of(getattr(request, "_cached_user", None))
    name = settings.LANGUAGE_COOKIE_NAME
    if chosen and chosen != request.COOKIES.get(name) and name not in response.cookies:
        remember(response, chosen)
    return response
