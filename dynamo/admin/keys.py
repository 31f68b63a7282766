"""Items in URLs: the key of an item as one text, in which no character has a meaning of a URL.

A key that is one text stands for itself; other keys are JSON, as guard items store their owner.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, TypeVar

from dynamo._internal.items import UNUSABLE
from dynamo.models import Model

M = TypeVar("M", bound=Model)

_UNSAFE, _QUOTED = re.compile("[\\x00-,./:-@\\[-`{-\\x7f]"), re.compile("_([0-9A-F]{2})")


def quote(key: Any) -> Any:
    """As contrib's, and all that is neither letter nor digit; browsers shorten a path with `..`."""
    if not isinstance(key, str):
        return key
    return _UNSAFE.sub(lambda match: f"_{ord(match[0]):02X}", key)


def unquote(text: str) -> str:
    """Undo `quote`."""
    return _QUOTED.sub(lambda match: chr(int(match[1], 16)), text)


def object_id(item: Model) -> str:
    """The key of an item as one text."""
    return item._owner()


def with_key(model: type[M], text: str) -> M | None:
    """An object that has the key `text` and nothing else; None if no item can have it."""
    with suppress(*UNUSABLE):
        key = model._key_of_owner(text) or {}
        values = {
            name: attribute.deserialize(attribute.get_value(key[stored_name]))
            for name, stored_name, attribute in model._key_attributes()
        }
        item = model(**values)
        return item if item._owner() == text else None
    return None
