"""The items of the cache: which attributes they have, and when they have ended.

    key (S)     SHA-256, in hex, of `FORMAT`, LOCATION and Django's key: a leaked table opens no
                session
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
"""

import math
import time
from typing import TypeGuard

from dynamo.client.plain import PlainModel
from dynamo.wire.attributes import IntegerAttribute, TextAttribute
from dynamo.wire.types import Item
from dynamo.wire.values import typed_number

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
