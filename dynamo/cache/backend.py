"""Django's cache: single, atomic writes.

A value that cannot be read counts as absent. For `add`, its key is in use until it expires.
"""

from __future__ import annotations

import hashlib
import operator
import re
import uuid
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.exceptions import ImproperlyConfigured

from dynamo.cache.items import (
    ABSENT,
    COUNTABLE,
    EXPIRED,
    FORMAT,
    PRESENT,
    UNREADABLE,
    CacheItem,
    decoded,
    encoded,
    ends_at,
    expiry,
    integer,
    is_live,
    now_value,
)
from dynamo.client.bulk import query_pages, read_batches, read_one_of_each, write_batches
from dynamo.client.sending import Outcome, read_item, send, write_one
from dynamo.runtime.altering import AltersData
from dynamo.runtime.threads import asynchronous
from dynamo.wire.types import Address, Item, Request, Typed
from dynamo.wire.updates import Update, conditional
from dynamo.wire.values import typed_number

_LOCATION = re.compile(r"[A-Za-z0-9_.-]{0,40}")
_OF_SESSIONS = "@sessions"
_OPTIONS = {"TIMEOUT", "KEY_PREFIX", "VERSION", "KEY_FUNCTION", "OPTIONS"}

#: The timeout in seconds; None for a value that does not expire.
Seconds = float | None

#: The version of a key; None for the version in the cache's options.
Version = int | None

_KEY_NAME = {"#key": "key"}
_VALUE_NAME = {"#value": "value"}
#: A refusal does not return the stored value, which may have 400 KB.
_QUIET = {"ReturnValuesOnConditionCheckFailure": "NONE"}


class DynamoCache(AltersData, BaseCache):
    """A cache that all processes share, whose writes are single and atomic.

    Caches with the same LOCATION, KEY_PREFIX and VERSION share their values. A read costs 1 read
    unit per 4 KB, a write 1 write unit per KB, each at least 1. With a timeout of None, a value
    never expires. With one of 0 or less, nothing is stored, and a stored value is deleted.

    Raises (every method): see `client.sending`; ImproperlyConfigured if the options are wrong.
    Unlike other backends, this one does not treat an unreachable cache as empty, because it stores
    sessions and limits.
    """

    _alters_data = (
        "set set_if_present set_many add touch get_or_set incr decr incr_version decr_version "
        "delete delete_if delete_many end clear"
    )

    def __init__(self, location: str, params: dict[str, object]) -> None:
        """Django creates it from an entry of CACHES.

        With wrong options, every call raises an error.
        """
        super().__init__(params)
        #: The error of wrong options, if any. It is not raised here, because Django's checks create
        #: each cache.
        self.problem = _problem_of(location, params)
        #: The prefix of each key of this cache, and the attribute `location` of its items.
        self._location = self._mark = location

    @cached_property
    def sessions(self) -> DynamoCache:
        """This cache for sessions, which `clear` of this cache does not delete."""
        sessions = copy(self)
        sessions._mark += _OF_SESSIONS
        return sessions

    def get(self, key: object, default: object | None = None, version: Version = None) -> Any:
        """The value of `key`, or `default`. Costs 1 request."""
        return _value_of(read_item(self._address(key, version)), default)

    def get_with_item(self, key: object, table: str, item_key: Item) -> tuple[Any, Item | None]:
        """The value of `key` (None without one), and the item of another table. Costs 1 request.

        Both are read consistently, but not at one instant.
        """
        own = self._address(key, None)
        read = read_one_of_each({own["TableName"]: own["Key"], table: item_key})
        return _value_of(read.get(own["TableName"]), None), read.get(table)

    def has_key(self, key: object, version: Version = None) -> bool:
        """Whether `key` has a value, which may be None. Costs 1 request."""
        return self.get(key, UNREADABLE, version) is not UNREADABLE

    def set(
        self,
        key: object,
        value: object,
        timeout: Seconds = DEFAULT_TIMEOUT,
        version: Version = None,
    ) -> None:
        """Store `value`, and replace any stored value. Costs 1 request.

        Raises:
            CacheValueTooLarge: it is over 400 KB.
        """
        expires_at = self._expires_at(timeout)
        if expires_at == EXPIRED:
            self.delete(key, version)
        else:
            item = self._new_item(key, version, value, expires_at)
            send("PutItem", {"TableName": CacheItem.table(), "Item": item})

    def set_if_present(
        self, key: object, value: object, timeout: Seconds = DEFAULT_TIMEOUT
    ) -> bool:
        """Store `value` if `key` has a value now; else return False. Costs 1 request.

        A deleted value does not come back, even if this write arrives late.

        Raises:
            CacheValueTooLarge: it is over 400 KB.
        """
        expires_at = self._expires_at(timeout)
        if expires_at == EXPIRED:
            return self.delete(key)
        item = self._new_item(key, None, value, expires_at)
        return bool(_put(item, PRESENT, _VALUE_NAME))

    def add(
        self,
        key: object,
        value: object,
        timeout: Seconds = DEFAULT_TIMEOUT,
        version: Version = None,
    ) -> bool:
        """Store `value` if `key` has no value that is valid. Of many callers, one gets True.

        Costs 1 request. If it was refused after a lost reply, 1 more read finds by the nonce
        whether the stored value is this call's.

        Raises:
            CacheValueTooLarge: it is over 400 KB.
        """
        expires_at = self._expires_at(timeout)
        if expires_at == EXPIRED:
            return not self.has_key(key, version)
        nonce: Typed = {"S": uuid.uuid4().hex}
        item = self._new_item(key, version, value, expires_at) | {"nonce": nonce}
        outcome = _put(item, ABSENT, _KEY_NAME)
        if not outcome.repeated:
            return bool(outcome)
        return outcome.stored is not None and outcome.stored.get("nonce") == nonce

    def touch(
        self, key: object, timeout: Seconds = DEFAULT_TIMEOUT, version: Version = None
    ) -> bool:
        """Set the timeout of `key` again, from now; False if it has no value. 1 request."""
        expires_at = self._expires_at(timeout)
        if expires_at == EXPIRED:
            return self.delete(key, version)
        update = Update({"expires": None, "expiresAt": None, **expiry(expires_at)})
        address = {**self._address(key, version), **_QUIET}
        request = update.request(address, PRESENT, names=_VALUE_NAME, values=now_value())
        return bool(write_one("UpdateItem", request))

    def delete(self, key: object, version: Version = None) -> bool:
        """Delete `key`. Returns whether it had a value. Costs 1 request.

        After a lost reply the answer may be False although it was this call that deleted it.
        """
        request = self._address(key, version) | {"ReturnValues": "ALL_OLD"}
        return is_live(send("DeleteItem", request).get("Attributes") or None)

    def delete_if(self, key: object, value: object) -> bool:
        """Delete `key` if its value is `value`, a text or a number. Returns whether it was.

        Costs 1 request. After a lost reply the answer may be False although it was this call that
        deleted it.
        """
        address = self._address(key, None)
        wanted = encoded(key, address["Key"]["key"]["S"], value)
        request = conditional(
            {**address, **_QUIET}, "#value = :value", names=_VALUE_NAME, values={":value": wanted}
        )
        return bool(write_one("DeleteItem", request))

    def end(self, key: object, seconds: float) -> None:
        """Delete the value of `key`, and prevent new ones for `seconds`. Costs 1 request.

        A tombstone replaces the value. `add`, `set_if_present`, `touch` and `incr` treat it as a
        key that has no value and is in use, even if their request was sent before this one and
        arrives after it. `set` and `delete` replace and remove it.
        """
        tombstone = self._empty_item(key, None, self._expires_at(seconds))
        send("PutItem", {"TableName": CacheItem.table(), "Item": tombstone})

    def incr(self, key: object, delta: int = 1, version: Version = None) -> int:
        """Add `delta` to the integer of `key` and return the sum. Keeps the expiry. 1 request.

        The sum is exact even if many callers count at the same time.

        Raises:
            ValueError: `key` has no value, or one that is not an integer of up to 38 digits.
            TypeError: `delta` is not an integer.
            Unavailable: also if the reply was lost (`maybe_written`). The request is not repeated,
                because it may have counted.
        """
        update = Update(add={"value": typed_number(operator.index(delta))})
        address = {**self._address(key, version), **_QUIET, "ReturnValues": "UPDATED_NEW"}
        operands = now_value() | {":number": {"S": "N"}}
        request = update.request(address, COUNTABLE, names=_VALUE_NAME, values=operands)
        outcome = write_one("UpdateItem", request, repeatable=False)
        if outcome.item is None:
            text = f"The cache has no integer under the key {key!r}."
            raise ValueError(text) from outcome.refused
        return integer(outcome.item["value"])

    def get_many(self, keys: Iterable[object], version: Version = None) -> dict[object, object]:
        """The values of those of `keys` that have one. Costs 1 request per 100 keys."""
        asked = {self._stored_key(key, version): key for key in keys}
        stored_keys = [{"key": {"S": stored_key}} for stored_key in asked]
        values = {
            asked[item["key"]["S"]]: _value_of(item, UNREADABLE)
            for item in read_batches(CacheItem.table(), stored_keys)
        }
        return {key: value for key, value in values.items() if value is not UNREADABLE}

    def set_many(
        self,
        data: Mapping[str, object],
        timeout: Seconds = DEFAULT_TIMEOUT,
        version: Version = None,
    ) -> list[object]:
        """Store every value of `data`, not all or none. Costs 1 request per 25.

        Returns an empty list: a value that could not be stored is an error.

        Raises:
            CacheValueTooLarge: one is over 400 KB; nothing was stored.
        """
        expires_at = self._expires_at(timeout)
        if expires_at == EXPIRED:
            self.delete_many(data, version)
            return []
        items = [self._new_item(key, version, value, expires_at) for key, value in data.items()]
        # 1 and "1" are the same stored key, and a batch may name a key only once.
        puts = {item["key"]["S"]: {"PutRequest": {"Item": item}} for item in items}
        write_batches(CacheItem.table(), list(puts.values()))
        return []

    def delete_many(self, keys: Iterable[object], version: Version = None) -> None:
        """Delete `keys`, with or without a value. Costs 1 request per 25."""
        _delete_all({self._stored_key(key, version) for key in keys})

    def clear(self) -> None:
        """Delete all values of this LOCATION, with any KEY_PREFIX and VERSION, except sessions.

        Costs a Scan of the whole table (1 read unit per 4 KB of all items) and the deletion of each
        value. No page does this. A value that is set in the meantime may be deleted or kept.
        """
        self._refuse_problem()
        request: Request = {
            "TableName": CacheItem.table(),
            "ProjectionExpression": "#key",
            "FilterExpression": "attribute_not_exists(#location)",
            "ExpressionAttributeNames": _KEY_NAME | {"#location": "location"},
        }
        if self._mark:
            request["FilterExpression"] = "#location = :location"
            request["ExpressionAttributeValues"] = {":location": {"S": self._mark}}
        for items, _has_more in query_pages(request, "Scan"):
            _delete_all(item["key"]["S"] for item in items)

    # Django's asynchronous variants send several requests (`aincr` reads and then writes). These
    # methods send the same single requests as above.
    aincr: Any = asynchronous(incr)
    aget_many: Any = asynchronous(get_many)
    aset_many: Any = asynchronous(set_many)
    adelete_many: Any = asynchronous(delete_many)

    def _refuse_problem(self) -> None:
        if self.problem:
            raise ImproperlyConfigured(f"In CACHES: {self.problem}")

    def _stored_key(self, key: object, version: Version) -> str:
        self._refuse_problem()
        # A location contains neither @ nor |.
        place = f"@{self._location}" if self._location else ""
        named = f"{FORMAT}{place}|{self.make_and_validate_key(key, version)}"
        return hashlib.sha256(named.encode()).hexdigest()

    def _expires_at(self, timeout: Seconds) -> int | None:
        """The epoch milliseconds at which `timeout` ends; None for never, or `EXPIRED`."""
        return ends_at(self.default_timeout if timeout == DEFAULT_TIMEOUT else timeout)

    def _new_item(
        self, key: object, version: Version, value: object, expires_at: int | None
    ) -> Item:
        item = self._empty_item(key, version, expires_at)
        return item | {"value": encoded(key, item["key"]["S"], value)}

    def _empty_item(self, key: object, version: Version, expires_at: int | None) -> Item:
        item: Item = {"key": {"S": self._stored_key(key, version)}, **expiry(expires_at)}
        if self._mark:
            item["location"] = {"S": self._mark}
        return item

    def _address(self, key: object, version: Version) -> Address:
        stored_key = self._stored_key(key, version)
        return {"TableName": CacheItem.table(), "Key": {"key": {"S": stored_key}}}


def _problem_of(location: object, options: Mapping[str, Any]) -> str | None:
    if not (isinstance(location, str) and _LOCATION.fullmatch(location)):
        return (
            "LOCATION must be at most 40 letters, digits and _.- (caches with the same one share "
            f"their values), not {location!r}."
        )
    if unknown := sorted({*options, *(options.get("OPTIONS") or {})} - _OPTIONS):
        return (
            f"{', '.join(unknown)} would do nothing: a DynamoCache takes LOCATION, TIMEOUT, "
            "KEY_PREFIX, VERSION and KEY_FUNCTION, and keeps values until they expire."
        )
    timeout = options.get("TIMEOUT")
    if timeout is not None and not str(timeout).lstrip("-").isdecimal():
        return f"TIMEOUT must be a whole number of seconds, or None, not {timeout!r}."
    return None


def _put(item: Item, condition: str, names: dict[str, str]) -> Outcome:
    put = {"TableName": CacheItem.table(), "Key": {"key": item["key"]}, "Item": item, **_QUIET}
    request = conditional(put, condition, names=names, values=now_value())
    return write_one("PutItem", request)


def _delete_all(stored_keys: Iterable[str]) -> None:
    deletions = [{"DeleteRequest": {"Key": {"key": {"S": key}}}} for key in stored_keys]
    write_batches(CacheItem.table(), deletions)


def _value_of(item: Item | None, default: object) -> object:
    """The value of an item; `default` if it has none, has expired or cannot be read."""
    value = decoded(item) if is_live(item) else UNREADABLE
    return default if value is UNREADABLE else value
