"""How pages identify items: keys in URLs, names, and rows for items that cannot be read.

`red_2Fblue,7` is the key of the seat 7 of the hall red/blue: commas separate the parts of a key.
ASCII letters, digits, hyphens and characters beyond ASCII stand for themselves. Every other
character is written as `_2F`, so that none has a meaning in a URL.
"""

import re
from contextlib import suppress
from typing import Any, TypeVar

from django.utils.functional import lazystr

from dynamo.exceptions import DamagedItem
from dynamo.model.base import Model
from dynamo.wire.types import Item
from dynamo.wire.values import UNUSABLE, value_of

M = TypeVar("M", bound=Model)

_UNSAFE = re.compile("[\\x00-,./:-@\\[-`{-\\x7f]")
_QUOTED = re.compile("_([0-9A-F]{2})")


def id_of_key(model: type[Model], key: Item) -> str:
    """The id of the item whose key is in `key`, as stored."""
    return ",".join(
        _UNSAFE.sub(lambda match: f"_{ord(match[0]):02X}", text) for text in model.key_texts(key)
    )


def id_of(item: Model) -> str:
    """The key of an item as one text that can be part of a URL."""
    return id_of_key(type(item), item._key())


def with_id(model: type[M], text: str) -> M | None:
    """An object that has the key of the id `text` and nothing else; None if no item can have it."""
    with suppress(*UNUSABLE):
        parts = (
            _QUOTED.sub(lambda match: chr(int(match[1], 16)), part) for part in text.split(",")
        )
        key = model.key_of_texts(parts)
        values = {
            name: value_of(attribute, key[stored_name])
            for name, stored_name, attribute in model._key_attributes()
        }
        item = model(**values)
        item._addressed = key
        return item if model._is_key_of(key) and id_of(item) == text else None
    return None


def name_of(item: Model, *, is_new: bool = False) -> str:
    """The name of an item in pages and in the audit log.

    If only the key is known, it is the key.
    """
    # `__str__` may need values that are absent: an index may lack some, and a key lacks all.
    if item.stored or is_new:
        with suppress(AttributeError, TypeError):
            return str(item)
    return item._key_as_name()


def as_row(_stored: Item, error: DamagedItem) -> DamagedItem:
    """What lists have in place of an item that cannot be read: the error that says so."""
    return error


class TemplateItem:
    """An item with the `pk` that contrib.admin's templates put into URLs."""

    def __init__(self, item: Model) -> None:
        # `quote` leaves a lazy text as it is, so that it is not quoted twice.
        self._item, self.pk = item, lazystr(id_of(item))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._item, name)

    def __str__(self) -> str:
        return name_of(self._item)


def is_sensitive(model: type[Model], name: object) -> bool:
    """Whether the attribute is neither shown nor logged."""
    attribute = model.get_attributes().get(name) if isinstance(name, str) else None
    return bool(getattr(attribute, "sensitive", False))
