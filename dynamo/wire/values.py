"""Values and items in the form of DynamoDB: their stored form, sizes and digests."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from pynamodb.attributes import Attribute, JSONAttribute

from dynamo.wire.attributes import TextAttribute, number_text
from dynamo.wire.types import Item, Typed

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
PARTITION_KEY_MAX_BYTES = 2048
SORT_KEY_MAX_BYTES = 1024
ITEM_MAX_BYTES = 400 * 1024


T = TypeVar("T")

#: The errors of attributes for a value of another type.
UNUSABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def text_of(item: Item | None, name: str) -> str:
    """The text that is stored under `name`; empty if there is none."""
    return str((item or {}).get(name, {}).get("S", ""))


def as_written(attribute: Attribute, typed: Typed) -> Typed:
    """The stored value `typed` as `attribute` writes it. Other programs may write another text.

    Raises:
        ValueError: it is not a value of the attribute.
    """
    if type(attribute) is TextAttribute:
        return typed  # a text has only one form, unless a subclass changes it
    try:
        return typed_value(attribute, value_of(attribute, typed)) or {}
    except UNUSABLE as error:
        raise ValueError(f"The stored value of {attribute.attr_name} is not valid.") from error


def value_of(attribute: Attribute[T], typed: Typed) -> T:
    """The value of `attribute` that is stored as `typed`; one of `UNUSABLE` if there is none."""
    stored: Any = typed
    return attribute.deserialize(attribute.get_value(stored))


def typed_value(attribute: Attribute, value: object) -> Typed | None:
    """The `value` of `attribute` in its stored form; None if it is not stored.

    Raises:
        ValueError, TypeError: it cannot be stored. The message names the attribute.
    """
    try:
        # An empty set is not stored either, so its value is None.
        stored = None if value is None else attribute.serialize(value)
        if stored is None:
            return None
        if isinstance(stored, list) and isinstance(value, (str, bytes)):
            # PynamoDB would store each letter as an element.
            raise TypeError(f"Give a set or a list, not {type(value).__name__}.")
        if isinstance(attribute, JSONAttribute):
            # PynamoDB's attribute writes NaN, which is not JSON.
            json.loads(stored, parse_constant=number_text)
        return canonical(as_typed(attribute.attr_type, stored))
    except (TypeError, ValueError) as error:
        _check_named(str(attribute.attr_name), error)
        raise


def canonical_of(stored_name: str, typed: Typed) -> Typed:
    """The `canonical` value of an attribute. Raises ValueError, which names it."""
    try:
        return canonical(typed)
    except (TypeError, ValueError) as error:
        _check_named(stored_name, error)
        raise


def _check_named(stored_name: str, error: TypeError | ValueError) -> None:
    """Raise an error like `error` that names the attribute, unless its message does."""
    text = str(error)
    if isinstance(error, UnicodeEncodeError):
        text = f"This text has the lone surrogate {error.object[error.start]!a}."
    if not re.search(rf"\b{re.escape(stored_name)}\b", text):
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{stored_name}: {text}") from error


def as_typed(kind: str, value: object) -> Typed:
    """The `value` with its type, `S`, `N` or another."""
    typed: Any = {kind: value}
    return typed


def typed_number(value: int) -> Typed:
    return {"N": str(value)}


def kind_and_value(typed: Typed) -> tuple[str, Any]:
    """The type of a typed value, such as `S`, and the value without it."""
    ((kind, value),) = typed.items()
    return kind, value


def canonical(typed: Typed) -> Typed:
    """The one form of a typed value: `{"N": "1"}` for `{"N": "1.0"}`; sets are sorted.

    Raises:
        ValueError: DynamoDB cannot store a number or a text in it.
    """
    if "S" in typed:  # most are texts
        _encodable(typed["S"])
        return typed
    kind, value = kind_and_value(typed)
    match kind:
        case "N":
            value = number_text(value)
        case "NS":
            value = sorted(map(number_text, value))
        case "SS":
            value = sorted(map(_encodable, value))
        case "BS":
            value = sorted(value)
        case "L":
            value = list(map(canonical, value))
        case "M":
            value = {name: canonical(item) for name, item in value.items()}
    return as_typed(kind, value)


def _encodable(text: str) -> str:
    """Returns `text`.

    Raises TypeError for other values, UnicodeEncodeError for a lone surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"A text is str, not {type(text).__name__}.")
    if not text.isascii():
        text.encode()
    return text


def is_same_value(one: Typed | None, other: Typed | None) -> bool:
    """Whether two typed values, `{"N": "1.0"}`, are equal for DynamoDB. None is an absent value."""
    if one is None or other is None:
        return one == other
    return one == other or canonical(one) == canonical(other)


def digest_of(value: object) -> str:
    """The SHA-256 of the JSON of `value`, in hex. Its binary values are hexadecimal there."""
    text = json.dumps(value, default=as_hex, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def as_hex(value: bytes) -> str:
    """A binary value for JSON, which has none."""
    return bytes(value).hex()


def with_binary(item: Item, convert: Callable[[Any], Any]) -> Item:
    """The `item` or key, with binary values converted by `convert`."""
    return {
        name: {"B": convert(typed["B"])} if "B" in typed else typed for name, typed in item.items()
    }


def encoded(value: object) -> str:
    """The DynamoDB JSON of an item, or of a value with items, in one line; bytes are Base64."""
    return json.dumps(value, default=as_base64, ensure_ascii=False)


def decoded(text: str) -> Any:
    """The value of `text`, which `encoded` or another program wrote in DynamoDB's JSON."""
    return json.loads(text, object_hook=with_bytes)


def as_base64(value: bytes) -> str:
    """For `json.dumps`, as its `default`."""
    return base64.b64encode(value).decode()


def with_bytes(value: dict[str, object]) -> dict[str, object]:
    """For `json.loads`, as its `object_hook`: decodes what `as_base64` encoded."""
    # The value of an attribute that is called B is a dictionary, not a text.
    if isinstance(text := value.get("B"), str):
        return {"B": base64.b64decode(text, validate=True)}
    if isinstance(texts := value.get("BS"), list):
        return {"BS": [base64.b64decode(text, validate=True) for text in texts]}
    return value


def item_bytes(item: Item) -> int:
    """The size of a stored item, names included; never less than DynamoDB counts.

    Source: "DynamoDB item sizes and formats",
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Typed) -> int:
    kind, content = kind_and_value(value)
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return len(content) // 2 + 3
    if kind == "B":
        return len(content)
    # Lists and maps need three bytes, and one more for each element.
    if kind == "L":
        return 3 + sum(1 + _value_bytes(item) for item in content)
    if kind == "M":
        return 3 + len(content) + item_bytes(content)
    if kind in {"SS", "NS", "BS"}:
        return sum(_value_bytes(as_typed(kind[0], item)) for item in content)
    return 1


def fits_key(value: object, limit_bytes: int = PARTITION_KEY_MAX_BYTES) -> bool:
    """Whether a key can have this value: a valid number, or text or bytes of a valid length."""
    try:
        if isinstance(value, (Decimal, float, int)):
            number_text(value)
        content = value.encode() if isinstance(value, str) else value
    except ValueError:
        return False
    return value is not None and (not isinstance(content, bytes) or 0 < len(content) <= limit_bytes)
