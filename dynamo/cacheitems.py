"""The table `cache`, and what stands in its items.

    key (S)     SHA-256, in hex, of `FORMAT` and Django's key: a leaked table opens no session
    value       an integer of up to 38 digits (N), which `incr` can count up; JSON (S) where that
                gives back the same value; else a signature and a pickle (B); absent from a
                tombstone (`DynamoCache.end`)
    expiresAt   when the value ends, in epoch milliseconds; absent where it never does
    expires     the same in whole seconds, rounded up, for DynamoDB's TTL to sweep by
    nonce       drawn by each `add`, so that it knows its own item when the reply was lost

DynamoDB deletes expired items hours or days late, so everybody compares `expiresAt`, with the clock
of the process that asks.

Unpickling runs code, and the table may have other writers than the site. So a pickle counts only
with an HMAC over the item's key and the pickle, made with SECRET_KEY or one of
SECRET_KEY_FALLBACKS. A value that cannot be read is a miss; `add` still finds the key in use until
the value expires.
"""

from __future__ import annotations

import hmac
import json
import math
import pickle
import time
from decimal import Decimal
from typing import Any, TypeGuard

from django.conf import settings
from django.utils.crypto import salted_hmac
from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.exceptions import DynamoError
from dynamo.models import Item, Model

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
ITEM_MAX_BYTES = 400 * 1024
NUMBER_MAX_DIGITS = 38

# Besides the value an item has 29 bytes of names, 64 of key, 32 of nonce, 32 of signature and two
# numbers of at most 21 bytes each: this leaves some room.
VALUE_MAX_BYTES = ITEM_MAX_BYTES - 256

#: Raised with every change of what stands in an item. It is part of each key, so processes of two
#: versions can share a table during a deployment: neither reads the values of the other.
FORMAT = 2

SIGNATURE_BYTES = 32
_SIGNATURE_SALT = "dynamo.cacheitems.pickle"

#: A value that is nested deeper is pickled: reading it as JSON could exhaust the stack.
JSON_MAX_DEPTH = 100
_JSON_SCALARS = frozenset({str, int, float, bool, type(None)})

#: What `decoded` returns for a value that cannot be read.
UNREADABLE = object()


class CacheValueTooLarge(DynamoError, ValueError):
    """A value does not fit into an item of DynamoDB, which holds 400 KB. Nothing was sent."""

    def __init__(self, key: str, size_bytes: int) -> None:
        super().__init__(key, size_bytes)
        self.key = key
        self.size_bytes = size_bytes

    def __str__(self) -> str:
        return (
            f"The cache cannot hold the value of {self.key!r}: pickled it has {self.size_bytes:,} "
            f"bytes, and DynamoDB stores at most {VALUE_MAX_BYTES:,}."
        )


class CacheItem(Model):
    """What the table `cache` is made from; `DynamoCache` builds the items themselves.

    `value` is not declared: it is of two types.
    """

    class Meta:
        table_name = "cache"

    ttl_attribute = "expires"

    key = UnicodeAttribute(hash_key=True)
    expires = IntegerAttribute(null=True)
    expires_at = IntegerAttribute(attr_name="expiresAt", null=True)
    nonce = UnicodeAttribute(null=True)


def now_ms() -> int:
    """The clock that expiry is compared with, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def number(value: int) -> dict[str, str]:
    """An integer as on the wire."""
    return {"N": str(value)}


def expiry_of(expires_at: int | None) -> Item:
    """The attributes of a value that ends at these epoch milliseconds; none where it never does."""
    if expires_at is None:
        return {}
    return {"expires": number(math.ceil(expires_at / 1000)), "expiresAt": number(expires_at)}


def is_live(item: Item | None) -> TypeGuard[Item]:
    """Whether it is there, is not a tombstone, and has not expired."""
    if item is None or "value" not in item:
        return False
    return "expiresAt" not in item or int(item["expiresAt"]["N"]) > now_ms()


def encoded(key: Any, stored_key: str, value: Any) -> dict[str, Any]:
    """`value` as on the wire, for the item `stored_key`; an error names it by `key`.

    Raises:
        CacheValueTooLarge: it does not fit into an item.
    """
    # A bool is an int to Python, but has to come back as a bool.
    if type(value) is int and abs(value) < 10**NUMBER_MAX_DIGITS:
        return number(value)
    if (text := _as_json(value)) is not None:
        return {"S": text}
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    if len(pickled) > VALUE_MAX_BYTES:
        raise CacheValueTooLarge(str(key), len(pickled))
    return {"B": _signature(stored_key, pickled, settings.SECRET_KEY) + pickled}


def _as_json(value: Any) -> str | None:
    """`value` as JSON; None where it would come back as something else, or does not fit."""
    if not _survives_json(value):
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size_bytes = len(text.encode())
    except ValueError:
        # Infinity, an integer of thousands of digits, or a text that is not Unicode.
        return None
    # Escapes can make it longer than a pickle that fits.
    return text if size_bytes <= VALUE_MAX_BYTES else None


def _survives_json(value: Any) -> bool:
    """Whether JSON keeps every type in `value`, and which of its parts are the same object."""
    seen: set[int] = set()
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        kind = type(each)
        if kind in _JSON_SCALARS:
            continue
        if kind not in (dict, list) or id(each) in seen or depth == JSON_MAX_DEPTH:
            return False
        seen.add(id(each))
        if kind is dict:
            if any(type(name) is not str for name in each):
                return False
            each = each.values()
        waiting += [(part, depth + 1) for part in each]
    return True


def _signature(stored_key: str, pickled: bytes, secret: str | bytes) -> bytes:
    # The key has a fixed length, so where it ends is known.
    signed = stored_key.encode() + pickled
    return salted_hmac(_SIGNATURE_SALT, signed, secret=secret, algorithm="sha256").digest()


def decoded(item: Item) -> Any:
    """The value of an item that is live, or `UNREADABLE`."""
    value = item["value"]
    if "N" in value:
        return integer(value)
    if "S" in value:
        try:
            return json.loads(value["S"])
        except (ValueError, RecursionError):
            return UNREADABLE
    blob = bytes(value.get("B", b""))
    signature, pickled = blob[:SIGNATURE_BYTES], blob[SIGNATURE_BYTES:]
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        if hmac.compare_digest(signature, _signature(item["key"]["S"], pickled, secret)):
            try:
                return pickle.loads(pickled)  # noqa: S301 - we signed it
            except (AttributeError, ImportError, pickle.UnpicklingError):
                # Another version of the code stored an object of a class that this one lacks.
                return UNREADABLE
    return UNREADABLE


def integer(value: dict[str, Any]) -> int:
    """An integer from the wire."""
    # By way of Decimal, as an engine may write a large number as 1E+37.
    return int(Decimal(value["N"]))
