"""Unique attributes: guard items make DynamoDB keep more than the primary key unique.

Declared once, on the model:

    class User(PlainModel):
        unique = UniqueAttributes(username=comparable_username, email=comparable_email)

Each value of a declared attribute has one guard item. Its key is the attribute's stored name and
the normalized value, `email#ann@example.com`, and its `owner` is the primary key of the item that
has the value. Item and guard items are written in one transaction, so two items never hold the same
value. That transaction must require that the item is the one that was read, by its version (see
`dynamo.versions`).

The guard items are stored in the model's own table, or in a second one:
`UniqueAttributes(table="…", …)`.

Source: "Simulating Amazon DynamoDB unique constraints using transactions", AWS Database Blog. The
`owner` is added here: it answers look-ups, keeps one item from freeing another's value, and lets an
operation whose reply was lost recognize its own work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, TypeVar

from pynamodb.attributes import UnicodeAttribute

from dynamo.items import PARTITION_KEY_MAX_BYTES, PlainModel
from dynamo.transactions import Transaction
from dynamo.unique.guards import Guard

M = TypeVar("M", bound=PlainModel)

Normalize = Callable[[str], str]
"""Returns the form in which two values are compared. Raises ValueError if there is none."""

Taken = Callable[[str, str], Exception]
"""Returns the error for an attribute's name and a value that another item holds."""

SEPARATOR = "#"


class UniqueAttributes(Generic[M]):
    """Which attributes of a model are unique; builds the keys, look-ups and writes of guard items.

    `normalize` has, for each attribute's Python name, the function that makes values comparable;
    `table` names a second table for the guard items. The model's primary key must be a partition
    key alone, a string without `#`.
    """

    def __init__(self, *, table: str | None = None, **normalize: Normalize) -> None:
        self._table = table
        self.normalize = normalize

    def __set_name__(self, owner: type[Any], name: str) -> None:
        # Other classes, such as a command, only refer to a declaration.
        if issubclass(owner, PlainModel):
            self.model: type[M] = owner  # type: ignore[assignment]  # M is its type by declaration

    @cached_property
    def guard_model(self) -> type[Guard]:
        """The model of this declaration's guard items."""
        key_name = "pk" if self._table else self.model.key_attribute_names()[0]
        return type(
            f"{self.model.__name__}Guard",
            (Guard,),
            {
                "Meta": type("Meta", (), {"table_name": self._table or self.model.Meta.table_name}),
                "pk": UnicodeAttribute(hash_key=True, attr_name=key_name),
                "__module__": self.model.__module__,
            },
        )

    def stored_name(self, name: str) -> str:
        """The stored name of the attribute `name`, with which keys of guard items begin."""
        return str(self.model.get_attributes()[name].attr_name)

    def key(self, name: str, value: str) -> str:
        """The key of the guard item for `value` of the attribute `name`.

        Raises:
            ValueError: the value cannot be normalized, or its key is over 2,048 bytes.
        """
        # Checked before normalizing as well: that takes minutes for a million characters.
        if len(value) <= PARTITION_KEY_MAX_BYTES:
            key = f"{self.stored_name(name)}{SEPARATOR}{self.normalize[name](value)}"
            if len(key.encode()) <= PARTITION_KEY_MAX_BYTES:
                return key
        raise ValueError(f"The value of {name} is too long to be kept unique.")

    def keys_of(self, item: M) -> dict[str, str]:
        """The keys of the guard items that the stored `item` must have, by attribute name.

        An empty value needs none. A value that cannot be normalized (damaged, or older than the
        rule) has none, so that its item can still be changed and deleted.
        """
        keys = {}
        for name, value in self._values_of(item).items():
            with suppress(ValueError):
                keys[name] = self.key(name, value)
        return keys

    def owner_of(self, item: M) -> str:
        """What guard items store as the owner: the item's primary key."""
        return str(getattr(item, str(self.model._hash_keyname)))

    def get(self, name: str, value: str) -> M:
        """The item that holds `value` of the attribute `name`, in any spelling.

        Returned only if the item that the guard item names still has the value. Costs 2 requests
        and 2 read units, 1 each if no item holds the value.

        Raises:
            DoesNotExist (the model's): no item holds it.
        """
        return self.get_from(self.owner_by_guard(name, value), name, value)

    def owner_by_guard(self, name: str, value: str) -> str:
        """The primary key of the item that holds `value`, from the guard item.

        `get_from` tells whether that item still has the value. Costs 1 request and 1 read unit.

        Raises:
            DoesNotExist (the model's): no item holds it.
        """
        try:
            key = self.key(name, value)
        except ValueError:
            raise self.model.DoesNotExist from None
        guard = self.guard_at(key)
        if guard is None or not guard.owner:
            raise self.model.DoesNotExist
        return str(guard.owner)

    def get_from(self, owner: str, name: str, value: str) -> M:
        """The item with the primary key `owner`, if it has `value`.

        Costs 1 request and 1 read unit.

        Raises:
            DoesNotExist (the model's): it does not.
        """
        item: M = self.model.get(owner)
        if self.keys_of(item).get(name) != self.key(name, value):
            raise self.model.DoesNotExist
        return item

    def guard_at(self, key: str) -> Guard | None:
        """The guard item with this key; None if its value is free now, but only a write decides.

        Costs 1 request and 1 read unit.
        """
        try:
            guard: Guard = self.guard_model.get(key)
        except self.guard_model.DoesNotExist:
            return None
        return None if guard.expires or guard.reservation else guard

    def is_taken(self, name: str, value: str) -> bool:
        """Whether an item has `value` now; only a write decides. Costs 1 request and 1 read unit.

        Raises:
            ValueError: see `key`.
        """
        return self.guard_at(self.key(name, value)) is not None

    def claim(self, write: Transaction, item: M, taken: Taken) -> None:
        """Add to `write` a guard item for each value of the new `item`.

        Costs 2 write units each. If another item holds a value, the commit raises the error of
        `taken`.

        Raises:
            ValueError: see `key`.
        """
        for name, value in self._values_of(item).items():
            guard = self.guard_model(self.key(name, value), owner=self.owner_of(item))
            write.put(guard, guard.is_free(), otherwise=taken(name, value), part_of=item)

    def moves(self, item: M, values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Which guard items change if `item` takes `values`: name to (old key, new key).

        A key is empty if there is no value. A value that changes only in spelling changes none.

        Raises:
            ValueError: see `key`.
        """
        old_keys = self.keys_of(item)
        moves = {}
        for name in self.normalize.keys() & values.keys():
            old = old_keys.get(name, "")
            new = self.key(name, values[name]) if values[name] else ""
            if old != new:
                moves[name] = (old, new)
        return moves

    def move(self, write: Transaction, item: M, values: Mapping[str, Any], taken: Taken) -> None:
        """Add to `write` the deletion of the guard items that `values` replace, and the new ones.

        Costs 2 write units for each guard item.

        Raises:
            ValueError: see `key`.
        """
        owner = self.owner_of(item)
        for name, (old, new) in self.moves(item, values).items():
            if old:
                self._free(write, old, owner)
            if new:
                guard = self.guard_model(new, owner=owner)
                free_or_ours = guard.is_free() | (type(guard).owner == owner)
                error = taken(name, values[name])
                write.put(guard, free_or_ours, otherwise=error, part_of=item)

    def free(self, write: Transaction, item: M) -> None:
        """Add to `write` the deletion of every guard item of `item`. Costs 2 write units each."""
        for key in self.keys_of(item).values():
            self._free(write, key, self.owner_of(item))

    def _free(self, write: Transaction, key: str, owner: str) -> None:
        # A guard item that is absent or another item's was damaged, and the check reports it. It
        # does not prevent the write.
        write.delete_if(self.guard_model(key), self.guard_model.owner == owner)

    def _values_of(self, item: M) -> dict[str, str]:
        values = {name: getattr(item, name) for name in self.normalize}
        return {name: value for name, value in values.items() if value}
