"""The table `cache`, and what stands in its items.

    key (S)     SHA-256, in hex, of Django's key: a leaked table opens no session
    value       an integer of up to 38 digits (N), which `incr` can count up; else a pickle (B)
    expiresAt   when the value ends, in epoch milliseconds; absent where it never does
    expires     the same in whole seconds, rounded up, for DynamoDB's TTL to sweep by
    nonce       drawn by each `add`, so that it knows its own item when the reply was lost

DynamoDB deletes expired items hours or days late, so everybody compares `expiresAt`, with the clock
of the process that asks.
"""

from __future__ import annotations

import math
import pickle
import time
from decimal import Decimal
from typing import Any, TypeGuard

from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.exceptions import DynamoError
from dynamo.models import Item, Model

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
ITEM_MAX_BYTES = 400 * 1024
NUMBER_MAX_DIGITS = 38

# Besides the value an item has 29 bytes of names, 64 of key, 32 of nonce and two numbers of at
# most 21 bytes each: this leaves some room.
VALUE_MAX_BYTES = ITEM_MAX_BYTES - 256


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
    """Whether it is there and has not expired."""
    if item is None:
        return False
    return "expiresAt" not in item or int(item["expiresAt"]["N"]) > now_ms()


def encoded(key: Any, value: Any) -> dict[str, Any]:
    """`value` as on the wire; `key` is named where it is refused.

    Raises:
        CacheValueTooLarge: it does not fit into an item.
    """
    # A bool is an int to Python, but has to come back as a bool.
    if type(value) is int and abs(value) < 10**NUMBER_MAX_DIGITS:
        return number(value)
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    if len(pickled) > VALUE_MAX_BYTES:
        raise CacheValueTooLarge(str(key), len(pickled))
    return {"B": pickled}


def decoded(item: Item) -> Any:
    """The value of an item."""
    value = item["value"]
    if "N" in value:
        # By way of Decimal, as an engine may write a large number as 1E+37.
        return int(Decimal(value["N"]))
    return pickle.loads(value["B"])  # noqa: S301 - see `dynamo.cache`
