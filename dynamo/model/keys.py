"""Keys: which keys an item can have, and which keys its guard items have.

`unique` makes the key of one guard item. This module knows all guard items of an item, and their
table.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_
from typing import ClassVar

from pynamodb.expressions.condition import Condition
from pynamodb.indexes import Index

from dynamo.client.plain import PlainModel, per_class
from dynamo.model.unique import REQUESTS, GuardTable, UniqueKey
from dynamo.wire.types import Item, Typed
from dynamo.wire.updates import names_in
from dynamo.wire.values import SORT_KEY_MAX_BYTES, as_hex, canonical, fits_key, with_binary


def new_key() -> str:
    return str(uuid.uuid4())


class Keyed(PlainModel):
    """An item with a key, and with the guard items that its unique values need."""

    _unique_keys: ClassVar[list[UniqueKey]]
    #: The most bytes of the attributes that are keys of indexes, by stored name.
    _index_keys: ClassVar[dict[str, int]]

    @classmethod
    def _has_default_key(cls) -> bool:
        return cls._hash_keyname == "pk" and cls.get_attributes()["pk"].default_for_new is new_key

    @classmethod
    def _is_key(cls, hash_key: object, range_key: object = None) -> bool:
        """Whether an item can have this key."""
        is_sort_key = not cls._range_keyname or fits_key(range_key, SORT_KEY_MAX_BYTES)
        return is_sort_key and cls.is_partition(hash_key)

    @classmethod
    def is_partition(cls, hash_key: object, index_name: str | None = None) -> bool:
        """Whether items of the table, or of an index, can have this partition key."""
        is_guard = (
            index_name is None
            and not cls._guard_table().is_separate
            and isinstance(hash_key, str)
            and hash_key.startswith(cls._guard_prefixes())
        )
        parts = hash_key if isinstance(hash_key, tuple) else (hash_key,)
        return not is_guard and all(map(fits_key, parts))

    @classmethod
    def _key_names(cls, index: Index | None = None) -> list[str]:
        """The attributes of the key of the table, or of `index`.

        Those of the partition key come first.
        """
        if index is None:
            return [name for name, *_rest in cls._key_attributes()]
        attributes = index.Meta.attributes.values()
        partition = [item for item in attributes if item.is_hash_key]
        sort = [item for item in attributes if item.is_range_key]
        return [cls._dynamo_to_python_attr(str(item.attr_name)) for item in partition + sort]

    @classmethod
    def _partition_names(cls, index: Index | None = None) -> list[str]:
        """The attributes of the partition key of the table, or of `index`."""
        attributes = [] if index is None else index.Meta.attributes.values()
        count = sum(bool(item.is_hash_key) for item in attributes)
        return cls._key_names(index)[: count or 1]

    @classmethod
    def _key_condition(
        cls, hash_key: object, condition: Condition | None, index_name: object
    ) -> tuple[object, Condition | None]:
        """The first part of a partition key, and the condition with its other parts."""
        index = cls._indexes.get(str(index_name))
        attributes = (cls.get_attributes() if index is None else index.Meta.attributes).values()
        sort_keys = [str(item.attr_name) for item in attributes if item.is_range_key]
        if wrong := [name for name in names_in(condition) if name not in sort_keys]:
            raise TypeError(
                f"The second argument is a condition on the sort key "
                f"({', '.join(sort_keys) or 'there is none'}), not on {wrong[0]}, which "
                "filter_condition= takes."
            )
        first, *others = [item for item in attributes if item.is_hash_key]
        if not others:
            return hash_key, condition
        if not isinstance(hash_key, tuple) or len(hash_key) != 1 + len(others):
            names = ", ".join(item.attr_name for item in (first, *others))
            raise TypeError(f"The index {index_name} takes a tuple of values: ({names}).")
        parts = [item == value for item, value in zip(others, hash_key[1:], strict=True)]
        return hash_key[0], reduce(and_, [*parts, *([] if condition is None else [condition])])

    @classmethod
    def _is_key_of(cls, item: Item) -> bool:
        """Whether an item can have the key of `item`, as stored."""
        return cls._is_key(*(next(iter(item[name].values())) for name in cls.key_attribute_names()))

    def _check_key(self, item: Item) -> None:
        if not self._is_key_of(item):
            key = {name: item[name] for name in self.key_attribute_names()}
            raise ValueError(f"An item of {type(self).__name__} cannot have the key {key}.")

    def _check_index_keys(self, typed: Mapping[str, Typed | None]) -> None:
        for name, limit in self._index_keys.items():
            for value in (typed.get(name) or {}).values():
                if not fits_key(value, limit):
                    raise ValueError(
                        f"{name} is the key of an index: it must have 1–{limit} bytes."
                    )

    # Guard items ----------------------------------------------------------------------------------

    @classmethod
    @per_class
    def _guard_table(cls) -> GuardTable:
        key = cls._key_attributes()
        named = getattr(cls.Meta, "guard_table", None)
        if named or len(key) > 1 or key[0][2].attr_type != "S":
            return GuardTable(named or f"{cls.Meta.table_name}-guards", "pk", is_separate=True)
        return GuardTable(cls.Meta.table_name, key[0][1], is_separate=False)

    @classmethod
    def has_guard_table(cls) -> bool:
        """Whether the model has guard items in a separate table."""
        is_declared = bool(cls._unique_keys or getattr(cls.Meta, "guard_table", None))
        return cls._guard_table().is_separate and is_declared

    @classmethod
    def _guard_prefixes(cls) -> tuple[str, ...]:
        return tuple(item.prefix for item in cls.guarded())

    @classmethod
    def check_request_ids(cls) -> None:
        """Raise TypeError if request ids need guard items, and the model cannot have them."""
        advice = ""
        if cls._guard_table().is_separate and not cls.has_guard_table():
            advice = "name a table for guard items in Meta.guard_table"
        elif cls.ttl_attribute and not cls._has_default_key():
            advice = "an item that expires would leave it, so let the model have the default key"
        if advice:
            raise TypeError(f"A request id of {cls.__name__} needs a guard item: {advice}.")

    def _owner(self) -> str:
        return self.owner_of(self._key())

    @classmethod
    def owner_of(cls, item: Item) -> str:
        """The owner of `item` as guard items store it: its key, as JSON unless it is one text."""
        typed = [item[name] for name in cls.key_attribute_names()]
        if len(typed) == 1 and "S" in typed[0]:
            return str(typed[0]["S"])
        return json.dumps([*map(canonical, typed)], default=as_hex)

    @classmethod
    def _key_of_owner(cls, owner: str) -> Item | None:
        """The key of the item with the owner text `owner`; None if an item cannot have it."""
        names = cls.key_attribute_names()
        try:
            if [item.attr_type for *_names, item in cls._key_attributes()] == ["S"]:
                key: Item = {names[0]: {"S": owner}}
            else:
                key = with_binary(dict(zip(names, json.loads(owner), strict=True)), bytes.fromhex)
            return key if cls._is_key_of(key) else None
        except (AttributeError, LookupError, TypeError, ValueError):
            return None

    @classmethod
    def _unique_of(cls, values: Mapping[str, object], verb: str = "find") -> UniqueKey:
        for unique in cls._unique_keys:
            if set(unique.names) == values.keys():
                return unique
        declared = ", ".join(" and ".join(key.names) for key in cls._unique_keys) or "none"
        raise TypeError(
            f"{cls.__name__}.{verb} takes the attributes of one Unique ({declared}), "
            f"not {', '.join(values) or 'nothing'}."
        )

    @classmethod
    def guard_key_of(cls, **values: object) -> str | None:
        """The key of the guard item for `values`, those of one `Unique`; None if empty.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        unique = cls._unique_of(values)
        return unique.key(unique.wire(values))

    @classmethod
    def guard_keys_of(cls, item: Item) -> dict[tuple[str, ...], str]:
        """The keys of the guard items that the stored `item` must have, by attribute names."""
        keys = {key.names: key.usable_key(item) for key in cls._unique_keys}
        return {names: key for names, key in keys.items() if key is not None}

    @classmethod
    def unique_names(cls) -> list[str]:
        """The attributes that are unique by themselves."""
        return [key.names[0] for key in cls._unique_keys if len(key.names) == 1]

    @classmethod
    def guarded(cls) -> list[UniqueKey]:
        """The keys that have guard items: the declared `Unique`s and request ids."""
        return [*cls._unique_keys, REQUESTS]

    @classmethod
    def _moved(
        cls, before: Item, after: Item
    ) -> Iterator[tuple[UniqueKey, str | None, str | None]]:
        """Each `Unique` whose guard item changes from `before` to `after`, with both keys."""
        for unique in cls.guarded():
            if any(before.get(name) != after.get(name) for name in unique.stored_names):
                old = unique.usable_key(before)
                new = unique.key(after)
                if old != new:
                    yield unique, old, new
