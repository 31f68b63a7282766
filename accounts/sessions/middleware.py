"""Reads who is signed in: as Django does, and only if their session has not ended.

Replaces Django's AuthenticationMiddleware. It costs the same two reads, of the session and of the
account, because the account contains its sessions.
"""

from __future__ import annotations

from functools import partial

from asgiref.sync import sync_to_async
from django.contrib import auth
from django.contrib.auth import middleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from accounts.languages import language_of
from accounts.models import User
from accounts.sessions import services as sessions
from accounts.sessions import visitor
from dynamo.client.deadline import within
from dynamo.exceptions import Unavailable

#: How long a page waits to record that its session was seen.
NOTING_SECONDS = 0.5


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's. A session that has ended, or has no id (version 0.1), is deleted."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _user_of(request))  # type: ignore[assignment]  # as Django does
        request.auser = partial(sync_to_async(_user_of), request)  # type: ignore[assignment]  # as above


def _user_of(request: HttpRequest) -> User | AnonymousUser:
    """The visitor, read once. Activates the language of their profile."""
    known: User | AnonymousUser | None = getattr(request, "_cached_user", None)
    if known is None:
        known = _read_user(request)
        request._cached_user = known  # type: ignore[attr-defined]  # as Django's middleware does
        if language := language_of(known):
            translation.activate(language)
    return known


def _read_user(request: HttpRequest) -> User | AnonymousUser:
    """Costs 2 requests and 2 read units; every five minutes also the write of `sessions.seen`."""
    visitor.note_account(request)
    user: User | AnonymousUser = auth.get_user(request)  # type: ignore[assignment]  # the stubs know users of the ORM only
    if not isinstance(user, User):
        return user
    session = sessions.find(user, visitor.session_id(request))
    if session is None:
        request.session.flush()
        return AnonymousUser()
    user.session_id = session.id
    try:
        with within(NOTING_SECONDS):
            sessions.seen(user, session, address=visitor.address(request))
    except Unavailable:
        # The page may still get its answer. The next page records it.
        pass
    return user
