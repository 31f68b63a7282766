"""The account cookie, and cookies with the path, domain and flags of the session cookie.

The account cookie names the account of a session, so that a page reads both in one request. Its
value is the account's key, signed for this session. The cookie is only a hint. Only the stored
session tells whose session it is (`accounts.sessions.middleware`): a browser without the cookie, or
with another value, gets the same page with one request more, and then a new cookie.
"""

from typing import Any, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.core.signing import BadSignature, Signer
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from dynamo.sessions import SessionStore


def set_cookie(response: HttpResponseBase, name: str, value: str, seconds: int | None) -> None:
    """Give the browser a cookie for `seconds`, or, if None, until the browser is closed.

    With 0 `seconds` the browser deletes the cookie.
    """
    options: dict[str, Any] = {
        option: getattr(settings, f"SESSION_COOKIE_{option.upper()}")
        for option in ("path", "domain", "secure", "httponly", "samesite")
    }
    response.set_cookie(name, value, max_age=seconds, **options)


def account_of(request: HttpRequest) -> str | None:
    """The key of the account that the cookie names; None without a cookie of this session."""
    key = request.session.session_key
    try:
        return _signer(key).unsign(request.COOKIES[settings.ACCOUNTS_COOKIE_NAME]) if key else None
    except (KeyError, BadSignature):
        return None


def renew(request: HttpRequest, response: HttpResponseBase) -> None:
    """Give the browser the cookie of its session if it does not have it."""
    session = cast(SessionStore, request.session)
    if not session.is_read:
        return
    given = request.COOKIES.get(settings.ACCOUNTS_COOKIE_NAME)
    account, key = session.get(SESSION_KEY), session.session_key
    if not account or not key:
        if given is not None:
            set_cookie(response, settings.ACCOUNTS_COOKIE_NAME, "", 0)
        return
    value = _signer(key).sign(account)
    if given != value or session.modified:
        seconds = None if session.get_expire_at_browser_close() else session.get_expiry_age()
        set_cookie(response, settings.ACCOUNTS_COOKIE_NAME, value, seconds)


def _signer(session_key: str) -> Signer:
    return Signer(salt=f"accounts.account_cookie {session_key}")
