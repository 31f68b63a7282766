"""Reads who is signed in, as Django does, if their session has not ended.

Replaces Django's AuthenticationMiddleware. It costs the same two reads, of the session and of the
account, because the account contains its sessions. They are one request if the browser has the
account cookie (`accounts.cookies`).
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import auth
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, middleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone, translation
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject

from accounts import cookies
from accounts.backends import AccountBackend
from accounts.languages import language_of, zone_of
from accounts.limits.clients import counted_client
from accounts.models import AbstractAccount, account_model
from accounts.sessions import services as sessions, visitor
from dynamo import TableMissing, Unavailable
from dynamo.auth import passwords
from dynamo.runtime.deadline import within
from dynamo.runtime.threads import together
from dynamo.sessions import SessionStore

_BACKEND = f"{AccountBackend.__module__}.{AccountBackend.__qualname__}"

#: A page waits at most for this time to record that its session was seen.
NOTING_SECONDS = 0.5


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's middleware, which also deletes a session that has ended."""

    def process_request(self, request: HttpRequest) -> None:
        passwords.hashing_for.set(counted_client(request))
        request.user = SimpleLazyObject(lambda: _user_of(request))  # type: ignore[assignment]  # as Django does
        request.auser = partial(_auser_of, request)  # type: ignore[assignment]  # as above

    def process_template_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Read the visitor before rendering, because the profile has the page's language.

        This costs no further request, because every such page reads the visitor.
        """
        # If DynamoDB does not answer, rendering fails as well, and its error becomes a 503 page.
        with suppress(Unavailable, TableMissing):
            bool(request.user)  # None under REST framework with UNAUTHENTICATED_USER = None
        return response

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        cookies.renew(request, response)
        return response


def _user_of(request: HttpRequest) -> AbstractAccount | AnonymousUser:
    """The visitor, read once. Activates the language and the time zone of their profile."""
    known: AbstractAccount | AnonymousUser | None = getattr(request, "_cached_user", None)
    if known is None:
        known = _read_user(request)
        request._cached_user = known  # type: ignore[attr-defined]  # as Django's middleware does
        language = language_of(known)
        if language and not translation.get_language_from_path(request.path_info):
            translation.activate(language)
        if zone := zone_of(known):
            timezone.activate(zone)
    return known


T = TypeVar("T")


def read_with_visitor(request: HttpRequest, read: Callable[[str], T]) -> T | None:
    """The result of `read` for the key of the visitor's account; None if no user is signed in.

    If the visitor was not read yet, both are read at the same time, by the account cookie. If that
    names another account, `read` is called again.
    """
    named = None if hasattr(request, "_cached_user") else cookies.account_of(request)
    found = None
    if named is not None:
        # The visitor is read in this thread, because that activates the language of the page.
        _is_read, found = together(lambda: request.user.is_authenticated, partial(read, named))
    if not request.user.is_authenticated:
        return None
    return found if named == request.user.pk and found is not None else read(request.user.pk)


# This object is made once, because making it takes longer than finding an anonymous visitor.
_auser_of = sync_to_async(_user_of)


def _read_user(request: HttpRequest) -> AbstractAccount | AnonymousUser:
    """Costs 2 read units, in 1 request if the visitor has the account cookie, else in 2.

    Every five minutes, the write of `sessions.mark_seen` is added.
    """
    user: AbstractAccount | AnonymousUser = _user_read_with_session(request) or auth.get_user(
        request
    )  # type: ignore[assignment]  # the stubs know users of the ORM only
    if not isinstance(user, AbstractAccount):
        return user
    session = sessions.find(user, visitor.session_id(request))
    if session is None:
        request.session.flush()
        return AnonymousUser()
    user.session_id = session.id
    # If this fails, the page can still be answered, and the next page records the session.
    with suppress(Unavailable), within(NOTING_SECONDS):
        sessions.mark_seen(user, session, address=visitor.address(request))
    return user


def _user_read_with_session(request: HttpRequest) -> AbstractAccount | None:
    """The visitor, if the account was read together with the session and belongs to it.

    None does not mean that the session has ended: the account may have been read before the session
    (they are not read at one instant), or the account cookie named another one.
    """
    session = cast(SessionStore, request.session)
    account = cookies.account_of(request)
    stored = session.load_with(account_model().table(), {"pk": {"S": account}}) if account else None
    if stored is None:
        return None
    user = account_model().from_raw_data(stored)
    belongs = (
        user.pk == session.get(SESSION_KEY)
        and user.is_active
        # Another backend may have other rules for who is signed in.
        and session.get(BACKEND_SESSION_KEY) == _BACKEND
        and _BACKEND in settings.AUTHENTICATION_BACKENDS
        and sessions.find(user, visitor.session_id(request)) is not None
        and constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
    )
    return user if belongs else None
