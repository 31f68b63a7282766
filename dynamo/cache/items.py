"""The items of the cache: their attributes, how a value is stored, and when it has ended.

    key (S)     SHA-256, in hex, of `FORMAT`, LOCATION and Django's key: a leaked table contains no
                session keys
    value       an integer of up to 38 digits (N), which `incr` can count up; JSON (S) if that
                gives back the same value; else a signature and a pickle (B); absent from a
                tombstone (`DynamoCache.end`)
    expiresAt   when the value ends, in epoch milliseconds; absent if it never does
    expires     the same in whole seconds, rounded up, for DynamoDB's TTL
    nonce       drawn by each `add`, so that it recognizes its own item after a lost reply
    location    LOCATION, and of a session `@sessions` after it, so that `clear` finds its own
                items; absent if that is empty

DynamoDB deletes expired items hours or days late, so every reader compares `expiresAt` with its own
clock.

Unpickling runs code, and other programs may be able to write to the table. Therefore, a pickle is
read only with a valid HMAC of the item's key and the pickle, made with SECRET_KEY or one of
SECRET_KEY_FALLBACKS.
"""

import hmac
import json
import math
import pickle
import time
from decimal import Decimal
from typing import Any, TypeGuard

from django.conf import settings
from django.utils.crypto import salted_hmac

from dynamo.client.plain import PlainModel
from dynamo.exceptions import DynamoError
from dynamo.wire.attributes import IntegerAttribute, TextAttribute
from dynamo.wire.types import Item, Typed
from dynamo.wire.values import ITEM_MAX_BYTES, typed_number

#: The format of an item, which is increased with every change of it. It is part of each key.
#: Therefore, processes of two versions can share a table during a deployment, and neither reads the
#: values of the other.
FORMAT = 2

# Conditions of a write, with the operand `now_value`.
_LIVE = "(attribute_not_exists(expiresAt) OR expiresAt > :now)"
PRESENT = f"attribute_exists(#value) AND {_LIVE}"
COUNTABLE = f"attribute_type(#value, :number) AND {_LIVE}"
ABSENT = "attribute_not_exists(#key) OR expiresAt <= :now"

# An expiry that is always in the past.
EXPIRED = 0

# Besides the value an item has 37 bytes of names, 64 of key, 49 of location, 32 of nonce, 32 of
# signature and two numbers of at most 21 bytes each.
VALUE_MAX_BYTES = ITEM_MAX_BYTES - 256
NUMBER_MAX_DIGITS = 38

SIGNATURE_BYTES = 32
# This is part of stored signatures. Therefore, it still has the name of a former module.
_SIGNATURE_SALT = "dynamo.cacheitems.pickle"

#: A value that is nested deeper is pickled: reading it as JSON could exhaust the stack.
JSON_MAX_DEPTH = 100
_JSON_SCALARS = frozenset({str, int, float, bool, type(None)})

#: Represents a value that cannot be read.
UNREADABLE = object()


class CacheItem(PlainModel):
    """Declares the table `cache`; `DynamoCache` builds the items itself.

    `value` is not declared, because it has several types.
    """

    class Meta:
        table_name = "cache"

    ttl_attribute = "expires"
    _not_dumped = "A cache begins empty."

    key = TextAttribute(hash_key=True)
    expires = IntegerAttribute(null=True)
    expires_at = IntegerAttribute(attr_name="expiresAt", null=True)
    nonce = TextAttribute(null=True)
    location = TextAttribute(null=True)


def now_ms() -> int:
    """The time that expiry is compared with, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def now_value() -> Item:
    """The current time, as the value of `:now` in the conditions of this module."""
    return {":now": typed_number(now_ms())}


def ends_at(seconds: float | None) -> int | None:
    """When a value expires that is kept for `seconds`; None for never, or `EXPIRED`."""
    if seconds is None:
        return None
    return now_ms() + math.ceil(seconds * 1000) if seconds > 0 else EXPIRED


def expiry(expires_at: int | None) -> Item:
    """The attributes of a value that expires at these epoch milliseconds; none for never."""
    if expires_at is None:
        return {}
    return {
        "expires": typed_number(math.ceil(expires_at / 1000)),
        "expiresAt": typed_number(expires_at),
    }


def is_live(item: Item | None) -> TypeGuard[Item]:
    """Whether the item exists, is not a tombstone, and has not expired."""
    if item is None or "value" not in item:
        return False
    return "expiresAt" not in item or int(item["expiresAt"]["N"]) > now_ms()


# Values -------------------------------------------------------------------------------------------


class CacheValueTooLarge(DynamoError, ValueError):
    """A value does not fit into an item of DynamoDB, which holds 400 KB. Nothing was sent."""

    key: str
    size_bytes: int

    text = (
        "The cache cannot hold the value of {key!r}: pickled it has {size_bytes:,} bytes, and "
        f"DynamoDB stores at most {VALUE_MAX_BYTES:,}."
    )


def integer(value: Typed) -> int:
    # It is read as a Decimal, because an engine may write a large number as 1E+37.
    return int(Decimal(value["N"]))


def encoded(key: object, stored_key: str, value: object) -> Typed:
    """`value` as stored in the item `stored_key`; an error names it by `key`."""
    # A bool is an int in Python, but has to come back as a bool.
    if type(value) is int and abs(value) < 10**NUMBER_MAX_DIGITS:
        return typed_number(value)
    if (text := _as_json(value)) is not None:
        return {"S": text}
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    if len(pickled) > VALUE_MAX_BYTES:
        raise CacheValueTooLarge(str(key), len(pickled))
    return {"B": _signature(stored_key, pickled, settings.SECRET_KEY) + pickled}


def decoded(item: Item) -> Any:
    """The value of a live item, or `UNREADABLE`."""
    value = item["value"]
    if "N" in value:
        return integer(value)
    if "S" in value:
        try:
            return json.loads(value["S"])
        except (ValueError, RecursionError):
            return UNREADABLE
    blob = bytes(value.get("B", b""))
    signature = blob[:SIGNATURE_BYTES]
    pickled = blob[SIGNATURE_BYTES:]
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        if hmac.compare_digest(signature, _signature(item["key"]["S"], pickled, secret)):
            try:
                return pickle.loads(pickled)  # noqa: S301 - signed by this site
            except (AttributeError, ImportError, pickle.UnpicklingError):
                # Another version of the code stored an object of a class that this version lacks.
                return UNREADABLE
    return UNREADABLE


def _signature(stored_key: str, pickled: bytes, secret: str | bytes) -> bytes:
    # The key has a fixed length, so its end is known.
    signed = stored_key.encode() + pickled
    return salted_hmac(_SIGNATURE_SALT, signed, secret=secret, algorithm="sha256").digest()


def _as_json(value: object) -> str | None:
    """`value` as JSON; None if that would give back something else, or does not fit."""
    if not _survives_json(value):
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size_bytes = len(text.encode())
    except ValueError:
        # Infinity, an integer of thousands of digits, or text that is not valid Unicode.
        return None
    # With escapes, JSON can be too long although a pickle fits.
    return text if size_bytes <= VALUE_MAX_BYTES else None


def _survives_json(value: Any) -> bool:
    """Whether JSON keeps all types in `value`, and the identity of its parts."""
    seen: set[int] = set()
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        kind = type(part)
        if kind in _JSON_SCALARS:
            continue
        if kind not in (dict, list) or id(part) in seen or depth == JSON_MAX_DEPTH:
            return False
        seen.add(id(part))
        if kind is dict:
            if any(type(name) is not str for name in part):
                return False
            part = part.values()
        waiting += [(inner, depth + 1) for inner in part]
    return True
