"""`Unique`: the declaration that no two items of a model have the same value, and its guard items.

    class Member(Model):
        email = TextAttribute()
        club = TextAttribute()
        card = TextAttribute(null=True)

        unique_email = Unique("email", normalize=casefolded)
        unique_card = Unique("club", "card")  # together: unique within a club

Each value has one guard item, written in the transaction that writes its item:

    <key> (S)            email#ann@example.org                of a single attribute
                         club,card#["chess","A-18"]           several: their texts as JSON
    owner (S)            the key of the item that has the value
    digest (S)           for a request id, the digest of what was asked for
    searchPrefix (S)     email#an: the prefix and the first two letters, if it is `searchable`
    searchValue (S)      ann@example.org; the index `SEARCH_INDEX` is sorted by the two

The text of a number is DynamoDB's (`1.5` for 1.50), that of a binary value is hexadecimal, and that
of a time is the one that its attribute writes. Therefore, equal values have equal keys, and
different values have different keys.

A value is free if it has no guard item.

Two items of one transaction can swap their values, or one can take the value of the other. Their
two writes of one guard item are combined to one put, because a transaction takes each item once.

Source: "Simulating Amazon DynamoDB unique constraints using transactions", AWS Database Blog. The
`owner` is added here: it answers look-ups, keeps one item from freeing another's value, and lets an
operation whose reply was lost recognize its own work.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.conf import settings
from pynamodb.attributes import Attribute, JSONAttribute

from dynamo.client.writes import Otherwise, Refusal, Write
from dynamo.wire.attributes import JSONAttribute as OwnJSONAttribute, TextAttribute, number_text
from dynamo.wire.types import Address, Item, Request
from dynamo.wire.updates import conditional
from dynamo.wire.values import (
    PARTITION_KEY_MAX_BYTES,
    SORT_KEY_MAX_BYTES,
    as_written,
    kind_and_value,
    typed_value,
    value_of,
)

#: Returns the form in which two texts are compared. Raises ValueError if there is none.
Normalize = Callable[[str], str]

SEPARATOR = "#"
#: Guard items of request ids have keys that begin with this name.
REQUEST_ID = "requestId"
#: The stored name of the digest that tells two requests with one id apart.
REQUEST_DIGEST = "requestDigest"
#: The index of the guard items that a search by the first letters reads, and its key.
SEARCH_INDEX = "unique-search"
SEARCH_PREFIX, SEARCH_VALUE = "searchPrefix", "searchValue"
#: A search needs this many letters. Values that begin with the same ones share a partition.
SEARCH_LETTERS = 2

OWNER = "owner"
DIGEST = "digest"

#: The stored names of a guard item's attributes, without its key.
GUARD_ATTRIBUTES = (OWNER, DIGEST, SEARCH_PREFIX, SEARCH_VALUE)


def casefolded(text: str) -> str:
    """The text without differences of case and in the composition of letters with accents.

    Source: The Unicode Standard, section 3.13, "Default Caseless Matching".
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


class Unique:
    """Declares that the attributes `names`, alone or together, are unique.

    `normalize` makes texts comparable; without it, they are compared unchanged. An item in which
    one of the attributes is absent or empty is not compared. 0 is a value.

    `searchable` lets `Model.search` find items by the first letters of one text. Each write of a
    guard item then costs 1 write unit more. `normalize` is applied to these letters as well.
    """

    def __init__(
        self, *names: str, normalize: Normalize | None = None, searchable: bool = False
    ) -> None:
        are_names = all(isinstance(name, str) for name in names)
        if not (names and are_names and len({*names}) == len(names)):
            raise TypeError("Unique takes the names of different attributes.")
        self.names = names
        if normalize is not None and not callable(normalize):
            raise TypeError(f"normalize is a function, such as casefolded, not {normalize!r}.")
        self.normalize = normalize
        self.searchable = searchable


@dataclass(frozen=True)
class UniqueKey:
    """A `Unique` of one model, which makes the keys of its guard items."""

    names: tuple[str, ...]
    normalize: Normalize | None
    attributes: tuple[Attribute, ...]
    searchable: bool = False

    @cached_property
    def stored_names(self) -> tuple[str, ...]:
        return tuple(str(attribute.attr_name) for attribute in self.attributes)

    @cached_property
    def prefix(self) -> str:
        """The beginning of the keys of its guard items."""
        return ",".join(self.stored_names) + SEPARATOR

    @classmethod
    def of(cls, unique: Unique, attributes: Mapping[str, Attribute]) -> UniqueKey:
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
            if getattr(attribute, "auto_now", False):
                raise TypeError(f"Unique({name!r}): auto_now changes it with each write.")
            stored_name = str(attribute.attr_name)
            if {SEPARATOR, ","} & set(stored_name) or stored_name == REQUEST_ID:
                raise TypeError(f"Unique({name!r}): its stored name cannot be {stored_name!r}.")
        found = tuple(attributes[name] for name in unique.names)
        if unique.normalize and not any(item.attr_type == "S" for item in found):
            raise TypeError(f"Unique({', '.join(unique.names)}): normalize takes texts only.")
        if unique.searchable and [item.attr_type for item in found] != ["S"]:
            raise TypeError(f"Unique({', '.join(unique.names)}): searchable takes a single text.")
        return cls(unique.names, unique.normalize, found, unique.searchable)

    def wire(self, values: Mapping[str, object]) -> Item:
        """The `values`, by attribute name, as stored; None and absent ones are left out."""
        return {
            str(attribute.attr_name): typed
            for name, attribute in zip(self.names, self.attributes, strict=True)
            if (typed := typed_value(attribute, values.get(name)))
        }

    def values(self, item: Item) -> dict[str, object]:
        """The values, by attribute name, that `item` stores; it has all of them."""
        return {
            name: value_of(attribute, item[str(attribute.attr_name)])
            for name, attribute in zip(self.names, self.attributes, strict=True)
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
            kind, value = kind_and_value(typed)
            if kind != attribute.attr_type:
                raise ValueError(f"The stored value of {stored_name} is not valid.")
            if value in ("", b""):
                return None
            if kind == "S":
                value = as_written(attribute, typed)["S"]
            texts.append(self._text(attribute, value))
        value = texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)
        key = f"{self.prefix}{value}"
        if len(key.encode()) > PARTITION_KEY_MAX_BYTES:
            raise self._too_long()
        return key

    def usable_key(self, item: Item) -> str | None:
        """Like `key`, but None for a stored value that is damaged or breaks a newer rule.

        Therefore, an item with such a value can still be changed and deleted.
        """
        try:
            return self.key(item)
        except ValueError:
            return None

    def beginning(self, letters: str) -> str:
        """The beginning of the keys of values that begin with `letters`; empty if there are none.

        Raises:
            ValueError: `letters` are too few after they are normalized.
        """
        try:
            text = self._normalized(letters)
        except ValueError:
            return ""
        if len(text) < SEARCH_LETTERS:
            raise ValueError(f"search needs {SEARCH_LETTERS} letters.")
        return f"{self.prefix}{text}"

    def begins(self, item: Item, letters: str) -> bool:
        """Whether a search by `letters` finds the stored `item`."""
        with suppress(ValueError):
            beginning = self.beginning(letters)
            return bool(beginning) and (self.key(item) or "").startswith(beginning)
        return False

    def search_attributes(self, key: str) -> Item:
        """The attributes by which a search finds its guard item `key`; empty if not searchable."""
        if not self.searchable:
            return {}
        end = len(self.prefix)
        value = key[end:].encode()[:SORT_KEY_MAX_BYTES].decode(errors="ignore")
        return {SEARCH_PREFIX: {"S": key[: end + SEARCH_LETTERS]}, SEARCH_VALUE: {"S": value}}

    def guard_attributes(self, key: str, item: Item) -> Item:
        """The further attributes of the guard item `key`, which belongs to the stored `item`."""
        if self.prefix == REQUESTS.prefix and REQUEST_DIGEST in item:
            return {DIGEST: item[REQUEST_DIGEST]}
        return self.search_attributes(key)

    def _text(self, attribute: Attribute, value: Any) -> str:
        if attribute.attr_type == "N":
            return number_text(value)
        if attribute.attr_type == "B":
            return bytes(value).hex()
        text = self._normalized(value)
        if not text:
            raise ValueError(f"The value of {attribute.attr_name} is empty when it is normalized.")
        return text

    def _normalized(self, text: str) -> str:
        # The length is also checked before normalizing, which takes minutes for a million
        # characters.
        if len(text) > PARTITION_KEY_MAX_BYTES:
            raise self._too_long()
        return text if self.normalize is None else str(self.normalize(text))

    def _too_long(self) -> ValueError:
        return ValueError(f"The value of {', '.join(self.names)} is too long to be kept unique.")


#: Request ids have guard items as well, if an item's key does not follow from its request id.
REQUESTS = UniqueKey(("request_id",), None, (TextAttribute(attr_name=REQUEST_ID, null=True),))


@dataclass(frozen=True)
class GuardTable:
    """Where a model's guard items are stored: the table, without the prefix, and its key.

    Unless it `is_separate`, it is the table of the model's items.
    """

    base_name: str
    key_name: str
    is_separate: bool

    @property
    def name(self) -> str:
        return f"{settings.DYNAMODB_TABLE_PREFIX}{self.base_name}"

    def address(self, key: str) -> Address:
        """The parameters of a request that name the guard item `key`."""
        return {"TableName": self.name, "Key": {self.key_name: {"S": key}}}

    def claim(
        self, key: str, owner: str, part_of: object, otherwise: Otherwise, attributes: Item
    ) -> GuardWrite:
        """Put the guard item, with further `attributes`, if the value is free or the owner's.

        Costs 2 write units, 3 if it is searchable.
        """
        item = {self.key_name: {"S": key}, OWNER: {"S": owner}, **attributes}
        request = conditional(
            {"TableName": self.name, "Item": item},
            "attribute_not_exists(#key) OR #owner = :owner",
            names={"#key": self.key_name, "#owner": OWNER},
            values={":owner": {"S": owner}},
        )
        return GuardWrite(None, "Put", request, otherwise, part_of=part_of, guard_key=key)

    def free(self, key: str, owner: str, part_of: object) -> GuardWrite:
        """Delete the guard item if it is the owner's. Costs 2 write units, 3 if it is searchable.

        A guard item that is absent or belongs to another item is damaged, and the check reports it.
        It does not prevent the transaction.
        """
        names = {"#owner": OWNER}
        values: Item = {":owner": {"S": owner}}
        request = conditional(self.address(key), "#owner = :owner", names=names, values=values)
        left = request | Request(ConditionExpression="NOT #owner = :owner")
        instead = "ConditionCheck", left
        return GuardWrite(None, "Delete", request, None, instead, part_of=part_of, guard_key=key)


@dataclass(eq=False, kw_only=True)
class GuardWrite(Write):
    """A write of one guard item: it claims a value for an item, or frees that of an item."""

    guard_key: str

    @property
    def key(self) -> tuple[object, ...]:
        return self.request["TableName"], self.guard_key

    def merged(self, other: Write) -> Write:
        if not isinstance(other, GuardWrite):
            return super().merged(other)
        claim, free = (self, other) if self.kind == "Put" else (other, self)
        if free.kind == "Put":
            # Two items of this transaction claim the same value, so the second one is refused.
            raise Refusal(other, None).error
        if claim.kind != "Put":
            return self
        put = claim.request
        owners = claim.request["ExpressionAttributeValues"]
        former = f":former{len(owners)}"
        put = put | Request(
            ConditionExpression=f"{put['ConditionExpression']} OR #owner = {former}",
            ExpressionAttributeValues={
                **owners,
                former: free.request["ExpressionAttributeValues"][":owner"],
            },
        )
        return replace(claim, request=put)
