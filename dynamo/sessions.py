"""Django's cache sessions, whose writes have conditions (`SESSION_ENGINE`).

Django's engine reads before it writes: whether a new key is free, and whether a session still
exists. Here, the condition of the write decides. Therefore, an ended session cannot be saved again,
even if another request saves it at the same time. A request costs only what it needs:

    a visitor without a session                nothing
    a page that reads the session              1 read, together with an item of its choice
    a changed session                          1 write more
    signing in (`cycle_key`, then values)      1 write; if there was a session, 1 read and
                                               1 write more
    signing out                                1 write

A tombstone replaces an ended session for as long as a new session lasts. A late copy of the request
that created the session cannot bring it back: while the tombstone exists, the copy is refused, and
after that, the stored value has expired.
"""

import re
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends import cache
from django.contrib.sessions.backends.base import (
    VALID_KEY_CHARS,
    CreateError,
    SessionBase,
    UpdateError,
)
from django.core.cache import caches
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import get_random_string

from dynamo.cache import DynamoCache
from dynamo.cache.items import CacheValueTooLarge
from dynamo.runtime.altering import AltersData
from dynamo.wire.types import Item

KEY_LENGTH = 32

# A key is at least as long as Django's shortest key, and at most `KEY_LENGTH`. For any other
# cookie, no request is sent.
_KEY = re.compile(rf"[{VALID_KEY_CHARS}]{{8,{KEY_LENGTH}}}")


class SessionStore(AltersData, cache.SessionStore):
    """A session in the cache `SESSION_CACHE_ALIAS`, which must be a `DynamoCache`.

    Raises (every method that reads or writes): see `client.sending`. If the cache cannot be
    reached, the session does not count as ended, because that would sign its user out.
    """

    _alters_data = (
        "create save delete flush clear clear_expired cycle_key set setdefault update pop "
        "set_expiry set_test_cookie delete_test_cookie"
    )

    _cache: DynamoCache
    _session_cache: dict[str, object]
    #: A method of Django that its stubs lack.
    _get_session: Callable[..., dict[str, object]]

    #: The last new key, until something is stored under it.
    _unwritten_key: str | None = None

    #: Whether a request with that key was sent, which may still arrive.
    _is_sent = False

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        alias = settings.SESSION_CACHE_ALIAS
        configured = caches[settings.SESSION_CACHE_ALIAS]
        if not isinstance(configured, DynamoCache):
            raise ImproperlyConfigured(
                f"SESSION_CACHE_ALIAS must name a dynamo.cache.DynamoCache, which {alias!r} is not."
            )
        self._cache = configured.sessions

    @property
    def is_read(self) -> bool:
        """Whether the values are known, so that reading them sends no request."""
        return hasattr(self, "_session_cache")

    def load(self) -> dict[str, Any]:
        """The stored values.

        If the session ended, they are empty and the key is removed. 1 request.
        """
        if self.session_key is None or self._is_unwritten():
            return {}
        return self._loaded(self._cache.get(self.cache_key))

    def load_with(self, table: str, item_key: Item) -> Item | None:
        """Read the session and, in the same request, an item of another table, which is returned.

        None if the item is absent. Also None, without a request, if the session is new or was read
        before.
        """
        if self.is_read or self.session_key is None or self._is_unwritten():
            return None
        stored, item = self._cache.get_with_item(self.cache_key, table, item_key)
        self._session_cache = self._loaded(stored)
        return item

    def _loaded(self, stored: dict[str, object] | None) -> dict[str, object]:
        if stored is None:
            self._session_key = None
        return stored or {}

    def create(self) -> None:
        """Store the values under a new key. Costs as much as `save` of a new session."""
        self._draw_key()
        self.save()
        self.modified = True

    def cycle_key(self) -> None:
        """Give the session a new key; `save` stores it. Ends the stored session: 1 request."""
        key, values = self.session_key, self._get_session()
        self._draw_key()
        self._session_cache = values
        self.modified = True
        if key:
            self.delete(key)

    def save(self, must_create: bool = False) -> None:
        """Store the values. A new session gets a free key; a stored session must still exist.

        Costs 1 request; for a new session see `DynamoCache.add`. A session that lasts longer than
        SESSION_COOKIE_AGE costs 1 more when it is created. With an expiry in the past the session
        ends.

        Raises:
            CreateError: with `must_create`, if the key is in use.
            UpdateError: the session was ended in the meantime.
            CacheValueTooLarge: the values are over 400 KB.
        """
        if self.session_key is None:
            self._draw_key()
        values = self._get_session(no_load=must_create)
        try:
            self._write(values, must_create=must_create)
        except CacheValueTooLarge as error:
            # The text of the error contains the key. A key in a log could be used to sign in.
            raise CacheValueTooLarge("a session", error.size_bytes) from None
        self._unwritten_key = None

    def _write(self, values: dict[str, object], *, must_create: bool) -> None:
        age_seconds = self.get_expiry_age()
        if must_create or self._is_unwritten():
            # The value that a late copy of this request stores must expire before the tombstone
            # does.
            first_seconds = min(age_seconds, self.get_session_cookie_age())
            self._create(values, first_seconds, must_create=must_create)
            if first_seconds == age_seconds:
                return
        if age_seconds <= 0:
            self.delete()
        elif not self._cache.set_if_present(self.cache_key, values, age_seconds):
            raise UpdateError

    def _create(self, values: dict[str, object], age_seconds: float, *, must_create: bool) -> None:
        while True:
            self._is_sent = True
            if self._cache.add(self.cache_key, values, age_seconds):
                return
            if must_create:
                raise CreateError
            self._draw_key()

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

    # These call the synchronous methods in a thread. The methods of Django's cache engine would
    # read before they write.
    acreate = SessionBase.acreate
    adelete = SessionBase.adelete
    aload = SessionBase.aload
    asave = SessionBase.asave

    async def acycle_key(self) -> None:
        await sync_to_async(self.cycle_key)()

    def _is_unwritten(self) -> bool:
        return self.session_key is not None and self.session_key == self._unwritten_key

    def _draw_key(self) -> None:
        self._session_key = self._unwritten_key = self._get_new_session_key()
        self._is_sent = False

    def _get_new_session_key(self) -> str:
        # A key of 165 random bits is not in use. If it were, `add` would refuse it.
        return get_random_string(KEY_LENGTH, VALID_KEY_CHARS)

    async def _aget_new_session_key(self) -> str:
        return self._get_new_session_key()

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None
