"""Unique attributes: guard items that make DynamoDB keep more than the primary key unique.

Declared once, on the model:

    class User(Model):
        unique = UniqueAttributes(username=comparable_username, email=comparable_email)

For each value of a declared attribute there is one guard item, whose key is the attribute's stored
name and the value as compared, `email#ann@example.com`, and whose `owner` is the primary key it
belongs to. Item and guards are written in one transaction, so two items never hold one value. That
transaction must demand that the item is the one that was read, by a version from `dynamo.models`.

The guards stand in the model's own table, or in a second one: `UniqueAttributes(table="…", …)`.

Source: "Simulating Amazon DynamoDB unique constraints using transactions", AWS Database Blog.
The `owner` is ours: it answers look-ups, keeps one item from freeing another's value, and lets an
operation whose reply was lost recognise its own work.

Values that are only reserved: see `dynamo.unique.guards`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pynamodb.attributes import UnicodeAttribute

from dynamo.models import PARTITION_KEY_MAX_BYTES, Model
from dynamo.transactions import Transaction
from dynamo.unique.guards import Guard, Pending

M = TypeVar("M", bound=Model)

Normalise = Callable[[str], str]
"""Makes of a value the form in which two values are compared. Raises ValueError if it has none."""

Taken = Callable[[str, str], Exception]
"""Makes the error for an attribute's name and a value that another item holds."""

SEPARATOR = "#"


@dataclass(frozen=True)
class _Note:
    """A reservation as an item notes it, and the key of its guard."""

    key: str
    value: str
    reservation: str
    expires: int


class UniqueAttributes(Generic[M]):
    """The declaration, and all that follows from it: keys, look-ups, and writes of guards.

    `normalise` gives, for each attribute's Python name, the function that makes values
    comparable; `table` names the second table where the guards are to stand in one; `pending`
    names, for each attribute whose values are reserved, where it is noted. The model's primary
    key is a partition key alone, a string without `#`.
    """

    def __init__(
        self,
        *,
        table: str | None = None,
        pending: Mapping[str, Pending] | None = None,
        **normalise: Normalise,
    ) -> None:
        self._table = table
        self.pending = pending or {}
        self.normalise = normalise

    def __set_name__(self, owner: type[Any], name: str) -> None:
        # Elsewhere, as in a command that checks it, a declaration is only named.
        if issubclass(owner, Model):
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

    def key(self, name: str, value: str) -> str:
        """The key of the guard item for `value` of the attribute `name`.

        Raises:
            ValueError: the value cannot be compared, or its key is over 2,048 bytes.
        """
        # Before it is normalised as well: that can take minutes for a text of a million signs.
        if len(value) <= PARTITION_KEY_MAX_BYTES:
            key = f"{self.stored_name(name)}{SEPARATOR}{self.normalise[name](value)}"
            if len(key.encode()) <= PARTITION_KEY_MAX_BYTES:
                return key
        raise ValueError(f"The value of {name} is too long to be kept unique.")

    def keys_of(self, item: M) -> dict[str, str]:
        """The guard keys that the stored `item` must have, by attribute name.

        An empty value needs none, and one without a comparable form (damaged, or older than the
        rule) can have none: it must not keep its item from changing or going.
        """
        keys = {}
        for name, value in self._values_of(item).items():
            with suppress(ValueError):
                keys[name] = self.key(name, value)
        return keys

    def guard(self, key: str, owner: str) -> Guard:
        """The guard item with this key as it is written for `owner`."""
        return self.guard_model(key, owner=owner)

    def owner_of(self, item: M) -> str:
        """What guards name as the owner: the item's primary key."""
        return str(getattr(item, self._key_name()))

    def get(self, name: str, value: str) -> M:
        """The item that holds `value` of the attribute `name`, in whatever spelling.

        A guard alone proves nothing: the item found must still carry the value. Costs 2 requests
        and 2 read units, 1 each where nobody holds the value.

        Raises:
            DoesNotExist (the model's): nobody holds it.
        """
        try:
            key = self.key(name, value)
        except ValueError:
            raise self.model.DoesNotExist from None
        try:
            guard = self.guard_model.get(key)
        except self.guard_model.DoesNotExist:
            raise self.model.DoesNotExist from None
        if guard.is_reserved or not guard.owner:
            raise self.model.DoesNotExist
        item: M = self.model.get(guard.owner)
        if self.keys_of(item).get(name) != key:
            raise self.model.DoesNotExist
        return item

    def is_taken(self, name: str, value: str) -> bool:
        """Whether a new item could not have `value` of the attribute `name`, as it is stored now.

        Only a write decides. Costs 1 request and 1 read unit. Raises as `key` does.
        """
        try:
            return not self.guard_model.get(self.key(name, value)).has_lapsed
        except self.guard_model.DoesNotExist:
            return False

    def claim(self, write: Transaction, item: M, taken: Taken) -> None:
        """Let `write` put a guard for each value of the new `item`. Raises as `key` does."""
        for name, value in self._values_of(item).items():
            guard = self.guard(self.key(name, value), self.owner_of(item))
            write.put(guard, guard.is_free(), otherwise=taken(name, value), part_of=item)

    def moves(self, item: M, values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
        """Which guards move when `item` takes `values`: name to (old key, new key).

        A key is empty where there is no value. A value that changes only in spelling moves
        nothing.
        """
        old_keys = self.keys_of(item)
        moves = {}
        for name in self.normalise.keys() & values.keys():
            old = old_keys.get(name, "")
            new = self.key(name, values[name]) if values[name] else ""
            if old != new:
                moves[name] = (old, new)
        return moves

    def touches(self, item: M, values: Mapping[str, Any]) -> bool:
        """Whether guards, reserved ones included, must be written when `item` takes `values`."""
        return bool(self.moves(item, values) or self._note_moves(item, values))

    def move(self, write: Transaction, item: M, values: Mapping[str, Any], taken: Taken) -> None:
        """Let `write` free the guards that `values` replace, and put those of `values`.

        Reservations follow their notes alike: where `values` have another note, or none, the old
        reservation goes, and the new one comes. A reserved value that `item` takes gets a guard
        that lasts.
        """
        owner = self.owner_of(item)
        frees: dict[str, Guard] = {}
        puts: dict[str, tuple[Guard, Exception]] = {}
        for name, (old, new) in self.moves(item, values).items():
            if old:
                frees[old] = self.guard(old, owner)
            if new:
                puts[new] = self.guard(new, owner), taken(name, values[name])
        kept = set(self.keys_of(item).values()) - frees.keys()
        for name, (before, after) in self._note_moves(item, values).items():
            if before:
                frees.setdefault(before.key, self._reserved(before, owner))
            # What the item has for good needs no reservation.
            if after and after.key not in kept:
                error = taken(name, after.value)
                puts.setdefault(after.key, (self._reserved(after, owner), error))
        self._free(write, [guard for key, guard in frees.items() if key not in puts])
        for guard, error in puts.values():
            free_or_ours = guard.is_free() | (type(guard).owner == owner)
            write.put(guard, free_or_ours, otherwise=error, part_of=item)

    def free(self, write: Transaction, item: M) -> None:
        """Let `write` delete every guard of `item`, reserved ones included."""
        owner = self.owner_of(item)
        reserved = {note.key: self._reserved(note, owner) for note in self._notes(item).values()}
        guards = {key: self.guard(key, owner) for key in self.keys_of(item).values()}
        self._free(write, (reserved | guards).values())

    def _free(self, write: Transaction, guards: Iterable[Guard]) -> None:
        # A reservation that is another's, or gone, lapsed. A guard that is was damaged from
        # outside: `checkguards` tells. Neither may keep its owner from changing or leaving.
        for guard in guards:
            write.delete_if(guard, guard.is_as_written())

    def _reserved(self, note: _Note, owner: str) -> Guard:
        key, _value, reservation, expires = astuple(note)
        return self.guard_model(key, owner=owner, reservation=reservation, expires=expires)

    def _note_moves(
        self, item: M, values: Mapping[str, Any]
    ) -> dict[str, tuple[_Note | None, _Note | None]]:
        """Which notes change when `item` takes `values`: attribute to (old note, new note)."""
        before, after = self._notes(item), self._notes(item, values)
        moves = {name: (before.get(name), after.get(name)) for name in self.pending}
        return {name: (old, new) for name, (old, new) in moves.items() if old != new}

    def _notes(self, item: M, values: Mapping[str, Any] = MappingProxyType({})) -> dict[str, _Note]:
        """The reservations that `item` notes, by attribute; with `values`, those it will."""
        notes = {}
        for name, pending in self.pending.items():
            value, reservation, expires = (
                values.get(each, getattr(item, each)) for each in astuple(pending)
            )
            if not (value and reservation):
                continue
            try:
                notes[name] = _Note(self.key(name, value), value, reservation, expires)
            except ValueError:
                # Stored so, it can have no guard; see `keys_of`.
                if pending.value in values:
                    raise
        return notes

    def _values_of(self, item: M) -> dict[str, str]:
        values = {name: getattr(item, name) for name in self.normalise}
        return {name: value for name, value in values.items() if value}

    def _key_name(self) -> str:
        return str(self.model._hash_keyname)

    def stored_name(self, name: str) -> str:
        """The name under which the attribute `name` is stored; guard keys begin with it."""
        return str(self.model.get_attributes()[name].attr_name)
