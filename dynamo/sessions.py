"""Django's cache sessions, written once and never brought back (`SESSION_ENGINE`).

Django's engine looks before it writes: whether a fresh key is free, and whether a session is still
there. Here the write itself decides, under a condition. So an ended session stays ended, whoever
else saves it at that moment, and a request costs what it must:

    a visitor without a session                nothing
    a page that reads the session              1 read
    a changed session                          1 write more
    signing in (`cycle_key`, then values)      1 write; where there was a session, 1 read and
                                               1 write more
    signing out                                1 write

An ended session leaves a tombstone in its place for as long as a new session lasts. So the request
that created the session cannot bring it back, however late a copy of it arrives: while the
tombstone stands, it is refused, and afterwards what it stores has expired.
"""

from __future__ import annotations

import re
from typing import Any

from django.contrib.sessions.backends import cache
from django.contrib.sessions.backends.base import (
    VALID_KEY_CHARS,
    CreateError,
    SessionBase,
    UpdateError,
)
from django.utils.crypto import get_random_string

from dynamo.cache import CacheValueTooLarge, DynamoCache

KEY_LENGTH = 32

# From Django's least length to ours. Whatever else a cookie holds is no key, and costs no request.
_KEY = re.compile(rf"[{VALID_KEY_CHARS}]{{8,{KEY_LENGTH}}}")


class SessionStore(cache.SessionStore):
    """A session in the cache `SESSION_CACHE_ALIAS`, which must be a `DynamoCache`.

    Raises (every method that reads or writes): see `dynamo.client.sending`. A cache out of reach is
    not taken for a session that ended, which would sign its user out.
    """

    _cache: DynamoCache
    _session_cache: dict[str, Any]

    #: The key that was drawn last, until something is stored under it.
    _unwritten_key: str | None = None

    #: Whether a request to store something under that key was sent; it may yet arrive.
    _is_sent = False

    def load(self) -> dict[str, Any]:
        """The stored values; none, and no key any more, where the session ended. 1 request."""
        if self.session_key is None or self._is_unwritten():
            return {}
        stored: dict[str, Any] | None = self._cache.get(self.cache_key)
        if stored is None:
            self._session_key = None
            return {}
        return stored

    def create(self) -> None:
        """Give the session a new key. Nothing is written before `save`. Costs no request."""
        self._draw_key()
        self._get_session(no_load=True)  # type: ignore[attr-defined]  # absent from the stubs
        self.modified = True

    def save(self, must_create: bool = False) -> None:
        """Store the values: of a new session under a free key, of another where it still stands.

        Costs 1 request; see `DynamoCache.add` for a new session. One that lasts longer than
        SESSION_COOKIE_AGE costs 1 more when it is created. With an expiry in the past the session
        ends.

        Raises:
            CreateError: with `must_create`, where the key is in use.
            UpdateError: the session was ended meanwhile; it stays ended.
            CacheValueTooLarge: the values are over 400 KB.
        """
        if self.session_key is None:
            self.create()
        values = self._get_session(no_load=must_create)  # type: ignore[attr-defined]  # as above
        try:
            self._write(values, must_create=must_create)
        except CacheValueTooLarge as error:
            # It names the key, with which whoever reads it in a log could use the session.
            raise CacheValueTooLarge("a session", error.size_bytes) from None
        self._unwritten_key = None

    def _write(self, values: dict[str, Any], *, must_create: bool) -> None:
        age_seconds = self.get_expiry_age()
        if must_create or self._is_unwritten():
            # A tombstone stands for so long, and has to outlive what a late copy of this stores.
            first_seconds = min(age_seconds, self.get_session_cookie_age())
            self._create(values, first_seconds, must_create=must_create)
            if first_seconds == age_seconds:
                return
        if age_seconds <= 0:
            self.delete()
        elif not self._cache.set_if_present(self.cache_key, values, age_seconds):
            raise UpdateError

    def _create(self, values: dict[str, Any], age_seconds: float, *, must_create: bool) -> None:
        self._is_sent = True
        while not self._cache.add(self.cache_key, values, age_seconds):
            if must_create:
                raise CreateError
            self._draw_key()
            self._is_sent = True

    def delete(self, session_key: str | None = None) -> None:
        """End the session, or that of `session_key`. Costs 1 request, none if never written."""
        key = self.session_key if session_key is None else session_key
        if key is None:
            return
        may_be_stored = key != self._unwritten_key or self._is_sent
        if key == self._unwritten_key:
            self._unwritten_key = None
        if may_be_stored:
            self._cache.end(self.cache_key_prefix + key, self.get_session_cookie_age())

    # The base's asynchronous forms call the synchronous ones in a thread. Those of the cache
    # engine repeat its look-then-write.
    acreate = SessionBase.acreate
    adelete = SessionBase.adelete
    aload = SessionBase.aload
    asave = SessionBase.asave

    def _is_unwritten(self) -> bool:
        return self.session_key is not None and self.session_key == self._unwritten_key

    def _draw_key(self) -> None:
        self._session_key = self._unwritten_key = self._get_new_session_key()
        self._is_sent = False

    def _get_new_session_key(self) -> str:
        # 165 random bits need no look whether they are free; `add` would refuse them.
        return get_random_string(KEY_LENGTH, VALID_KEY_CHARS)

    async def _aget_new_session_key(self) -> str:
        return self._get_new_session_key()

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None
