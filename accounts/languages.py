"""The language of a page, and the time zone of its times.

The zone is that of the profile, or that of the settings. The language is the first of these that
applies:

    1. the language of the URL, if the project has `i18n_patterns`
    2. the language of the profile, if the visitor is signed in
    3. the language of the switch at the foot of each page, in its cookie
    4. the first of the browser's languages that the site has (Accept-Language)
    5. English

The cookie gets the language of the profile. Therefore, pages that do not read the visitor (an
unknown URL, a form without its token, the 503 page) have the same language, and signing out does
not change it.
"""

from http import HTTPStatus
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers

from accounts.cookies import set_cookie


def site_language(language: str | None) -> str | None:
    """`language` if it is in `LANGUAGES`, which may have changed since it was stored."""
    return language if language and language in dict(settings.LANGUAGES) else None


def language_of(user: object) -> str | None:
    """The language in the profile of `user`, if any; None for an anonymous user."""
    return site_language(getattr(user, "language", None))


def zone_of(user: object) -> ZoneInfo | None:
    """The time zone in the profile of `user`, if any; None for an anonymous user."""
    name = getattr(user, "time_zone", None)
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, ZoneInfoNotFoundError):
        return None


def remember(response: HttpResponseBase, language: str | None) -> None:
    """Store `language` in the cookie, as Django's `set_language` does. None deletes the cookie."""
    seconds = settings.LANGUAGE_COOKIE_AGE if language else 0
    set_cookie(response, settings.LANGUAGE_COOKIE_NAME, language or "", seconds)


class LanguageMiddleware(LocaleMiddleware):
    """Django's LocaleMiddleware, which also deactivates language and time zone after a request.

    Django leaves both active in the thread, so a middleware before it could answer in the language
    of the previous request. This middleware comes before everything that can answer with a page.
    """

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        timezone.deactivate()

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Add headers about the language, and the cookie if the profile has another language."""
        if response.status_code == HTTPStatus.NOT_FOUND:
            # With `i18n_patterns`, a URL may lack its language.
            response = super().process_response(request, response)
        # Files do not depend on the language.
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Language", translation.get_language() or "")
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        # The cookie is set only if the page has read the user: it must not cost a request.
        chosen = language_of(getattr(request, "_cached_user", None))
        name = settings.LANGUAGE_COOKIE_NAME
        if chosen and chosen != request.COOKIES.get(name) and name not in response.cookies:
            remember(response, chosen)
        translation.deactivate()
        timezone.deactivate()
        return response
