"""The data of a sign-in in Django's session: its id, and the time when the password was checked.

The id is not the session's key; see `accounts.sessions.services`.
"""

import time
from typing import Any, TypeGuard

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import receiver
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from accounts.backends import AccountBackend
from accounts.limits.clients import client_address
from accounts.models import AbstractAccount, account_model
from accounts.services import register
from accounts.sessions import services as sessions
from dynamo import Transaction, joined

_ID = "accounts.session"
_CHECKED_AT = "accounts.checked_at"

#: Sensitive pages do not ask for the password again for this time after a check.
FRESH_SECONDS = 5 * 60


def session_id(request: HttpRequest) -> str | None:
    """The id of the session in the account's map; None for an anonymous visitor."""
    return request.session.get(_ID)


@receiver(user_logged_in, sender=account_model())
def note_sign_in(user: AbstractAccount, request: HttpRequest | None, **_signal: object) -> None:
    """Record the sign-in and its session. Without a Django session (tokens), only the time.

    If `user.session_id` is set, the session was recorded at the registration or by `begin_session`.
    If the visitor was signed in already, the session gets a new key; Django changes the key only
    for an anonymous visitor.

    Raises:
        StaleUser: see `accounts.sessions.services.begin`.
    """
    if not _has_session(request):
        user.record_sign_in()
        return
    before = session_id(request)
    begun = user.session_id
    if begun is None or begun == before:
        begun = begin_session(request, user)
    if before:
        request.session.cycle_key()
    request.session[_ID] = begun
    keep_signed_in(request, user)
    note_password_checked(request)


def begin_session(
    request: HttpRequest, user: AbstractAccount, *, also: Transaction | None = None
) -> str:
    """Record a session of `user` that begins here, with the writes of `also`. Returns its id.

    Store the id in `user.session_id` before `login`, which otherwise records another session.

    Raises:
        StaleUser: see `accounts.sessions.services.begin`.
    """
    before = session_id(request) or ""
    return sessions.begin(user, **from_where(request), instead_of=before, also=also)


def register_signed_in(
    request: HttpRequest, *, write: Transaction | None = None, **values: Any
) -> AbstractAccount:
    """Like `accounts.services.register`, with the visitor's session.

    This saves the write of `begin`.

    The returned account has the `session_id` for `login`. If the form was sent before, it has none,
    and `login` begins the session.

    Raises the errors of `register`, and those of a sign-in if the form was sent before.
    """
    signing_in = sessions.first_session(**from_where(request))

    @sensitive_variables()
    def is_password(made: AbstractAccount, typed: str) -> bool:
        return AccountBackend().verified(request, made.email, typed) is not None

    [begun] = signing_in["sessions"]

    def note(_stored: object) -> None:
        if sessions.find(user, begun):
            user.session_id = begun

    with joined(write) as write:
        user = register(**values, sign_in=signing_in, is_password=is_password, write=write)
        write.on_commit(user, note)
    return user


def from_where(request: HttpRequest) -> dict[str, Any]:
    """The values that the account's map stores for a session that begins now."""
    return {"browser": request.META.get("HTTP_USER_AGENT", ""), "address": address(request)}


@receiver(user_logged_out, sender=account_model())
def note_sign_out(user: AbstractAccount, request: HttpRequest | None, **_signal: object) -> None:
    if _has_session(request) and (ending := session_id(request)):
        sessions.end(user, ending)


def _has_session(request: HttpRequest | None) -> TypeGuard[HttpRequest]:
    return getattr(request, "session", None) is not None


def keep_signed_in(request: HttpRequest, user: AbstractAccount) -> None:
    """Keep the visitor signed in after a change of `user` that ended other sessions.

    Costs the session's write, 1 write unit, at the end of the request.
    """
    request.session[HASH_SESSION_KEY] = user.get_session_auth_hash()


def end_other_session(request: HttpRequest, user: AbstractAccount) -> None:
    """End the visitor's session if it belongs to another account than `user`.

    In that case, it costs 1 read and the write of `sessions.end`.
    """
    other = request.session.get(SESSION_KEY)
    ending = session_id(request)
    if other and ending and other != user.pk and (left := account_model().get_or_none(other)):
        sessions.end(left, ending)


def note_password_checked(request: HttpRequest) -> None:
    request.session[_CHECKED_AT] = int(time.time())


def is_fresh(request: HttpRequest) -> bool:
    """Whether the password was checked in this session within the last five minutes."""
    checked_at: int = request.session.get(_CHECKED_AT, 0)
    return 0 <= time.time() - checked_at < FRESH_SECONDS


def known_account(request: HttpRequest) -> str | None:
    """The key of the visitor's account if the page has read it. Sends no request."""
    users: tuple[Any, ...] = (request.__dict__.get("user"), request.__dict__.get("_cached_user"))
    return next((user.pk for user in users if issubclass(type(user), AbstractAccount)), None)


def address(request: HttpRequest) -> str:
    """The client's address as text; empty if there is none."""
    return str(client_address(request) or "")
