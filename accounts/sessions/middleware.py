"""Who is signed in: Django's answer, and that their session has not been ended.

It takes the place of Django's AuthenticationMiddleware, whose lazy user costs two reads: of the
session and of the account. The account says which of its sessions are alive, so there is no third.
"""

from __future__ import annotations

from functools import partial

from asgiref.sync import sync_to_async
from django.contrib import auth
from django.contrib.auth import middleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts import languages
from accounts.models import User
from accounts.sessions import services as sessions
from accounts.sessions import visitor
from dynamo.client.deadline import within
from dynamo.exceptions import Unavailable

#: So long a page waits to note that its visitor was seen; it can do without.
NOTING_SECONDS = 0.5


class AuthenticationMiddleware(middleware.AuthenticationMiddleware):
    """Django's, for which a session that was ended is none: it is deleted, and nobody signed in.

    So is one without an id, from before sessions had one.
    """

    def process_request(self, request: HttpRequest) -> None:
        """Give `request` its lazy user."""
        super().process_request(request)
        request.user = SimpleLazyObject(lambda: _user_of(request))  # type: ignore[assignment]  # as Django does
        request.auser = partial(sync_to_async(_user_of), request)  # type: ignore[assignment]  # as above


def _user_of(request: HttpRequest) -> User | AnonymousUser:
    known: User | AnonymousUser | None = getattr(request, "_cached_user", None)
    if known is None:
        known = _read_user(request)
        request._cached_user = known  # type: ignore[attr-defined]  # where Django's keeps it
        languages.speak_to(known)
    return known


def _read_user(request: HttpRequest) -> User | AnonymousUser:
    """Costs 2 requests and 2 read units, the write of `sessions.seen` every five minutes."""
    user: User | AnonymousUser = auth.get_user(request)  # type: ignore[assignment]  # the stubs know users of the ORM only
    if not isinstance(user, User):
        return user
    session = sessions.find(user, visitor.session_id(request))
    if session is None:
        request.session.flush()
        return AnonymousUser()
    user.session_id = session.id
    _note_seen(request, user, session)
    return user


def _note_seen(request: HttpRequest, user: User, session: sessions.Session) -> None:
    try:
        with within(NOTING_SECONDS):
            sessions.seen(user, session, address=visitor.address(request))
    except Unavailable:
        # The page may have an answer all the same; the next one notes it.
        return
