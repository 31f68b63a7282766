"""Values of the cache as they are stored: an integer, JSON, or a signed pickle.

Unpickling runs code, and other programs may be able to write to the table. Therefore, a pickle is
read only with a valid HMAC of the item's key and the pickle, made with SECRET_KEY or one of
SECRET_KEY_FALLBACKS.
"""

import hmac
import json
import pickle
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from dynamo.exceptions import DynamoError
from dynamo.wire.types import Item, Typed
from dynamo.wire.values import ITEM_MAX_BYTES, typed_number

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
