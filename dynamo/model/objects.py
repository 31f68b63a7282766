"""Objects in memory: the item that was read, the values that were set since, and the version.

A condition recognizes the item that the caller read by its version. The first version of an item is
random, and each write adds one. If an item is deleted and another one is created under its key, a
copy of the first never matches the second. If versions began at 1, it could (the ABA problem).

Two copies of one item write the same next version, and perhaps the same values. Therefore, each
change also stores a random write id, by which a call whose reply was lost recognizes its own write.
"""

import copy
import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pynamodb.attributes import Attribute
from pynamodb.exceptions import AttributeNullError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo import exceptions
from dynamo.client.plain import Named, per_class
from dynamo.model.keys import Keyed
from dynamo.model.references import Reference
from dynamo.wire.attributes import IntegerAttribute, TextAttribute
from dynamo.wire.types import Item, Typed
from dynamo.wire.values import UNUSABLE, is_same_value, typed_number, typed_value

VERSION = "version"
#: The stored name of the random text that each change stores.
WRITE_ID = "writeId"

#: Names of attributes that may hold a secret, like those that Django's error pages hide.
SECRET = re.compile(
    "api|auth(?!or)|cookie|credential|hash|key|pass|salt|secret|signature|token|(^|_)(otp|pin)(_|$)"
)
#: The most characters of a text that names an item in lists and titles.
_NAME_MAX_LENGTH = 100

#: The limit of versions: JavaScript's numbers are exact below 2^53.
_VERSION_LIMIT = 1 << 53
#: Higher than the number of writes that an item ever gets.
MOST_WRITES = 1 << 32
#: The smallest random version. All random versions have the same length.
_LEAST_VERSION = 1 << 52


def new_version() -> int:
    """The version of a new item. It is random, and in practice never drawn twice."""
    return _LEAST_VERSION + secrets.randbelow(_VERSION_LIMIT - MOST_WRITES - _LEAST_VERSION)


def next_version(version: int | None) -> int:
    """The version that a write gives to an item that has `version`, or was stored without one."""
    return new_version() if version is None else version + 1


def is_later_version(now: int | None, version: int) -> bool:
    """Whether an item that has the version `now` is the one that had `version`."""
    return now is not None and 0 <= now - version < MOST_WRITES


def new_write_id() -> str:
    return secrets.token_urlsafe(8)


def is_secret(name: str, attribute: Attribute) -> bool:
    """Whether an attribute of this name may hold a secret."""
    return bool(getattr(attribute, "sensitive", False) or SECRET.search(name.lower()))


class ItemObject(Keyed):
    """An object of a model, with the item that was read and the values that were set since."""

    if TYPE_CHECKING:
        pk = TextAttribute()
        version = IntegerAttribute()
    else:

        @property
        def pk(self):
            """The key of an item that has no attribute `pk`; of two parts, a tuple."""
            key = self._key_values()
            return tuple(key) if len(key) > 1 else key[0]

    Taken: ClassVar[type[exceptions.Taken]]
    Stale: ClassVar[type[exceptions.Stale]]
    DoesNotExist: type[exceptions.DoesNotExist]
    AlreadyExists: ClassVar[type[exceptions.AlreadyExists]]
    RequestIdReused: ClassVar[type[exceptions.RequestIdReused]]

    #: The stored names of the attributes that never change.
    _fixed: ClassVar[set[str | None]]

    #: Whether only some attributes were read. If so, a write cannot know the guard items.
    _is_partial = False
    _is_deleted = False
    #: The attributes that the constructor was given.
    _given: frozenset[str] = frozenset()
    #: The arguments and the mark of the last call that got no answer and may have written.
    _unanswered: tuple[object, object] | None = None

    def __getstate__(self) -> dict[str, object]:
        # A copy must not share the dictionary of values with this object, and must not treat a
        # write of this object as its own.
        values = copy.deepcopy(self.attribute_values)
        return {**vars(self), "attribute_values": values, "_unanswered": None}

    def _key_values(self) -> list[object]:
        """The values of the key's attributes, None for one that is missing."""
        return [self.attribute_values.get(name) for name, *_rest in self._key_attributes()]

    def _identity(self) -> tuple[object, ...] | None:
        """The table and the key; None for an object without a key."""
        key = self._key_values()
        return None if not key or None in key else (self.table(), *key)

    def __eq__(self, other: object) -> bool:
        # `isinstance` also works for `request.user`, which is a proxy.
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
        # PynamoDB's method shows every attribute, even passwords.
        return f"<{type(self).__name__}: {', '.join(map(str, self._key_values()))}>"

    def __str__(self) -> str:
        """The first text that forms can edit, except keys, references and secrets; else the key.

        A subclass may return another text. An attribute with `sensitive=True` is never shown.
        """
        for name in self._names_of_texts():
            if text := " ".join(str(self.attribute_values.get(name) or "").split()):
                is_long = len(text) > _NAME_MAX_LENGTH
                return f"{text[: _NAME_MAX_LENGTH - 1]}…" if is_long else text
        return self._key_as_name()

    @classmethod
    @per_class
    def _names_of_texts(cls) -> list[str]:
        """The attributes that `__str__` may show, in the order of their declaration."""
        keys = (cls._hash_keyname, cls._range_keyname)
        return [
            name
            for name, field in cls._meta.by_name.items()
            if field.get_internal_type() == "CharField"
            and field.editable
            and not field.choices
            and name not in keys
            and not isinstance(field.attribute, Reference)
            and not is_secret(name, field.attribute)
        ]

    def _key_as_name(self) -> str:
        """The name of the item in messages if only its key is known."""
        key = self._key_values()
        shown = (item.hex() if isinstance(item, bytes) else str(item) for item in key)
        return f"{self._noun()} {', '.join(shown)}"

    @classmethod
    def _noun(cls) -> str:
        """The word for an item in messages: `Meta.verbose_name`, or the model's name."""
        return str(cls._meta.verbose_name)

    def serializable_value(self, field_name: str) -> object:
        """A method of Django's models that lists of contrib.admin call."""
        return getattr(self, field_name, None)

    # Values ---------------------------------------------------------------------------------------

    @classmethod
    def _unknown(cls, names: Iterable[str]) -> str:
        """A message about those of `names` that are not attributes; empty if all are."""
        attributes = cls.get_attributes()
        unknown = [name for name in names if name not in attributes]
        if not unknown:
            return ""
        known = ", ".join(attributes)
        return f"{cls.__name__} has no attribute {', '.join(unknown)}. Its attributes: {known}."

    def _set_attributes(self, **attributes: Any) -> None:
        if attributes:
            self._given = frozenset(attributes)
            if unknown := self._unknown(attributes):
                raise TypeError(unknown)
            if VERSION in attributes:
                raise TypeError("A version is never given: the write of a new item draws it.")
        super()._set_attributes(**attributes)

    def _note_stored(self, stored: Item) -> None:
        self._version_of(stored)
        super()._note_stored(stored)
        self._is_deleted = False
        self._unanswered = None

    def _wire_of(
        self, values: Mapping[str, object], *, removals: bool = False
    ) -> dict[str, Typed | None]:
        """The `values` by stored name, as stored; with `removals`, None for one that is removed.

        Raises:
            TypeError: the attribute does not exist or cannot be set, or the value has the wrong
                type.
            ValueError: None for a required attribute.
        """
        wire: dict[str, Typed | None] = {}
        attributes = self.get_attributes()
        for name, value in values.items():
            if name not in attributes:
                raise TypeError(self._unknown(values))
            attribute = attributes[name]
            if removals and attribute.attr_name in self._fixed:
                raise TypeError(f"The {name} of an item cannot be changed.")
            typed = typed_value(attribute, value)
            if typed is None and not attribute.null:
                raise AttributeNullError(name)
            if removals or typed is not None:
                wire[str(attribute.attr_name)] = typed
        return wire

    def _stored_value(self, stored_name: str) -> Typed | None:
        """The stored value, or the constant default if it is absent."""
        if stored_name in self.stored:
            return self.stored[stored_name]
        attribute = self.get_attributes()[self._dynamo_to_python_attr(stored_name)]
        return None if callable(attribute.default) else typed_value(attribute, attribute.default)

    def _assigned(self, before: Item, among: Iterable[Named] | None = None) -> dict[str, Any]:
        """The values that were set since this object had those of `before`, by attribute name.

        Only the attributes in `among` are compared (see `_named_attributes`).
        """
        assigned: dict[str, object] = {}
        read = None
        for name, stored_name, attribute in self._named_attributes() if among is None else among:
            value = self.attribute_values.get(name)
            stored = before.get(stored_name)
            # Most attributes are absent.
            if value is stored is None:
                continue
            if not _is_stored_as(attribute, value, stored):
                # A value may be stored in another form. It may be absent if it equals the constant
                # default.
                read = read or type(self).from_raw_data(before)
                typed = typed_value(attribute, read.attribute_values.get(name))
                if not _is_stored_as(attribute, value, typed):
                    assigned[name] = value
        return assigned

    def _become(self, stored: Item, before: Item, written: Collection[str] = ()) -> None:
        """Take the values of `stored`, but keep those that were set since this object had `before`.

        The attributes named in `written` are always taken from `stored`. If others changed an
        attribute that was set here, the next write requires the version of `before`, and is Stale.
        """
        others = [
            attribute
            for attribute in self._named_attributes()
            if attribute[0] in written or stored.get(attribute[1]) != before.get(attribute[1])
        ]
        assigned = self._assigned(before, [other for other in others if other[0] not in written])
        self._set_values(stored, [other for other in others if other[0] not in assigned])
        self._note_stored(stored)
        if assigned:
            self.expect_version(self._version_of(before))

    # Versions -------------------------------------------------------------------------------------

    @classmethod
    def _version_of(cls, item: Item) -> int | None:
        """The version of the stored `item`; None if it has none. Raises DamagedItem."""
        if VERSION not in item:
            return None
        try:
            version = int(item[VERSION].get("N", "no number"))
        except ValueError as error:
            raise cls._damaged(item, VERSION) from error
        if not 0 <= version < _VERSION_LIMIT:
            raise cls._damaged(item, VERSION)
        return version

    def is_same_item(self, stored: Item) -> bool:
        """Whether `stored` is this item, even if it changed, not another one with the same key."""
        version = self._version_of(self.stored)
        # An item without a version is only identified by its key.
        return version is None or is_later_version(self._version_of(stored), version)

    def is_as_read(self, stored: Item | None) -> bool:
        """Whether `stored` fulfills `unchanged`."""
        read = self._version_of(self.stored)
        now = stored and self._version_of(stored)
        return bool(stored) and now == read

    def _is_same_item_condition(self) -> Condition:
        """The condition of `is_same_item`."""
        version = self._version_of(self.stored)
        if version is None:
            return self._exists_condition()
        upper = typed_number(version + MOST_WRITES - 1)
        return Path([VERSION]).between(self.stored[VERSION], upper)

    def unchanged(self) -> Condition:
        """The condition that the stored item is still the one that was read."""
        if VERSION in self.stored:
            return Path([VERSION]) == self.stored[VERSION]
        return self._exists_condition() & Path([VERSION]).does_not_exist()

    def _exists_condition(self) -> Condition:
        return Path([self.key_attribute_names()[0]]).exists()

    def expect_version(self, version: int | None) -> None:
        """Require `version` of the stored item in the next write, for example that of a form.

        None stands for an item without a version, which another program stored.

        Raises:
            Stale: this object is older, so a write could not know the guard items.
        """
        read = self._version_of(self.stored) or 0
        if version not in {None, read} and is_later_version(version, read):
            raise self._stale()
        stored = {name: typed for name, typed in self.stored.items() if name != VERSION}
        if version is not None:
            stored[VERSION] = typed_number(version)
        self.stored, self.attribute_values[VERSION] = stored, version

    # Errors of writes -----------------------------------------------------------------------------

    def _stale(self, *, is_deleted: bool = False) -> Exception:
        """The error of a write to an item that changed since it was read."""
        return self.Stale(self._noun(), is_deleted=is_deleted)

    def _taken(self, names: tuple[str, ...], values: Mapping[str, object]) -> Exception:
        """The error of a `Unique` of `names` whose `values` another item has."""
        return self.Taken(self._noun(), {names: values})

    def _check_writable(self, verb: str) -> None:
        if not self.stored:
            raise TypeError(f"{verb}: this object was neither read nor stored. Call save() first.")
        if self._is_partial:
            raise TypeError(f"{verb}: only a part of this item was read. Call refresh() first.")
        if self._is_deleted and verb != "delete":
            raise self._stale(is_deleted=True)
        # Otherwise, another item would be written under conditions of this one.
        if not self._has_stored_key():
            raise TypeError(f"{verb}: the key of an item cannot be changed. Create another item.")
        if self.attribute_values.get(VERSION) != self._version_of(self.stored):
            raise TypeError(
                f"{verb}: the version of an item cannot be changed. Call expect_version(…) to "
                "require one."
            )

    def _has_stored_key(self) -> bool:
        try:
            return self._key().items() <= self.stored.items()
        except UNUSABLE:
            return False


def _is_stored_as(attribute: Attribute, value: object, typed: Typed | None) -> bool:
    try:
        return is_same_value(typed_value(attribute, value), typed)
    except UNUSABLE:
        return False
