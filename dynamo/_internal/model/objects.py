"""Objects in memory: the item that one was read from, what was assigned since, and its version."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pynamodb.attributes import Attribute
from pynamodb.exceptions import AttributeNullError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo import exceptions
from dynamo._internal.items import UNUSABLE, Item, is_same_value
from dynamo._internal.model.keys import Keyed
from dynamo._internal.versions import MOST_WRITES, continues, follows, is_random, stored_version
from dynamo.attributes import IntegerAttribute, TextAttribute

VERSION = "version"


class ItemObject(Keyed):
    """An object of a model: it knows the item that was read, and which values were set since."""

    if TYPE_CHECKING:
        pk = TextAttribute()
        version = IntegerAttribute()

    Taken: ClassVar[type[exceptions.Taken]]
    Stale: ClassVar[type[exceptions.Stale]]
    DoesNotExist: type[exceptions.DoesNotExist]
    AlreadyExists: ClassVar[type[exceptions.AlreadyExists]]
    RequestIdReused: ClassVar[type[exceptions.RequestIdReused]]

    #: The stored names of the attributes that never change.
    _fixed: ClassVar[set[str | None]]

    #: The item as it was last read or written; empty for an object that is not stored yet.
    stored: Item = {}  # noqa: RUF012 - replaced, never changed
    #: Whether only some attributes were read, so that a write could not know the guard items.
    _is_partial = False
    _is_deleted = False
    #: The attributes that the constructor was given.
    _given: frozenset[str] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        # A copy must not share what PynamoDB's attributes store their values in.
        return {**vars(self), "attribute_values": copy.deepcopy(self.attribute_values)}

    def _identity(self) -> tuple[Any, ...] | None:
        """The table and the key; None for an object without a key."""
        key = [self.attribute_values.get(name) for name, *_rest in self._key_attributes()]
        return None if not key or None in key else (self.table(), *key)

    def __eq__(self, other: object) -> bool:
        # By isinstance, because `request.user` is a proxy of an account.
        if not isinstance(other, ItemObject):
            return NotImplemented
        identity = self._identity()
        return self is other if identity is None else identity == other._identity()

    def __hash__(self) -> int:
        identity = self._identity()
        if identity is None:
            raise TypeError(f"A {type(self).__name__} without a key is unhashable.")
        return hash(identity)

    def __repr__(self) -> str:
        # PynamoDB's shows every attribute, also passwords.
        key = (str(self.attribute_values.get(name)) for name, *_rest in self._key_attributes())
        return f"<{type(self).__name__}: {', '.join(key)}>"

    @classmethod
    def _noun(cls) -> str:
        """What messages call an item: `Meta.verbose_name`, or the model's name."""
        return str(cls._meta.verbose_name)

    def serializable_value(self, field_name: str) -> Any:
        """As of Django's models: contrib.admin's lists ask for the key."""
        return getattr(self, field_name, None)

    # Values ---------------------------------------------------------------------------------------

    @classmethod
    def _unknown(cls, names: Iterable[str]) -> str:
        """Which of `names` are not attributes, as a message; empty if all are."""
        attributes = cls.get_attributes()
        unknown = [each for each in names if each not in attributes]
        if not unknown:
            return ""
        known = ", ".join(attributes)
        return f"{cls.__name__} has no attribute {', '.join(unknown)}. Its attributes: {known}."

    def _set_attributes(self, **attributes: Any) -> None:
        if attributes:
            self._given = frozenset(attributes)
            if unknown := self._unknown(attributes):
                raise TypeError(unknown)
        super()._set_attributes(**attributes)

    def _is_now(self, stored: Item) -> None:
        self._version_of(stored)
        super()._is_now(stored)
        self._is_deleted = False

    def _wire_of(self, values: Mapping[str, Any], *, removals: bool = False) -> dict[str, Any]:
        """The `values` by stored name, as stored; with `removals`, None for one that is removed.

        Raises:
            TypeError: not an attribute that can be given a value, or not its type.
            ValueError: None for a required attribute.
        """
        if unknown := self._unknown(values):
            raise TypeError(unknown)
        wire: dict[str, Any] = {}
        attributes = self.get_attributes()
        for name, value in values.items():
            attribute = attributes[name]
            if removals and attribute.attr_name in self._fixed:
                raise TypeError(f"The {name} of an item cannot be changed.")
            typed = _typed(attribute, value)
            if typed is None and not attribute.null:
                raise AttributeNullError(name)
            if removals or typed is not None:
                wire[str(attribute.attr_name)] = typed
        return wire

    def _stored_value(self, stored_name: str) -> dict[str, Any] | None:
        """The stored value; if it is absent, the constant that stands for it."""
        if stored_name in self.stored:
            return self.stored[stored_name]
        attribute = self.get_attributes()[self._dynamo_to_python_attr(stored_name)]
        return None if callable(attribute.default) else _typed(attribute, attribute.default)

    def _assigned(
        self, before: Item, among: Iterable[tuple[str, str, Attribute[Any]]] | None = None
    ) -> dict[str, Any]:
        """The values, by attribute name, that were set since this object was the item `before`.

        `among`: only those of these attributes (see `_named_attributes`).
        """
        assigned: dict[str, Any] = {}
        read = None
        for name, stored_name, attribute in self._named_attributes() if among is None else among:
            value, stored = self.attribute_values.get(name), before.get(stored_name)
            # Most are absent.
            if value is stored is None:
                continue
            if not _is_stored_as(attribute, value, stored):
                # A value can be stored in another form, and a constant stands for an absent one.
                read = read or type(self).from_raw_data(before)
                typed = _typed(attribute, read.attribute_values.get(name))
                if not _is_stored_as(attribute, value, typed):
                    assigned[name] = value
        return assigned

    def _become(self, stored: Item, before: Item, written: Collection[str] = ()) -> None:
        """Be the item `stored`, with what was set since this object was `before`.

        The attributes called `written` are those of `stored` alone.
        """
        others = [
            each
            for each in self._named_attributes()
            if each[0] in written or stored.get(each[1]) != before.get(each[1])
        ]
        assigned = self._assigned(before, [each for each in others if each[0] not in written])
        self._take(stored, [each for each in others if each[0] not in assigned])
        self._is_now(stored)

    # Versions -------------------------------------------------------------------------------------

    @classmethod
    def _version_of(cls, item: Item) -> int | None:
        """The version of the stored `item`, None if it has none. Raises DamagedItem."""
        typed = item.get(VERSION)
        try:
            return None if typed is None else stored_version(typed)
        except ValueError as error:
            raise cls._damaged(item, VERSION) from error

    def is_same_item(self, stored: Item) -> bool:
        """Whether `stored` is this item, perhaps changed, and not another one under its key."""
        version = self._version_of(self.stored)
        # An item of version 0.1 is known by its key alone.
        return not is_random(version) or continues(self._version_of(stored), version)

    def _is_same_item_condition(self) -> Condition:
        """The condition of `is_same_item`."""
        version = self._version_of(self.stored)
        if not is_random(version):
            return self._exists_condition()
        upper = {"N": str(version + MOST_WRITES)}
        same: Condition = Path([VERSION]).between(self.stored[VERSION], upper)
        return same

    def unchanged(self) -> Condition:
        """The condition that the stored item is still the one that was read."""
        if VERSION in self.stored:
            same: Condition = Path([VERSION]) == self.stored[VERSION]
        else:
            same = self._exists_condition() & Path([VERSION]).does_not_exist()
        return same

    def _exists_condition(self) -> Condition:
        exists: Condition = Path([self.key_attribute_names()[0]]).exists()
        return exists

    def expect_version(self, version: int) -> None:
        """Write only if the stored item has `version`, such as that of the page with a form.

        Raises:
            Stale: this object is older, so a write could not know the guard items.
        """
        if follows(version, self._version_of(self.stored) or 0):
            raise self._stale()
        self.version = version
        self.stored = {**self.stored, VERSION: {"N": str(version)}}

    # Errors of writes -----------------------------------------------------------------------------

    def _exists(self) -> Exception:
        """The error of a new item whose key is used."""
        return self.AlreadyExists(self._noun())

    def _stale(self, *, is_deleted: bool = False) -> Exception:
        """The error of a write to an item that changed since it was read."""
        return self.Stale(self._noun(), is_deleted=is_deleted)

    def _taken(self, names: tuple[str, ...], values: Mapping[str, Any]) -> Exception:
        """The error of a `Unique` of `names` whose `values` another item has."""
        return self.Taken(self._noun(), {names: values})

    def _check_writable(self, verb: str) -> None:
        if not self.stored:
            raise TypeError(f"{verb}: this object was neither read nor stored. Call save() first.")
        if self._is_partial:
            raise TypeError(f"{verb}: only a part of this item was read. Call refresh() first.")
        if self._is_deleted and verb != "delete":
            raise self._stale(is_deleted=True)


def _is_stored_as(attribute: Any, value: Any, typed: dict[str, Any] | None) -> bool:
    try:
        return is_same_value(_typed(attribute, value), typed)
    except UNUSABLE:
        return False


def _typed(attribute: Any, value: Any) -> dict[str, Any] | None:
    # An empty set is not stored either: its value is None.
    stored = None if value is None else attribute.serialize(value)
    return None if stored is None else {attribute.attr_type: stored}
