"""Mails that tell the owner of an account what was done with it, from where, and what to do now.

Like other mails (`accounts.emails.mails`) they are enqueued, in the transaction of the change if it
has one. Commands do not send notices.

A browser is known to an account if a cookie names the account. The cookie has the signed keys of up
to `MOST_ACCOUNTS` accounts that signed in there. Each is valid for a year, or until the password is
changed in another browser. If the cookie is lost, the next sign-in only sends a mail.
"""

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.crypto import salted_hmac
from django.utils.formats import date_format

from accounts.cookies import set_cookie
from accounts.emails import mails
from accounts.languages import language_of, zone_of
from accounts.limits.clients import browser_name
from accounts.models import AbstractAccount
from accounts.sessions import services as sessions, visitor
from dynamo import Transaction

MOST_ACCOUNTS = 5
_KNOWN_SECONDS = 365 * 24 * 60 * 60
_SALT = "accounts.pages.notices"


def send(
    request: HttpRequest,
    kind: str,
    user: AbstractAccount,
    *,
    to: str = "",
    by_staff: bool = False,
    write: Transaction | None = None,
) -> None:
    """Enqueue the mail `kind` about an action of the visitor, to the account's address or another.

    A notice about an action of staff names neither a browser nor an address. An email address that
    was never confirmed gets no notice, because it may belong to a stranger.
    """
    if not to and not user.is_confirmed:
        return
    with translation.override(language_of(user) or translation.get_language()):
        now = timezone.localtime(timezone.now(), zone_of(user))
        context = {
            "when": f"{date_format(now, 'DATETIME_FORMAT')} {now:%Z}",
            "browser": browser_name(request.META.get("HTTP_USER_AGENT", "")),
            "address": visitor.address(request),
            "by_staff": by_staff,
            "reset": mails.url("password_reset"),
        }
        mails.send(user, kind, to=to, write=write, **context)


def is_known(request: HttpRequest, user: AbstractAccount) -> bool:
    """Whether `user`, as read before the sign-in, has signed in from this browser before.

    Every browser counts as known to a user who has never signed in. A browser also counts as
    known if one of the account's active sessions has the same browser and address.
    """
    here = sessions.place(**visitor.from_where(request))
    living = (
        {"browser": item.browser, "address": item.address}
        for item in sessions.active_sessions(user)
    )
    is_first = "lastLoginAt" not in user.stored
    return is_first or _key_of(user) in _accounts(request) or here in living


def remember(request: HttpRequest, response: HttpResponse, user: AbstractAccount) -> None:
    """Give the browser the cookie by which it is known to `user`."""
    others = [key for key in _accounts(request) if not key.startswith(user.pk)]
    known = signing.dumps([_key_of(user), *others][:MOST_ACCOUNTS], salt=_SALT, compress=True)
    set_cookie(response, settings.ACCOUNTS_BROWSER_COOKIE_NAME, known, _KNOWN_SECONDS)


def _key_of(user: AbstractAccount) -> str:
    """A key of the account and its password: after a change of the password no browser is known."""
    digest = salted_hmac(_SALT, user.get_session_auth_hash(), algorithm="sha256")
    return f"{user.pk}:{digest.hexdigest()[:16]}"


def _accounts(request: HttpRequest) -> list[str]:
    cookie = request.COOKIES.get(settings.ACCOUNTS_BROWSER_COOKIE_NAME, "")
    try:
        found: list[str] = signing.loads(cookie, salt=_SALT, max_age=_KNOWN_SECONDS)
    except signing.BadSignature:
        return []
    return found
