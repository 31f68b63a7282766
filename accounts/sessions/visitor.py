"""What a visitor's session and request say of a sign-in: its id, and when the password was checked.

The id is none of the session's key: whoever reads it in the account's item can use no session.
"""

from __future__ import annotations

import time
from typing import Any, TypeGuard

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest

from accounts.limits.client_address import client_address
from accounts.models import User
from accounts.sessions import services as sessions

_ID = "accounts.session"
_CHECKED_AT = "accounts.checked_at"

#: For so long after the password was checked, pages that want to be sure ask for it no more.
FRESH_SECONDS = 5 * 60


def session_id(request: HttpRequest) -> str | None:
    """The id of the session in the account's map; None where nobody is signed in."""
    found: str | None = request.session.get(_ID)
    return found


def begin(request: HttpRequest, user: User) -> None:
    """Let the session be a new one of `user`, who has just signed in. See `sessions.begin`.

    Whoever was signed in already, and signs in again, gets a new key as well: Django draws one
    only for who was not. Raises StaleUser.
    """
    before = session_id(request)
    new_id = sessions.begin(
        user,
        browser=request.META.get("HTTP_USER_AGENT", ""),
        address=address(request),
        instead_of=before or "",
    )
    if before:
        request.session.cycle_key()
    request.session[_ID] = new_id
    keep(request, user)
    note_password_checked(request)


def keep(request: HttpRequest, user: User) -> None:
    """Let the session go on after a change of `user` that ended others, or came before it.

    Costs the session's write, 1 write unit, at the end of the request.
    """
    request.session[HASH_SESSION_KEY] = user.get_session_auth_hash()


def leave_as_another(request: HttpRequest, user: User) -> None:
    """End the session of another account, in which `user` is about to sign in.

    Costs 1 read and what `sessions.end` costs, where there is one; else nothing.
    """
    other, ending = request.session.get(SESSION_KEY), session_id(request)
    if not other or not ending or other == user.pk:
        return
    try:
        sessions.end(User.get(other), ending)
    except User.DoesNotExist:
        return


def note_password_checked(request: HttpRequest) -> None:
    """Let the session say that its owner's password was checked just now."""
    request.session[_CHECKED_AT] = int(time.time())


def is_fresh(request: HttpRequest) -> bool:
    """Whether the password was checked in this session within the last five minutes."""
    checked_at: int = request.session.get(_CHECKED_AT, 0)
    return 0 <= time.time() - checked_at < FRESH_SECONDS


def known_account(request: HttpRequest) -> str | None:
    """The key of the account that the page found signed in, or signed in; None where it did not.

    It costs nothing: where the page did not ask who its visitor is, neither does this.
    """
    users = (request.__dict__.get("user"), request.__dict__.get("_cached_user"))
    return next((user.pk for user in users if type(user) is User), None)


def address(request: HttpRequest) -> str:
    """The client's address as text; empty where there is none."""
    return str(client_address(request) or "")


@receiver(user_logged_in, sender=User)
def note_sign_in(user: User, request: HttpRequest | None, **_signal: Any) -> None:
    """Note the time and the session; without a Django session, as with tokens, only the time.

    Raises:
        StaleUser: the account was deleted meanwhile.
    """
    if _has_session(request):
        begin(request, user)
    else:
        sessions.note_sign_in_time(user)


@receiver(user_logged_out, sender=User)
def note_sign_out(user: User, request: HttpRequest | None, **_signal: Any) -> None:
    """Remove the session from those of the account."""
    if _has_session(request) and (ending := session_id(request)):
        sessions.end(user, ending)


def _has_session(request: HttpRequest | None) -> TypeGuard[HttpRequest]:
    return getattr(request, "session", None) is not None
