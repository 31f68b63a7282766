"""Keys of items, and of their guard items."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django.conf import settings

from dynamo._internal.items import (
    PARTITION_KEY_MAX_BYTES,
    SORT_KEY_MAX_BYTES,
    Item,
    PlainModel,
    as_hex,
    with_binary,
)
from dynamo.attributes import number_text
from dynamo.unique.declarations import REQUEST_ID, SEPARATOR, UniqueKey
from dynamo.unique.guarding import GuardTable


def new_key() -> str:
    return str(uuid.uuid4())


class Keyed(PlainModel):
    """What follows from the keys and the `Unique`s of a model."""

    _unique_keys: ClassVar[list[UniqueKey]]
    _has_own_guard_table: ClassVar[bool]
    #: By stored name, how long the attributes may be that are keys of indexes.
    _index_keys: ClassVar[dict[str, int]]

    @classmethod
    def _has_default_key(cls) -> bool:
        return cls._hash_keyname == "pk" and cls.get_attributes()["pk"].default_for_new is new_key

    @classmethod
    def _is_key(cls, hash_key: Any, range_key: Any = None) -> bool:
        """Whether an item can have this key."""
        is_sort_key = not cls._range_keyname or _fits(range_key, SORT_KEY_MAX_BYTES)
        return is_sort_key and cls.is_partition(hash_key)

    @classmethod
    def is_partition(cls, hash_key: Any, index_name: str | None = None) -> bool:
        """Whether items of the table, or of an index, can have this partition key."""
        is_guard = (
            index_name is None
            and not cls._has_own_guard_table
            and isinstance(hash_key, str)
            and hash_key.startswith(cls._guard_prefixes())
        )
        return not is_guard and _fits(hash_key, PARTITION_KEY_MAX_BYTES)

    @classmethod
    def _is_key_of(cls, item: Item) -> bool:
        """Whether an item can have the key of `item`, as stored."""
        return cls._is_key(*(next(iter(item[each].values())) for each in cls.key_attribute_names()))

    def _check_key(self, item: Item) -> None:
        if not self._is_key_of(item):
            key = {name: item[name] for name in self.key_attribute_names()}
            raise ValueError(f"An item of {type(self).__name__} cannot have the key {key}.")

    def _check_index_keys(self, typed: Mapping[str, dict[str, Any] | None]) -> None:
        for name, limit in self._index_keys.items():
            for value in (typed.get(name) or {}).values():
                if not _fits(value, limit):
                    raise ValueError(
                        f"{name} is the key of an index: it must have 1–{limit} bytes."
                    )

    # Of guard items -------------------------------------------------------------------------------

    @classmethod
    def _keeps_guards_beside_items(cls) -> bool:
        key = cls._key_attributes()
        has_table = bool(getattr(cls.Meta, "guard_table", None))
        return not has_table and len(key) == 1 and key[0][2].attr_type == "S"

    @classmethod
    def has_guard_table(cls) -> bool:
        """Whether it has guard items, in a table of their own."""
        declared = bool(cls._unique_keys) or hasattr(cls.Meta, "guard_table")
        return cls._has_own_guard_table and declared

    @classmethod
    def guard_table_name(cls) -> str:
        """The name of the guard items' table, without the prefix."""
        if not cls._has_own_guard_table:
            return cls.Meta.table_name
        return str(getattr(cls.Meta, "guard_table", f"{cls.Meta.table_name}-guards"))

    @classmethod
    def _guard_table(cls) -> GuardTable:
        name = f"{settings.DYNAMODB_TABLE_PREFIX}{cls.guard_table_name()}"
        return GuardTable(name, "pk" if cls._has_own_guard_table else cls.key_attribute_names()[0])

    @classmethod
    def _guard_prefixes(cls) -> tuple[str, ...]:
        return (f"{REQUEST_ID}{SEPARATOR}", *(each.prefix for each in cls._unique_keys))

    @classmethod
    def check_request_ids(cls) -> None:
        """Raise TypeError if request ids need guard items, and the model cannot have them."""
        advice = ""
        if cls._has_own_guard_table and not cls.has_guard_table():
            advice = "name a table for guard items in Meta.guard_table"
        elif cls.ttl_attribute and not cls._has_default_key():
            advice = "an item that expires would leave it, so let the model have the default key"
        if advice:
            raise TypeError(f"A request id of {cls.__name__} needs a guard item: {advice}.")

    def _owner(self) -> str:
        return self.owner_of(self._key())

    @classmethod
    def owner_of(cls, item: Item) -> str:
        """What guard items store as the owner of `item`: its key, as JSON unless it is one text."""
        typed = [item[name] for name in cls.key_attribute_names()]
        if len(typed) == 1 and "S" in typed[0]:
            return str(typed[0]["S"])
        # 1.0 and 1 are one key.
        typed = [{"N": number_text(Decimal(each["N"]))} if "N" in each else each for each in typed]
        return json.dumps(typed, default=as_hex)

    @classmethod
    def _key_of_owner(cls, owner: str) -> Item | None:
        """The key of which `_owner` made the text `owner`; None if an item cannot have it."""
        names = cls.key_attribute_names()
        try:
            if [each.attr_type for *_names, each in cls._key_attributes()] == ["S"]:
                key: Item = {names[0]: {"S": owner}}
            else:
                key = with_binary(dict(zip(names, json.loads(owner), strict=True)), bytes.fromhex)
            return key if cls._is_key_of(key) else None
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    # Of values ------------------------------------------------------------------------------------

    @classmethod
    def _unique_of(cls, values: Mapping[str, Any], verb: str = "find") -> UniqueKey:
        for unique in cls._unique_keys:
            if set(unique.names) == values.keys():
                return unique
        declared = ", ".join(" and ".join(each.names) for each in cls._unique_keys) or "none"
        raise TypeError(
            f"{cls.__name__}.{verb} takes the attributes of one Unique ({declared}), "
            f"not {', '.join(values) or 'nothing'}."
        )

    @classmethod
    def guard_key_of(cls, **values: Any) -> str | None:
        """The key of the guard item for `values`, those of one `Unique`; None if empty.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        unique = cls._unique_of(values)
        return unique.key(unique.wire(values))

    @classmethod
    def guard_keys_of(cls, item: Item) -> dict[tuple[str, ...], str]:
        """The keys of the guard items that the stored `item` must have, by attribute names."""
        keys = {each.names: each.usable_key(item) for each in cls._unique_keys}
        return {names: key for names, key in keys.items() if key is not None}

    @classmethod
    def unique_names(cls) -> list[str]:
        """The attributes that are unique alone."""
        return [each.names[0] for each in cls._unique_keys if len(each.names) == 1]

    @classmethod
    def _moved(
        cls, before: Item, after: Item
    ) -> Iterator[tuple[UniqueKey, str | None, str | None]]:
        """Each `Unique` whose guard item is another one after than before, with both keys."""
        for unique in cls._unique_keys:
            if any(before.get(name) != after.get(name) for name in unique.stored_names):
                old, new = unique.usable_key(before), unique.key(after)
                if old != new:
                    yield unique, old, new


def _fits(key: Any, limit: int) -> bool:
    size = key.encode() if isinstance(key, str) else key
    return key is not None and (not isinstance(size, bytes) or 0 < len(size) <= limit)
