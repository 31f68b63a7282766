"""Items in URLs: `red_2Fblue,7` is the key of the seat 7 of the hall red/blue.

The parts of a key are separated by commas. All that is neither an ASCII letter or digit, a hyphen
nor a letter of another script is written as `_2F`, so that no character has a meaning in a URL.
"""

from __future__ import annotations

import re
from contextlib import suppress
from decimal import Decimal
from typing import Any, TypeVar

from dynamo._internal.items import UNUSABLE, Item
from dynamo.attributes import number_text
from dynamo.models import Model

M = TypeVar("M", bound=Model)

_UNSAFE, _QUOTED = re.compile("[\\x00-,./:-@\\[-`{-\\x7f]"), re.compile("_([0-9A-F]{2})")


def _quoted(text: str) -> str:
    return _UNSAFE.sub(lambda match: f"_{ord(match[0]):02X}", text)


def id_of_key(model: type[Model], key: Item) -> str:
    """The id of the item whose key is in `key`, as stored."""
    parts = []
    for name in model.key_attribute_names():
        ((kind, value),) = key[name].items()
        if kind == "N":
            value = number_text(Decimal(value))
        parts.append(_quoted(bytes(value).hex() if kind == "B" else value))
    return ",".join(parts)


def id_of(item: Model) -> str:
    """The key of an item as one text, fit for a URL."""
    return id_of_key(type(item), item._key())


def with_id(model: type[M], text: str) -> M | None:
    """An object that has the key of the id `text` and nothing else; None if no item can have it."""
    with suppress(*UNUSABLE):
        values = {}
        attributes = model._key_attributes()
        for (name, _stored_name, attribute), part in zip(attributes, text.split(","), strict=True):
            value: Any = _QUOTED.sub(lambda match: chr(int(match[1], 16)), part)
            if attribute.attr_type == "B":
                value = bytes.fromhex(value)
            typed = {attribute.attr_type: value}
            values[name] = attribute.deserialize(attribute.get_value(typed))
        item = model(**values)
        return item if model._is_key_of(item._key()) and id_of(item) == text else None
    return None
