"""Django's cache sessions, written once and never brought back (`SESSION_ENGINE`).

Django's engine looks before it writes: whether a fresh key is free, and whether a session is still
there. Here the write itself decides, under a condition. So an ended session stays ended, whoever
else saves it at that moment, and a request costs what it must:

    a visitor without a session                nothing
    a page that reads the session              1 read
    a changed session                          1 write more
    signing in (`cycle_key`, then values)      1 write; where there was a session, 1 read and
                                               1 deletion more
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

from dynamo.cache import DynamoCache
from dynamo.cacheitems import CacheValueTooLarge

KEY_LENGTH = 32

# From Django's least length to ours. Whatever else a cookie holds is no key, and costs no request.
_KEY = re.compile(rf"[{VALID_KEY_CHARS}]{{8,{KEY_LENGTH}}}")


class SessionStore(cache.SessionStore):
    """A session in the cache `SESSION_CACHE_ALIAS`, which must be a `DynamoCache`.

    Raises (every method that reads or writes): see `dynamo.client.send`. A cache out of reach is
    not taken for a session that ended, which would sign its user out.
    """

    _cache: DynamoCache
    _session_cache: dict[str, Any]

    #: The key that was drawn last, until something is stored under it.
    _unwritten_key: str | None = None

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

        Costs 1 request; see `DynamoCache.add` for a new session.

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
        if not (must_create or self._is_unwritten()):
            if not self._cache.set_if_present(self.cache_key, values, age_seconds):
                raise UpdateError
            return
        while not self._cache.add(self.cache_key, values, age_seconds):
            if must_create:
                raise CreateError
            self._draw_key()

    def delete(self, session_key: str | None = None) -> None:
        """End the session, or that of `session_key`. Costs 1 request, none if never written."""
        key = self.session_key if session_key is None else session_key
        if key is None:
            return
        if key == self._unwritten_key:
            self._unwritten_key = None
        else:
            self._cache.delete(self.cache_key_prefix + key)

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

    def _get_new_session_key(self) -> str:
        # 165 random bits need no look whether they are free; `add` would refuse them.
        return get_random_string(KEY_LENGTH, VALID_KEY_CHARS)

    async def _aget_new_session_key(self) -> str:
        return self._get_new_session_key()

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None
