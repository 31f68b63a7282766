"""`Model`: items that keep their promises.

    class Member(Model):                       # key `pk` (a random UUID) and `version` come with it
        class Meta:
            table_name = "members"

        email = TextAttribute(_("email address"), max_length=254)
        unique_email = Unique("email", normalize=casefolded)

    ann = Member.create(email="Ann@example.org", request_id=form_id)
    ann.change(email="ann@example.net")        # or: ann.email = …; ann.save()
    Member.find(email="ANN@example.net")
    ann.delete()

Each call is one transaction of the item and its guard items, under the condition that the stored
item is still the one that was read: `version` starts at random, and each write adds one
(`versions`). So two items never have the same unique value, and no write undoes another. A
call that could break this raises TypeError with the name of the right one.

With `write=` a call adds its writes to the caller's transaction; its errors are then raised by the
commit.
"""

from __future__ import annotations

import copy
import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Never, NoReturn, Self

from django.conf import settings
from pynamodb.attributes import TTLAttribute
from pynamodb.exceptions import AttributeNullError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.models import MetaModel
from pynamodb.pagination import ResultIterator

from dynamo import exceptions
from dynamo._internal import bulk
from dynamo._internal.client.sending import send
from dynamo._internal.items import (
    PARTITION_KEY_MAX_BYTES,
    SORT_KEY_MAX_BYTES,
    UNUSABLE,
    Item,
    PlainModel,
    is_same_value,
    ordered,
)
from dynamo._internal.threads import in_thread
from dynamo._internal.updates import Update
from dynamo._internal.versions import (
    MOST_WRITES,
    continues,
    follows,
    is_random,
    new_version,
    next_version,
    stored_version,
)
from dynamo.attributes import IntegerAttribute, TextAttribute, number_text
from dynamo.exceptions import AlreadyDone, ConditionFailed
from dynamo.pages import Page, complete_index, read_page
from dynamo.transactions import Refusal, Transaction, Write, joined
from dynamo.unique.declarations import REQUEST_ID, SEPARATOR, Unique, UniqueKey
from dynamo.unique.guarding import (
    DIGEST,
    OWNER,
    GuardTable,
    GuardWrite,
    is_reserved,
)

VERSION = "version"
REQUEST_DIGEST = "requestDigest"

#: The default key of an item is the UUIDv5 of its request id in this namespace.
REQUEST_IDS = uuid.UUID("5b0f6c9e-6d0b-4b43-9a35-0f4c1f1c9c57")

#: What Django passes to `save`, and means nothing here.
_DJANGOS_OPTIONS = {"force_insert", "force_update", "using"}

_ERRORS = ("Taken", "Stale", "DoesNotExist", "AlreadyExists", "RequestIdReused")


def new_key() -> str:
    return str(uuid.uuid4())


class ModelMeta(MetaModel):
    """Completes a model that names a table, and checks its declarations."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> Any:
        meta = namespace.get("Meta")
        names_table = bool(getattr(meta, "table_name", None))
        inherited = [each for base in bases for each in getattr(base, "_attributes", {}).items()]
        declared = [each for each in namespace.items() if hasattr(each[1], "is_hash_key")]
        if names_table and not any(each.is_hash_key for _name, each in inherited + declared):
            namespace["pk"] = TextAttribute(hash_key=True, default_for_new=new_key, editable=False)
        if names_table and VERSION not in dict(inherited + declared):
            namespace[VERSION] = IntegerAttribute(null=True, editable=False)
        for error in _ERRORS:
            parents = [getattr(base, error) for base in bases if hasattr(base, error)]
            base = next(
                (each for each in parents if issubclass(each, exceptions.DynamoError)),
                getattr(exceptions, error),
            )
            place = {"__module__": namespace["__module__"], "__qualname__": f"{name}.{error}"}
            namespace.setdefault(error, type(error, (base,), place))
        return super().__new__(cls, name, bases, namespace, **options)  # type: ignore[no-untyped-call]  # PynamoDB's

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, namespace, **options)
        model: Any = cls
        model._unique_keys = []
        # A base without a table may be incomplete: its subclasses are checked.
        if getattr(getattr(model, "Meta", None), "table_name", None):
            try:
                model._complete()
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from error


class Model(PlainModel, metaclass=ModelMeta):
    """The items of a table, with unique attributes and versions; see the module.

    `Meta.table_name` names the table, without the prefix. A model that declares no key has the
    partition key `pk`, a random UUID. Guard items stand in the same table if the key is a partition
    key of type text alone, else in `<table_name>-guards`; `Meta.guard_table` names another table.

    The errors of `dynamo.exceptions` that concern an item exist for each model: `Member.Taken`.
    """

    if TYPE_CHECKING:
        pk = TextAttribute()
        version = IntegerAttribute()

    Taken: ClassVar[type[exceptions.Taken]]
    Stale: ClassVar[type[exceptions.Stale]]
    DoesNotExist: type[exceptions.DoesNotExist]
    AlreadyExists: ClassVar[type[exceptions.AlreadyExists]]
    RequestIdReused: ClassVar[type[exceptions.RequestIdReused]]

    #: Of `create`, `change` and PynamoDB's constructor.
    _parameters: ClassVar[set[str]] = {
        *("add", "condition", "hash_key", "range_key", "request_id", "write")
    }
    #: The stored names of the attributes that never change.
    _fixed: ClassVar[set[str | None]]
    _unique_keys: ClassVar[list[UniqueKey]]
    _has_own_guard_table: ClassVar[bool]
    #: By stored name, how long the attributes may be that are keys of indexes.
    _index_keys: ClassVar[dict[str, int]]

    #: The item as it was last read or written; empty for an object that is not stored yet.
    stored: Item = {}  # noqa: RUF012 - replaced, never changed
    _may_miss_writes = True
    #: Whether only some attributes were read, so that a write could not know the guard items.
    _is_partial = False
    _is_deleted = False
    #: The version that this object was inserted with.
    _drawn: int | None = None
    #: The attributes that the constructor was given.
    _given: frozenset[str] = frozenset()

    def _set_attributes(self, **attributes: Any) -> None:
        if attributes:
            self._given = frozenset(attributes)
            if unknown := self._unknown(attributes):
                raise TypeError(unknown)
        super()._set_attributes(**attributes)

    def __getstate__(self) -> dict[str, Any]:
        # A copy must not share what PynamoDB's attributes store their values in.
        return {**vars(self), "attribute_values": copy.deepcopy(self.attribute_values)}

    def _identity(self) -> tuple[Any, ...] | None:
        """The table and the key; None for an object without a key."""
        key = [self.attribute_values.get(name) for name, *_rest in self._key_attributes()]
        return None if not key or None in key else (self.table(), *key)

    def __eq__(self, other: object) -> bool:
        # By isinstance, because `request.user` is a proxy of an account.
        if not isinstance(other, Model):
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
    def _unknown(cls, names: Iterable[str]) -> str:
        """Which of `names` are not attributes, as a message; empty if all are."""
        attributes = cls.get_attributes()
        unknown = [each for each in names if each not in attributes]
        if not unknown:
            return ""
        known = ", ".join(attributes)
        return f"{cls.__name__} has no attribute {', '.join(unknown)}. Its attributes: {known}."

    @classmethod
    def _noun(cls) -> str:
        """What messages call an item: `Meta.verbose_name`, or the model's name."""
        return str(getattr(cls.Meta, "verbose_name", cls.__name__.lower()))

    @classmethod
    def _complete(cls) -> None:
        """Read the declarations of a new class.

        Raises:
            TypeError: one of them cannot be right.
        """
        attributes = cls.get_attributes()
        stored_names = [str(each.attr_name) for each in attributes.values()]
        for name, attribute in attributes.items():
            stored_name = str(attribute.attr_name)
            if name in cls._parameters or hasattr(Model, name):
                raise TypeError(
                    f"an attribute cannot be called {name}, because models have a method or "
                    f"parameter of this name. Store it under this name: attr_name={name!r}."
                )
            marks = {REQUEST_DIGEST} if name == "request_id" else {REQUEST_DIGEST, REQUEST_ID}
            if stored_names.count(stored_name) > 1 or stored_name in marks:
                raise TypeError(f"the stored name {stored_name} of {name} is used otherwise.")
            is_key = attribute.is_hash_key or attribute.is_range_key
            if is_key and attribute.attr_type not in {"S", "N", "B"}:
                raise TypeError(f"the key {name} must be a text, a number or binary.")
        version = attributes[VERSION]
        if (version.attr_name, version.attr_type) != (VERSION, "N") or cls._version_attribute_name:
            raise TypeError("its version is the integer that comes with Model.")
        expiries = [
            each
            for each in attributes.values()
            if isinstance(each, TTLAttribute) or each.attr_name == cls.ttl_attribute
        ]
        if expiries or cls.ttl_attribute:
            if [each.attr_type for each in expiries] != ["N"]:
                raise TypeError("ttl_attribute must be the stored name of one number.")
            cls.ttl_attribute = str(expiries[0].attr_name)
        names = [
            name
            for base in reversed(cls.__mro__)
            for name, each in vars(base).items()
            if isinstance(each, Unique)
        ]
        uniques = (getattr(cls, name) for name in dict.fromkeys(names))
        cls._unique_keys = [UniqueKey.of(each, attributes) for each in uniques if each is not None]
        prefixes = [each.prefix for each in cls._unique_keys]
        if len({*prefixes}) < len(prefixes) or f"{VERSION}{SEPARATOR}" in prefixes:
            raise TypeError("a Unique is declared twice, or for the version.")
        if cls.ttl_attribute and cls._unique_keys:
            raise TypeError(
                "items that expire cannot have unique values: DynamoDB would delete them without "
                "their guard items. Delete them by a command, by an attribute of another type."
            )
        cls._fixed = {VERSION, *cls.key_attribute_names()}
        cls._has_own_guard_table = not cls._keeps_guards_beside_items()
        cls._index_keys = {}
        for index in cls._indexes.values():
            for name, limit in complete_index(cls, index).items():
                cls._index_keys[name] = min(limit, cls._index_keys.get(name, limit))

    # Writing --------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, *, request_id: object = None, write: Transaction | None = None, **values: Any
    ) -> Self:
        """Make and store an item with `values`, by attribute name.

        `request_id` makes the call repeatable, at any time: a later call with the same id and the
        same values returns the item that the first one made, as it is stored by then. Take an id
        that the caller keeps, such as one in a form. After the item is deleted, the same id makes
        it again. For a model with the default key, the key is derived from the request id; another
        model gets one more guard item for it.

        Costs 1 request, 1 write unit; with n unique values 2 + 2n. 2 units more for a request id
        of a model with a key of its own.

        Raises:
            Taken: other items have unique values of it.
            AlreadyExists: an item has its key.
            RequestIdReused: the request id made an item with other values.
            ValueError, TypeError: a required value is missing, or one is not usable. Nothing was
                sent.
            Unavailable, Rejected, TableMissing: see `client.sending`.
        """
        item = cls(**values)
        if request_id is None:
            return item.insert(write=write)
        return item.insert_for(str(request_id), values, write)

    @classmethod
    def key_of_request(cls, request_id: str) -> str:
        """The default key of the item that `create` makes for `request_id`."""
        return str(uuid.uuid5(REQUEST_IDS, request_id))

    @classmethod
    def check_request_ids(cls) -> None:
        """Raise TypeError if request ids need guard items, and the model cannot have them."""
        if cls._has_own_guard_table and not cls.has_guard_table():
            raise TypeError(
                f"A request id of {cls.__name__} needs a guard item: name a table for guard items "
                "in Meta.guard_table."
            )
        if cls.ttl_attribute and not cls._has_default_key():
            raise TypeError(
                f"A request id of {cls.__name__} needs a guard item, which DynamoDB leaves when it "
                "deletes expired items. Let the model have the default key."
            )

    def insert(self, *, write: Transaction | None = None) -> Self:  # type: ignore[override]
        """Store this new object; see `create`."""
        self._insert(write)
        return self

    def insert_for(
        self, request_id: str, asked: Mapping[str, Any], write: Transaction | None = None
    ) -> Self:
        """Store this new object as `create` does for a request id and the arguments `asked`."""
        if not request_id.strip():
            raise ValueError("The request id must not be empty.")
        digest = {"S": _digest(self._wire_of(asked))}
        marks: Item = {REQUEST_DIGEST: digest}
        claims = []
        reused = self.RequestIdReused(request_id, self._noun())

        def refused(stored: Item | None, digest_name: str) -> Exception | None:
            return None if (stored or {}).get(digest_name) == digest else reused

        def explained(stored: Item) -> Exception | None:
            # Of an item with the default key, neither has an id.
            is_of_request = stored.get(REQUEST_ID) == marks.get(REQUEST_ID)
            return refused(stored, REQUEST_DIGEST) if is_of_request else self._exists()

        if self._has_default_key() and "pk" not in asked:
            self.pk = self.key_of_request(request_id)
        else:
            # The key does not follow from the request id, so that has a guard item.
            self.check_request_ids()
            marks[REQUEST_ID] = {"S": request_id}
            claims.append(
                GuardWrite.claim(
                    self._guard_table(),
                    _guard_key_of_request(request_id),
                    self._owner(),
                    digest=digest["S"],
                    part_of=self,
                    otherwise=lambda refusal: refused(refusal.stored, DIGEST),
                )
            )
        try:
            self._insert(write, marks, explained=explained, claims=claims)
        except AlreadyDone:
            # The request made an item with another key, such as a random one.
            [guard] = claims
            owner = self._read_owner(guard.guard_key) or ""
            self.deserialize(self._get_owner(owner).stored)
        return self

    def _insert(
        self,
        write: Transaction | None,
        marks: Item | None = None,
        *,
        explained: Callable[[Item], Exception | None] | None = None,
        claims: Iterable[GuardWrite] = (),
    ) -> Item:
        """Put the item, with `marks`, and its guard items. Returns it as sent.

        If its key is used, `explained` returns the error for the stored item, None if that is what
        this is to store; by default it is AlreadyExists.
        """
        # No two items begin with one version; a repeated insertion has that of the first one.
        if self.stored or self._drawn is None or self.version != self._drawn:
            self.stored = {}
            self.version = self._drawn = new_version()
        item = self.serialize()
        self._check_key(item)
        self._check_index_keys(item)
        sent: Item = item | (marks or {})
        put = {
            "TableName": self.table(),
            "Item": sent,
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": self.key_attribute_names()[0]},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

        def refused(refusal: Refusal) -> Exception | None:
            stored = refusal.stored or {}
            if continues(self._version_of(stored), int(sent[VERSION]["N"])):
                return None
            return explained(stored) if explained else self._exists()

        with joined(write) as write:
            write.add(Write(self, {"Put": put}, refused), *self._guard_writes({}, item), *claims)
            write.on_commit(self, lambda stored: self._become(stored or sent, sent))
        return sent

    def save(  # type: ignore[override]  # Django's, not PynamoDB's
        self,
        *conditions: Never,
        update_fields: Iterable[str] | None = None,
        write: Transaction | None = None,
        **options: Any,
    ) -> None:
        """Store the attributes that were set since the object was read; a new object completely.

        Other attributes of the stored item are not written. `update_fields` names the attributes to
        store, as in Django, whose other options are ignored; what else was set stays, to be saved.
        Unlike in Django, an object whose item was deleted is not stored again: that is Stale.
        `insert` stores it as a new item. Costs and errors as `change`; of a new object as `create`.
        """
        if conditions or options.keys() - _DJANGOS_OPTIONS:
            raise TypeError("save takes no condition and no values: call change(…, condition=…).")
        if not self.stored:
            self.insert(write=write)
            return
        wanted = None if update_fields is None else set(update_fields)
        if unknown := self._unknown(wanted or ()):
            raise ValueError(f"update_fields: {unknown}")
        assigned = self._assigned(self.stored)
        names = assigned.keys() if wanted is None else assigned.keys() & wanted
        self.change(write=write, **{name: assigned[name] for name in names})

    def _assigned(self, before: Item) -> dict[str, Any]:
        """The values, by attribute name, that were set since this object was the item `before`."""
        assigned: dict[str, Any] = {}
        read = None
        for name, stored_name, attribute in self._named_attributes():
            value = self.attribute_values.get(name)
            if value is None and stored_name not in before:
                continue
            if _is_stored_as(attribute, value, before.get(stored_name)):
                continue
            # A value can be stored in another form, and a constant stands for an absent one.
            read = read or type(self).from_raw_data(before)
            as_read = read.attribute_values.get(name)
            typed = None if as_read is None else _typed(attribute, as_read)
            if not _is_stored_as(attribute, value, typed):
                assigned[name] = value
        return assigned

    def _become(self, stored: Item, before: Item, written: Collection[str] = ()) -> None:
        """Be the item `stored`, with what was set since this object was `before`.

        The attributes called `written` are those of `stored` alone.
        """
        assigned = self._assigned(before)
        self.deserialize(stored)
        for name in assigned.keys() - written:
            self.attribute_values[name] = assigned[name]

    def change(
        self,
        *,
        add: Mapping[str, Any] | None = None,
        condition: Condition | None = None,
        write: Transaction | None = None,
        **values: Any,
    ) -> None:
        """Give the stored item `values`, by attribute name (None removes one), and this object too.

        `add` counts up: `{"views": 1}`. Without other values it counts also if the item changed
        since it was read. `condition` must hold for the stored item as well.

        After the commit this object is what is stored; what was assigned to other attributes stays,
        for a later `save`. If it has all values already, nothing is sent. If another call gave the
        stored item these values meanwhile, it is a success.

        Costs 1 request, 1 write unit; with m unique values that change 2 + 4m. If `write` has
        other writes and `add` is given, 1 request and 1 read unit more.

        Raises:
            Taken: other items have the unique values.
            Stale: the item changed or was deleted since it was read.
            ConditionFailed: it did not, but `condition` does not hold.
            ValueError, TypeError: a value is not usable. Nothing was sent.
            Unavailable, Rejected, TableMissing: see `client.sending`. Unavailable also if a
                reply was lost and the item changed since.
        """
        self._check_writable("change")
        if both := values.keys() & (add or {}).keys():
            raise TypeError(f"change sets {', '.join(both)} or adds to it, not both.")
        changed = self._changed(values)
        if not (changed or add or condition is not None):
            self._become(self.stored, self.stored, values)
            return
        self._update(changed, self._added(add or {}), condition, asked=values, write=write)

    def _changed(self, values: Mapping[str, Any]) -> dict[str, dict[str, Any] | None]:
        """Those of `values` that are not stored, by stored name; None for one that is removed."""
        return {
            name: typed
            for name, typed in self._wire_of(values, removals=True).items()
            if not is_same_value(self._stored_value(name), typed)
        }

    def moves_guard(self, changed: Mapping[str, dict[str, Any] | None]) -> bool:
        """Whether the stored item would have another guard item with the typed values `changed`."""
        after = {name: typed for name, typed in {**self.stored, **changed}.items() if typed}
        return any(self._moved(self.stored, after))

    def _added(self, add: Mapping[str, Any]) -> Item:
        added = self._wire_of(add, removals=True)
        taken = {name for unique in self._unique_keys for name in unique.stored_names}
        for name, typed in added.items():
            if "N" not in (typed or {}) or name in taken:
                raise TypeError(f"add counts up numbers that are not unique; {name} is not one.")
        return added

    def _update(
        self,
        changed: Mapping[str, dict[str, Any] | None],
        added: Item,
        condition: Condition | None,
        *,
        is_so: Callable[[Item], bool] | None = None,
        asked: Iterable[str] = (),
        write: Transaction | None,
    ) -> None:
        """Write the typed values `changed` (None removes one) and count up by `added`.

        What was set on this object stays, except of these attributes and those called `asked`.

        If the item changed since it was read, it is a success if `is_so` holds for the stored one;
        by default if that has the values.
        """
        self._check_index_keys(changed)
        item = {**self.stored, **changed}
        left = {name: typed for name, typed in item.items() if typed is not None}
        counts_only = bool(added) and not changed
        version = next_version(self._stored_version())
        if counts_only:
            mine = self._is_same_item_condition()
            added = {**added, VERSION: {"N": "1"}}
        else:
            mine = self.unchanged()
            changed = {**changed, VERSION: {"N": str(version)}}
            left[VERSION] = {"N": str(version)}
        # Where a constant stands for a number that is not stored, it is counted up from that.
        counted = {
            name: (start, step)
            for name, step in added.items()
            if name not in self.stored
            and (start := {"N": str(version)} if name == VERSION else self._stored_value(name))
        }
        adding = {name: step for name, step in added.items() if name not in counted}
        update = replace(Update.of_values(changed, adding), count=counted)
        request = update.request(self._address(), mine if condition is None else mine & condition)

        def has_values(stored: Item) -> bool:
            return all(
                is_same_value(stored.get(name), typed)
                for name, typed in changed.items()
                if name != VERSION
            )

        def otherwise(refusal: Refusal) -> Exception | None:
            stored = refusal.stored
            if stored is None or not self.is_same_item(stored):
                return self._stale(is_deleted=True)
            is_done = (is_so or has_values)(stored)
            if is_done and not (added or condition is not None):
                return None
            now = self._version_of(stored)
            # The first write after the version that was read is this one if it has the values.
            if refusal.repeated and continues(now, version) and (is_done or now != version):
                return refusal.unknown()
            if condition is not None and (counts_only or now == self._stored_version()):
                return ConditionFailed("UpdateItem", refusal.repeated, stored)
            return self._stale()

        before = self.stored
        written = {*asked, *map(self._dynamo_to_python_attr, (*changed, *added))}

        def committed(stored: Item | None) -> None:
            if stored is None and added:
                stored = send("GetItem", self._address()).get("Item")
                if stored is None:
                    # It was deleted since. The commit is a success nevertheless.
                    return
            self._become(left if stored is None else stored, before, written)

        guards = self._guard_writes(self.stored, left)
        with joined(write) as write:
            whole = Write(self, {"Update": request}, otherwise, changes=update)
            write.add(whole, *guards)
            write.on_commit(self, committed)

    def delete(  # type: ignore[override]  # Django's, not PynamoDB's
        self, *conditions: Never, write: Transaction | None = None, **options: Never
    ) -> None:
        """Delete the stored item and free its unique values.

        If it was deleted already, it is a success. Costs 1 request, 1 write unit; with n unique
        values 2 + 2n.

        Raises:
            Stale: it changed since it was read.
        """
        if conditions or options:
            raise TypeError(
                "delete takes no condition: it deletes the item only if that is still as it was "
                "read. So check this object before."
            )
        self._check_writable("delete")
        names: dict[str, str] = {}
        values: dict[str, Any] = {}
        request = {
            **self._address(),
            "ConditionExpression": self.unchanged().serialize(names, values),
            "ExpressionAttributeNames": {each: name for name, each in names.items()},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        } | ({"ExpressionAttributeValues": values} if values else {})

        def otherwise(refusal: Refusal) -> Exception | None:
            return None if refusal.stored is None else self._stale()

        with joined(write) as write:
            write.add(
                Write(self, {"Delete": request}, otherwise), *self._guard_writes(self.stored, {})
            )
            write.on_commit(self, lambda _stored: setattr(self, "_is_deleted", True))

    def expect_version(self, version: int) -> None:
        """Write only if the stored item has `version`, such as that of the page with a form.

        Raises:
            Stale: this object is older, so a write could not know the guard items.
        """
        if follows(version, self._stored_version() or 0):
            raise self._stale()
        self.version = version
        self.stored = {**self.stored, VERSION: {"N": str(version)}}

    # Conditions -----------------------------------------------------------------------------------

    def unchanged(self) -> Condition:
        """The condition that the stored item is still the one that was read."""
        version = self._stored_version()
        path = Path([VERSION])
        if version is not None:
            same: Condition = path == self.stored[VERSION]
        else:
            same = self._exists_condition() & path.does_not_exist()
        return same

    def _exists_condition(self) -> Condition:
        exists: Condition = Path([self.key_attribute_names()[0]]).exists()
        return exists

    def _exists(self) -> Exception:
        """The error of a new item whose key is used."""
        return self.AlreadyExists(self._noun())

    def _stale(self, *, is_deleted: bool = False) -> Exception:
        """The error of a write to an item that changed since it was read."""
        return self.Stale(self._noun(), is_deleted=is_deleted)

    def _taken(self, names: tuple[str, ...], values: Mapping[str, Any]) -> Exception:
        """The error of a `Unique` of `names` whose `values` another item has."""
        return self.Taken(self._noun(), {names: values})

    def _is_same_item_condition(self) -> Condition:
        """The condition that the stored item is this one, with any changes since it was read."""
        version = self._stored_version()
        if not is_random(version):
            return self._exists_condition()
        upper = {"N": str(version + MOST_WRITES)}
        same: Condition = Path([VERSION]).between(self.stored[VERSION], upper)
        return same

    def is_same_item(self, stored: Item) -> bool:
        """Whether `stored` is this item, perhaps changed, and not another one under its key."""
        version = self._stored_version()
        if not is_random(version):
            # An item of version 0.1 is known by its key alone.
            return True
        return continues(self._version_of(stored), version)

    def _stored_version(self) -> int | None:
        return self._version_of(self.stored)

    @classmethod
    def _version_of(cls, item: Item) -> int | None:
        """The version of the stored `item`, None if it has none. Raises DamagedItem."""
        typed = item.get(VERSION)
        try:
            return None if typed is None else stored_version(typed)
        except ValueError as error:
            raise cls._damaged(item, VERSION) from error

    def deserialize(self, attribute_values: Item) -> None:
        super().deserialize(attribute_values)
        self._version_of(attribute_values)
        self._is_deleted = False

    # Guard items ----------------------------------------------------------------------------------

    @classmethod
    def _keeps_guards_beside_items(cls) -> bool:
        meta = getattr(cls, "Meta", None)
        if getattr(meta, "guard_table", None) or not cls._hash_keyname:
            return False
        key = cls.get_attributes()[cls._hash_keyname]
        return key.attr_type == "S" and not cls._range_keyname

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
        if not cls._has_own_guard_table:
            return GuardTable(cls.table(), cls.key_attribute_names()[0])
        return GuardTable(f"{settings.DYNAMODB_TABLE_PREFIX}{cls.guard_table_name()}", "pk")

    @classmethod
    def _is_guard_key(cls, key: Any) -> bool:
        """Whether an item of the model's table with this partition key is a guard item."""
        return (
            not cls._has_own_guard_table
            and isinstance(key, str)
            and key.startswith(cls._guard_prefixes())
        )

    @classmethod
    def _guard_prefixes(cls) -> tuple[str, ...]:
        return (f"{REQUEST_ID}{SEPARATOR}", *(each.prefix for each in cls._unique_keys))

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
        return json.dumps(typed, default=lambda value: bytes(value).hex())

    @classmethod
    def _key_of_owner(cls, owner: str) -> Item | None:
        """The key that `_owner` made `owner` of; None if it is not one."""
        names = cls.key_attribute_names()
        if len(names) == 1 and cls.get_attributes()[str(cls._hash_keyname)].attr_type == "S":
            return {names[0]: {"S": owner}} if owner and not cls._is_guard_key(owner) else None
        try:
            typed = json.loads(owner)
            return {
                name: {kind: bytes.fromhex(value) if kind == "B" else value}
                for name, each in zip(names, typed, strict=True)
                for kind, value in each.items()
            }
        except (AttributeError, TypeError, ValueError):
            return None

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
    def is_taken(cls, **values: Any) -> bool:
        """Whether an item has `values`, those of one `Unique`, now; only a write decides.

        Costs 1 request and 1 read unit.
        """
        return cls.read_guard(**values) is not None

    @classmethod
    def read_guard(cls, **values: Any) -> Item | None:
        """The guard item of `values`, those of one `Unique`; None if they are free now.

        Costs 1 request and 1 read unit.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        key = cls.guard_key_of(**values)
        return None if key is None else cls._read_guard(key)

    def _moved(
        self, before: Item, after: Item
    ) -> Iterator[tuple[UniqueKey, str | None, str | None]]:
        for unique in self._unique_keys:
            if any(before.get(name) != after.get(name) for name in unique.stored_names):
                old, new = unique.usable_key(before), unique.key(after)
                if old != new:
                    yield unique, old, new

    def _guard_writes(self, before: Item, after: Item) -> list[GuardWrite]:
        """Frees the guard items that `before` had, and claims those that `after` needs.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        table, owner = self._guard_table(), self._owner()
        frees, claims = [], []
        for unique, old, new in self._moved(before, after):
            if old is not None:
                frees.append(GuardWrite.free(table, old, owner, part_of=self))
            if new is not None:
                taken = partial(self._taken_by, unique, after)
                claims.append(GuardWrite.claim(table, new, owner, part_of=self, otherwise=taken))
        if not after and REQUEST_ID in before:
            key = f"{REQUEST_ID}{SEPARATOR}{before[REQUEST_ID].get('S')}"
            frees.append(GuardWrite.free(table, key, owner, part_of=self))
        return frees + claims

    def _taken_by(self, unique: UniqueKey, item: Item, _refusal: Refusal) -> Exception:
        values = {
            name: attribute.deserialize(attribute.get_value(item[stored_name]))
            for name, stored_name, attribute in zip(
                unique.names, unique.stored_names, unique.attributes, strict=True
            )
        }
        return self._taken(unique.names, values)

    # Reading --------------------------------------------------------------------------------------

    @classmethod
    def find(cls, **values: Any) -> Self:
        """The item that has `values`, those of one `Unique`: `Member.find(email="ann@x.example")`.

        Costs 2 requests and 2 read units, 1 each if no item has them.

        Raises:
            DoesNotExist: no item has them.
            TypeError: no `Unique` has exactly these attributes.
        """
        owner = cls.find_owner(**values)
        if owner is None:
            raise cls.DoesNotExist
        return cls.find_from(owner, **values)

    @classmethod
    def find_owner(cls, **values: Any) -> str | None:
        """The first half of `find`: the key of the item that the guard item of `values` names."""
        unique = cls._unique_of(values)
        try:
            key = unique.key(unique.wire(values))
        except ValueError:
            return None
        return None if key is None else cls._read_owner(key)

    @classmethod
    def find_from(cls, owner: str, **values: Any) -> Self:
        """The second half of `find`: the item with the key `owner`, if it has `values`.

        Costs 1 request and 1 read unit.
        """
        unique = cls._unique_of(values)
        item = cls._get_owner(owner)
        try:
            wanted = unique.key(unique.wire(values))
        except ValueError:
            raise cls.DoesNotExist from None
        if wanted is None or unique.usable_key(item.stored) != wanted:
            raise cls.DoesNotExist
        return item

    @classmethod
    def _unique_of(cls, values: Mapping[str, Any]) -> UniqueKey:
        for unique in cls._unique_keys:
            if set(unique.names) == values.keys():
                return unique
        declared = ", ".join(" and ".join(each.names) for each in cls._unique_keys) or "none"
        raise TypeError(
            f"{cls.__name__}.find takes the attributes of one Unique ({declared}), "
            f"not {', '.join(values) or 'nothing'}."
        )

    @classmethod
    def _read_guard(cls, key: str) -> Item | None:
        table = cls._guard_table()
        request = {"TableName": table.name, "Key": {table.key_name: {"S": key}}}
        guard: Item | None = send("GetItem", request).get("Item")
        return None if not guard or is_reserved(guard) else guard

    @classmethod
    def _read_owner(cls, key: str) -> str | None:
        return (cls._read_guard(key) or {}).get(OWNER, {}).get("S") or None

    @classmethod
    def _get_owner(cls, owner: str) -> Self:
        key = cls._key_of_owner(owner)
        stored = key and send("GetItem", {"TableName": cls.table(), "Key": key}).get("Item")
        if not stored:
            raise cls.DoesNotExist
        return cls.from_raw_data(stored)

    @classmethod
    def get(
        cls,
        hash_key: Any,
        range_key: Any = None,
        consistent_read: bool = True,
        attributes_to_get: Any = None,
    ) -> Self:
        """The item with this key. Costs 1 request and 1 read unit per 4 KB.

        `consistent_read=False` costs half and may miss recent writes. An object that was read with
        `attributes_to_get` cannot be written.

        Raises:
            DoesNotExist: there is none, or the key is not one of an item.
        """
        if not cls._is_key(hash_key, range_key):
            raise cls.DoesNotExist
        options = cls._read_options(
            {"consistent_read": consistent_read, "attributes_to_get": attributes_to_get}
        )
        item = super().get(hash_key, range_key, **options)
        return item if attributes_to_get is None else cls._from_part(item.stored)

    @classmethod
    def get_or_none(cls, hash_key: Any, range_key: Any = None) -> Self | None:
        """As `get`; None if there is no such item."""
        try:
            return cls.get(hash_key, range_key)
        except cls.DoesNotExist:
            return None

    def refresh(self, consistent_read: bool = True) -> None:
        """Read the stored item into this object. Costs 1 request and 1 read unit per 4 KB.

        Raises:
            DoesNotExist: it was deleted.
        """
        key = [next(iter(typed.values())) for typed in self._key().values()]
        if not self._is_key(key[0], key[-1]):
            raise self.DoesNotExist
        super().refresh(consistent_read=consistent_read)
        self._is_partial = False

    @classmethod
    def batch_get(cls, items: Iterable[Any]) -> Iterator[Self]:  # type: ignore[override]
        """The items with these keys (or pairs of keys), in no order; absent ones are left out.

        Keys may be repeated. Costs 1 request per 100 keys, 1 read unit per 4 KB of each item.

        Raises:
            Unavailable: DynamoDB did not process all of them until the deadline.
        """
        keys: dict[Any, Item] = {}
        for each in items:
            pair = each if cls._range_keyname else (each, None)
            if cls._is_key(*pair):
                keys[tuple(pair)] = cls(pair[0], pair[1], _user_instantiated=False)._key()
        for stored in bulk.read_batches(cls.table(), list(keys.values())):
            yield cls.from_raw_data(stored)

    @classmethod
    def query(cls, hash_key: Any, *args: Any, **options: Any) -> ResultIterator[Self]:
        """PynamoDB's: the items of a partition, or of an index. Guard items are left out."""
        if not cls.is_partition(hash_key, options.get("index_name")):
            options["limit"] = 0
        return cls._marked(super().query(hash_key, *args, **cls._read_options(options)), options)

    @classmethod
    def page(
        cls,
        hash_key: Any,
        range_key_condition: Condition | None = None,
        filter_condition: Condition | None = None,
        *,
        index_name: str | None = None,
        scan_index_forward: bool = True,
        consistent_read: bool | None = None,
        after: str | None = None,
        limit: int = 50,
        scope: object = "",
    ) -> Page[Self]:
        """A page of the items of a partition, in the order of the sort key.

        `after` is the cursor of the page before, its `next`. It belongs to this query, to the same
        `limit` or another, and to `scope`: name the user there if lists of several users have the
        same partition and conditions. If the item that it leads to was deleted, it still works.

        `scan_index_forward=False` gives the last items first. The other options are those of
        `query`. Guard items are left out.

        Costs 1 request, and 1 read unit per 4 KB of `limit` + 1 items (half of that if the read is
        not consistent, as of an index). With `filter_condition`, or if the items exceed 1 MB, at
        most 5 requests, each of which looks at no more than `limit` + 1 items. So such a page may
        be short, even empty, and have a `next`.

        Raises:
            BadCursor: `after` was changed, or belongs to another query or scope.
            ValueError: `limit` is below 1.
        """
        query = {
            "range_key_condition": range_key_condition,
            "filter_condition": filter_condition,
            "index_name": index_name,
            "scan_index_forward": scan_index_forward,
            "consistent_read": consistent_read,
        }
        return read_page(cls, hash_key, limit, after, scope, query)

    @classmethod
    def scan(  # type: ignore[override]
        cls, filter_condition: Condition | None = None, **options: Any
    ) -> ResultIterator[Self]:
        """PynamoDB's: all items of the table. Guard items are left out, and cost as items do."""
        if not cls._has_own_guard_table and options.get("index_name") is None:
            key = Path([cls.key_attribute_names()[0]])
            for prefix in cls._guard_prefixes():
                filter_condition &= ~key.startswith(prefix)
        return cls._marked(super().scan(filter_condition, **cls._read_options(options)), options)

    @classmethod
    def count(cls, hash_key: Any = None, *args: Any, **options: Any) -> int:
        """PynamoDB's: the number of items of a partition, or of an index."""
        if hash_key is None:
            raise TypeError(
                "count needs a partition: DynamoDB does not know how many items a table has. "
                "Read them all with sum(1 for each in scan())."
            )
        if not cls.is_partition(hash_key, options.get("index_name")):
            return 0
        return super().count(hash_key, *args, **cls._read_options(options))

    @classmethod
    def _read_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Reads are consistent, except of an index and where the caller asks otherwise.

        A part of an item has its key.
        """
        consistent = options.get("consistent_read")
        if consistent is None:
            consistent = options.get("index_name") is None
        options = {**options, "consistent_read": consistent}
        if (names := options.get("attributes_to_get")) is not None:
            options["attributes_to_get"] = [*{*names, *cls.key_attribute_names()}]
        return options

    @classmethod
    def _marked(
        cls, found: ResultIterator[Self], options: Mapping[str, Any]
    ) -> ResultIterator[Self]:
        """The results, of which those read in part cannot be written."""
        index = cls._indexes.get(str(options.get("index_name")))
        is_whole = index is None or index.Meta.projection.projection_type == "ALL"
        if options.get("attributes_to_get") is not None or not is_whole:
            found._map_fn = cls._from_part
        return found

    @classmethod
    def _from_part(cls, data: Item) -> Self:
        item = cls.from_raw_data(data)
        item._is_partial = True
        # No default stands for what was not read.
        for name, stored_name, _attribute in item._named_attributes():
            if stored_name not in data:
                item.attribute_values.pop(name, None)
        return item

    # Keys and values ------------------------------------------------------------------------------

    @classmethod
    def _has_default_key(cls) -> bool:
        return cls._hash_keyname == "pk" and cls.get_attributes()["pk"].default_for_new is new_key

    @classmethod
    def _is_key(cls, hash_key: Any, range_key: Any) -> bool:
        """Whether an item can have this key."""
        is_sort_key = not cls._range_keyname or _fits(range_key, SORT_KEY_MAX_BYTES)
        return is_sort_key and cls.is_partition(hash_key)

    @classmethod
    def is_partition(cls, hash_key: Any, index_name: str | None = None) -> bool:
        """Whether items of the table, or of an index, can have this partition key."""
        is_guard = index_name is None and cls._is_guard_key(hash_key)
        return not is_guard and _fits(hash_key, PARTITION_KEY_MAX_BYTES)

    def _check_key(self, item: Item) -> None:
        values = [next(iter(item[name].values())) for name in self.key_attribute_names()]
        if not self._is_key(values[0], values[-1] if len(values) > 1 else None):
            raise ValueError(f"An item of {type(self).__name__} cannot have the key {values}.")

    def _check_index_keys(self, typed: Mapping[str, dict[str, Any] | None]) -> None:
        for name, limit in self._index_keys.items():
            for value in (typed.get(name) or {}).values():
                if not _fits(value, limit):
                    raise ValueError(
                        f"{name} is the key of an index: it must have 1–{limit} bytes."
                    )

    def _check_writable(self, verb: str) -> None:
        if not self.stored:
            raise TypeError(f"{verb}: this object was neither read nor stored. Call save() first.")
        if self._is_partial:
            raise TypeError(f"{verb}: only a part of this item was read. Call refresh() first.")
        if self._is_deleted and verb != "delete":
            raise self._stale(is_deleted=True)

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
            typed = None if value is None else _typed(attribute, value)
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
        default = attribute.default
        return None if default is None or callable(default) else _typed(attribute, default)

    # Asynchronously, in threads -------------------------------------------------------------------

    @classmethod
    async def acreate(cls, **values: Any) -> Self:
        """As `create`."""
        return await in_thread(cls.create, **values)

    async def asave(self, **options: Any) -> None:
        """As `save`."""
        await in_thread(self.save, **options)

    async def achange(self, **values: Any) -> None:
        """As `change`."""
        await in_thread(self.change, **values)

    async def adelete(self, **options: Any) -> None:
        """As `delete`."""
        await in_thread(self.delete, **options)

    @classmethod
    async def aget(cls, hash_key: Any, range_key: Any = None, **options: Any) -> Self:
        """As `get`."""
        return await in_thread(cls.get, hash_key, range_key, **options)

    @classmethod
    async def afind(cls, **values: Any) -> Self:
        """As `find`."""
        return await in_thread(cls.find, **values)

    @classmethod
    async def apage(cls, hash_key: Any, *args: Any, **options: Any) -> Page[Self]:
        """As `page`."""
        return await in_thread(cls.page, hash_key, *args, **options)

    # Calls that could break the promises ----------------------------------------------------------

    def refuse_raw_write(self, verb: str) -> None:
        right = {"put": "create(…, write=write)", "update": "change(…, write=write)"}
        call = right.get(verb, "delete(write=write)")
        raise TypeError(
            f"{verb}: call {type(self).__name__}.{call}, which also writes the guard items and the "
            "version."
        )

    def update(self, *_args: Any, **_options: Any) -> NoReturn:
        raise TypeError("Call change(…): it also writes the guard items and the version.")

    def get_save_kwargs_from_instance(self, *_args: Any, **_options: Any) -> NoReturn:
        self.refuse_raw_write("put")
        raise AssertionError("unreachable")

    def get_delete_kwargs_from_instance(self, *_args: Any, **_options: Any) -> NoReturn:
        self.refuse_raw_write("delete")
        raise AssertionError("unreachable")

    def get_update_kwargs_from_instance(self, *_args: Any, **_options: Any) -> NoReturn:
        self.refuse_raw_write("update")
        raise AssertionError("unreachable")

    batch_write: Callable[..., Any]


def _refuse_batch(*_args: Any, **_options: Any) -> NoReturn:
    raise TypeError(
        "A batch has no conditions: call create(…), change(…) or delete() for each item."
    )


Model.batch_write = staticmethod(_refuse_batch)


def _fits(key: Any, limit: int) -> bool:
    size = key.encode() if isinstance(key, str) else key
    return key is not None and (not isinstance(size, bytes) or 0 < len(size) <= limit)


def _guard_key_of_request(request_id: str) -> str:
    key = f"{REQUEST_ID}{SEPARATOR}{request_id}"
    if len(key.encode()) > PARTITION_KEY_MAX_BYTES:
        raise ValueError("The request id is too long.")
    return key


def _is_stored_as(attribute: Any, value: Any, typed: dict[str, Any] | None) -> bool:
    try:
        return is_same_value(None if value is None else _typed(attribute, value), typed)
    except UNUSABLE:
        return False


def _typed(attribute: Any, value: Any) -> dict[str, Any] | None:
    typed = {attribute.attr_type: attribute.serialize(value)}
    # Of an empty set the stored value is None.
    return None if next(iter(typed.values())) is None else typed


def _digest(asked: Item) -> str:
    text = json.dumps(ordered(asked), default=_as_json, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _as_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, (set, frozenset)) else bytes(value).hex()
