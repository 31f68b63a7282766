"""`Unique`: the declaration that no two items of a model have the same value.

    class Member(Model):
        email = TextAttribute()
        club = TextAttribute()
        card = TextAttribute(null=True)

        unique_email = Unique("email", normalize=casefolded)
        unique_card = Unique("club", "card")  # together: unique within a club

Each value has one guard item (`dynamo.unique.guarding`), whose key is made here:

    email#ann@example.org                      a single attribute
    club,card#["chess","A-18"]                 several: their texts as JSON

A guard item of a `searchable` one also stores what the index `SEARCH_INDEX` is sorted by:

    searchPrefix (S)                           email#an: the prefix and the first two letters
    searchValue (S)                            ann@example.org

The text of a number is DynamoDB's (`1.5` for 1.50), that of a binary value is hexadecimal. So equal
values have equal keys, and different values different ones.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from pynamodb.attributes import Attribute, JSONAttribute

from dynamo._internal.items import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, Item
from dynamo.attributes import JSONAttribute as OwnJSONAttribute, number_text

Normalize = Callable[[str], str]
"""Returns the form in which two texts are compared. Raises ValueError if there is none."""

SEPARATOR = "#"
#: Guard items of request ids have keys that begin with this name.
REQUEST_ID = "requestId"
#: The stored name of what tells two requests with one id apart.
REQUEST_DIGEST = "requestDigest"
#: The index of the guard items that a search by the first letters reads, and its key.
SEARCH_INDEX = "unique-search"
SEARCH_PREFIX, SEARCH_VALUE = "searchPrefix", "searchValue"
#: A search needs so many letters. All values that begin with the same ones are one partition.
SEARCH_LETTERS = 2


def casefolded(text: str) -> str:
    """The text without differences of case, and of how letters with accents are composed.

    Source: The Unicode Standard, section 3.13, "Default Caseless Matching".
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


class Unique:
    """Declares that the attributes `names`, alone or together, are unique.

    `normalize` makes texts comparable; without it they are compared as they are. An item without a
    value of one of the attributes, or with an empty one, is not compared. 0 is a value.

    `searchable` lets `Model.search` find items by the first letters of one text. Each write of a
    guard item then costs 1 write unit more. `normalize` is applied to these letters as well.
    """

    def __init__(
        self, *names: str, normalize: Normalize | None = None, searchable: bool = False
    ) -> None:
        are_names = all(isinstance(each, str) for each in names)
        if not (names and are_names and len({*names}) == len(names)):
            raise TypeError("Unique takes the names of different attributes.")
        self.names = names
        self.normalize = normalize
        self.searchable = searchable


@dataclass(frozen=True)
class UniqueKey:
    """A `Unique` of one model: makes the keys of its guard items."""

    names: tuple[str, ...]
    normalize: Normalize | None
    attributes: tuple[Attribute[Any], ...]
    searchable: bool = False

    @cached_property
    def stored_names(self) -> tuple[str, ...]:
        return tuple(str(each.attr_name) for each in self.attributes)

    @cached_property
    def prefix(self) -> str:
        """How the keys of its guard items begin."""
        return ",".join(self.stored_names) + SEPARATOR

    @classmethod
    def of(cls, unique: Unique, attributes: Mapping[str, Attribute[Any]]) -> UniqueKey:
        """The declaration `unique` of a model that has `attributes`.

        Raises:
            TypeError: an attribute does not exist, or its values cannot be unique.
        """
        for name in unique.names:
            attribute = attributes.get(name)
            if attribute is None:
                raise TypeError(f"Unique({name!r}): the model has no attribute of this name.")
            is_json = isinstance(attribute, (JSONAttribute, OwnJSONAttribute))
            if attribute.attr_type not in {"S", "N", "B"} or is_json:
                kind = type(attribute).__name__
                raise TypeError(f"Unique({name!r}): values of a {kind} cannot be unique.")
            stored_name = str(attribute.attr_name)
            if {SEPARATOR, ","} & set(stored_name) or stored_name == REQUEST_ID:
                raise TypeError(f"Unique({name!r}): its stored name cannot be {stored_name!r}.")
        found = tuple(attributes[name] for name in unique.names)
        if unique.normalize and not any(each.attr_type == "S" for each in found):
            raise TypeError(f"Unique({', '.join(unique.names)}): normalize takes texts only.")
        if unique.searchable and [each.attr_type for each in found] != ["S"]:
            raise TypeError(f"Unique({', '.join(unique.names)}): searchable takes a single text.")
        return cls(unique.names, unique.normalize, found, unique.searchable)

    def wire(self, values: Mapping[str, Any]) -> Item:
        """The `values`, by attribute name, as stored; None and absent ones are left out."""
        return {
            str(each.attr_name): {each.attr_type: each.serialize(values[name])}
            for name, each in zip(self.names, self.attributes, strict=True)
            if values.get(name) is not None
        }

    def values(self, item: Item) -> dict[str, Any]:
        """The values, by attribute name, that `item` stores; it has all of them."""
        return {
            name: each.deserialize(each.get_value(item[str(each.attr_name)]))
            for name, each in zip(self.names, self.attributes, strict=True)
        }

    def key(self, item: Item) -> str | None:
        """The key of the guard item that `item`, as stored, must have; None if it needs none.

        Raises:
            ValueError: a value cannot be normalized, does not have its attribute's type, or is too
                long for a key.
        """
        texts = []
        for stored_name, attribute in zip(self.stored_names, self.attributes, strict=True):
            typed = item.get(stored_name)
            if typed is None or "NULL" in typed:
                return None
            if attribute.attr_type not in typed:
                raise ValueError(f"The stored value of {stored_name} is not valid.")
            value = typed[attribute.attr_type]
            if value in ("", b""):
                return None
            texts.append(self._text(attribute, value))
        value = texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)
        key = f"{self.prefix}{value}"
        if len(key.encode()) > PARTITION_KEY_MAX_BYTES:
            raise self._too_long()
        return key

    def usable_key(self, item: Item) -> str | None:
        """As `key`; None for a stored value that has none: damaged, or older than the rule.

        So its item can still be changed and deleted.
        """
        with suppress(ValueError):
            return self.key(item)
        return None

    def beginning(self, letters: str) -> str:
        """How the keys begin of values, of a single text, that begin with `letters`.

        Raises:
            ValueError: no value begins with them.
        """
        return f"{self.prefix}{self._text(self.attributes[0], letters)}"

    def begins(self, item: Item, letters: str) -> bool:
        """Whether the stored value, of a single text, begins with `letters`."""
        with suppress(ValueError):
            return (self.key(item) or "").startswith(self.beginning(letters))
        return False

    def search_attributes(self, key: str) -> Item:
        """What its guard item `key` stores to be found by a search; empty if not searchable."""
        if not self.searchable:
            return {}
        end = len(self.prefix)
        value = key[end:].encode()[:SORT_KEY_MAX_BYTES].decode(errors="ignore")
        return {SEARCH_PREFIX: {"S": key[: end + SEARCH_LETTERS]}, SEARCH_VALUE: {"S": value}}

    def _text(self, attribute: Attribute[Any], value: Any) -> str:
        if attribute.attr_type == "N":
            return number_text(Decimal(value))
        if attribute.attr_type == "B":
            return bytes(value).hex()
        # Checked before normalizing as well: that takes minutes for a million characters.
        if len(value) > PARTITION_KEY_MAX_BYTES:
            raise self._too_long()
        text = value if self.normalize is None else self.normalize(value)
        if not text:
            raise ValueError(f"The value of {attribute.attr_name} is empty when it is normalized.")
        return str(text)

    def _too_long(self) -> ValueError:
        return ValueError(f"The value of {', '.join(self.names)} is too long to be kept unique.")
