"""The base of every table's model: PynamoDB's model on the shared client, without its writes.

PynamoDB's own `save` puts the whole item. It brings a deleted item back, and replaces what another
process wrote in the meantime by old values. Here an item is inserted once, under the condition that
it is absent, and then changed by updates of single attributes, each under a condition.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import classproperty
from pynamodb.attributes import Attribute, DiscriminatorAttribute, ListAttribute, MapAttribute
from pynamodb.connection import Connection
from pynamodb.connection.base import MetaTable
from pynamodb.connection.table import TableConnection
from pynamodb.exceptions import AttributeNullError
from pynamodb.expressions.update import Action
from pynamodb.models import Model as PynamoModel

from dynamo.client.sending import CONSISTENT, send, write_one
from dynamo.client.settings import APPS
from dynamo.exceptions import AlreadyExists, DamagedItem
from dynamo.wire.attributes import number_text
from dynamo.wire.fields import Options
from dynamo.wire.types import Address, Item, Request, Typed
from dynamo.wire.updates import conditional
from dynamo.wire.values import (
    UNUSABLE,
    as_hex,
    as_typed,
    as_written,
    canonical,
    canonical_of,
    is_same_value,
    kind_and_value,
    typed_value,
    value_of,
)

#: The Python name, the stored name and the attribute.
Named = tuple[str, str, Attribute]

TABLE_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


_Class = TypeVar("_Class", bound=type)
_Value = TypeVar("_Value")

#: Called with a damaged item, as stored, and its error. Returns its replacement in the result; None
#: leaves the item out.
Damaged = Callable[[Item, DamagedItem], object]


class SharedConnection(Connection):
    """PynamoDB's builder of requests. `client.sending` sends them.

    PynamoDB's default is a read that is not consistent. Unless `may_miss_writes`, a read without an
    explicit True is sent without the parameter, so that `send` decides.
    """

    def __init__(self, may_miss_writes: bool) -> None:
        super().__init__()
        self.may_miss_writes = may_miss_writes

    def _make_api_call(self, operation_name: str, operation_kwargs: dict[str, Any]) -> Any:
        if not operation_kwargs.get("ConsistentRead"):
            operation_kwargs.pop("ConsistentRead", None)
            if self.may_miss_writes and operation_name in CONSISTENT:
                operation_kwargs["ConsistentRead"] = False
        for name in {"Key", "ExpressionAttributeValues"} & operation_kwargs.keys():
            # PynamoDB's attributes write numbers in the form of JSON.
            values = operation_kwargs[name]
            operation_kwargs[name] = {key: canonical(typed) for key, typed in values.items()}
        return send(operation_name, operation_kwargs)


class Described(MetaTable):
    """PynamoDB's description of a table, for indexes whose keys have several attributes.

    PynamoDB's own supports one partition and one sort attribute.
    """

    def get_key_names(self, index_name: str | None = None) -> list[str]:
        schemas = [self.data["KeySchema"]]
        for index in self.data["GlobalSecondaryIndexes"]:
            schemas += [index["KeySchema"]] if index["IndexName"] == index_name else []
        return [*dict.fromkeys(part["AttributeName"] for schema in schemas for part in schema)]


def not_supported(advice: str) -> Any:
    def method(*args: object, **kwargs: object) -> object:
        raise TypeError(advice)

    return method


def per_class(compute: Callable[[_Class], _Value]) -> Callable[[_Class], _Value]:
    """`compute`, called once for each class.

    The value is kept as long as its class. A cache of functools would keep the class itself, and a
    class whose declaration was refused would remain among the models.
    """
    name = f"{compute.__name__} of this class"

    def of_class(cls: _Class) -> _Value:
        if name not in cls.__dict__:
            setattr(cls, name, compute(cls))
        value: _Value = cls.__dict__[name]
        return value

    return of_class


class PlainModel(PynamoModel):
    """The items of a table. A subclass names its table, without the prefix, in `Meta.table_name`.

    Two models may describe items of the same table.
    """

    #: The attributes of a model that Django's forms, auth and admin read.
    _meta = classproperty(per_class(Options))

    #: The item as it was last read or written, with which changes are compared. Empty for an object
    #: that is not stored yet.
    stored: Item = {}  # noqa: RUF012 - replaced, never changed

    #: The key of an object that was not read, as stored, if it is known.
    _addressed: Item = {}  # noqa: RUF012 - replaced, never changed

    _discriminator: ClassVar[str | None]

    #: The stored name of the attribute by which DynamoDB's TTL deletes items; None if none expire.
    ttl_attribute: ClassVar[str | None] = None

    #: The reason why items of this model are never dumped; empty if they are dumped.
    _not_dumped: ClassVar[str] = ""
    #: The reason why `dump_filter` leaves out some items; empty if it includes all.
    _left_out: ClassVar[str] = ""

    #: Whether `consistent_read=False` has an effect. Otherwise all reads are consistent.
    _may_miss_writes: ClassVar[bool] = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        needed = {"dynamo", cls.__module__.partition(".")[0]} & APPS
        if apps.apps_ready and (missing := [app for app in needed if not apps.is_installed(app)]):
            raise ImproperlyConfigured(
                f"Add {' and '.join(sorted(missing))} to INSTALLED_APPS. Only for installed apps, "
                "settings get their defaults, and createtables creates the tables."
            )

    @classmethod
    def table(cls) -> str:
        """The table's full name, with DYNAMODB_TABLE_PREFIX."""
        return f"{settings.DYNAMODB_TABLE_PREFIX}{cls._table_name()}"

    @classmethod
    def _table_name(cls) -> str:
        """The table's name, without the prefix.

        Raises:
            TypeError: the model has none.
        """
        name = getattr(getattr(cls, "Meta", None), "table_name", None)
        if not name:
            raise TypeError(f"{cls.__name__} has no table: name one in Meta.table_name.")
        return str(name)

    @classmethod
    @per_class
    def key_attribute_names(cls) -> list[str]:
        """The stored names of the key attributes: the partition key, then any sort key."""
        return [stored_name for _name, stored_name, _attribute in cls._key_attributes()]

    @classmethod
    @per_class
    def _named_attributes(cls) -> list[Named]:
        """All attributes with their Python and stored names. Cached, because PynamoDB is slow."""
        attributes = cls.get_attributes().items()
        return [(name, str(item.attr_name), item) for name, item in attributes]

    @classmethod
    @per_class
    def _key_attributes(cls) -> list[Named]:
        """The attributes of the partition key and of any sort key.

        Raises:
            TypeError: the model has no table.
        """
        cls._table_name()
        named = {attribute[0]: attribute for attribute in cls._named_attributes()}
        return [named[name] for name in (cls._hash_keyname, cls._range_keyname) if name]

    def _address(self) -> Address:
        """The parameters of a request that name this item."""
        return {"TableName": self.table(), "Key": self._key()}

    def _key(self) -> Item:
        """The key, as stored. Raises AttributeNullError if a part of it is missing."""
        key: Item = {}
        read = self.stored or self._addressed
        for name, stored_name, attribute in self._key_attributes():
            typed = typed_value(attribute, self.attribute_values.get(name))
            if typed is None:
                raise AttributeNullError(name)
            before = read.get(stored_name, typed)
            is_same = before != typed and as_written(attribute, before) == typed
            key[stored_name] = before if is_same else typed
        return key

    @classmethod
    def key_texts(cls, item: Item) -> list[str]:
        """The parts of the key of the stored `item` as texts: a binary one is hexadecimal."""
        texts = []
        for name in cls.key_attribute_names():
            kind, value = kind_and_value(item[name])
            number = number_text(value) if kind == "N" else ""
            texts.append(number or (as_hex(value) if kind == "B" else value))
        return texts

    @classmethod
    def key_of_texts(cls, texts: Iterable[str]) -> Item:
        """The key whose `key_texts` are `texts`.

        Raises:
            ValueError: an item cannot have it.
        """
        return {
            name: cls.key_of_text(attribute, text)
            for (_name, name, attribute), text in zip(cls._key_attributes(), texts, strict=True)
        }

    @staticmethod
    def key_of_text(attribute: Attribute, text: str) -> Typed:
        """The part of a key whose text in `key_texts` is `text`.

        Raises:
            ValueError, ArithmeticError: no key has this text.
        """
        kind = attribute.attr_type
        number = number_text(text) if kind == "N" else ""
        return as_typed(kind, number or (bytes.fromhex(text) if kind == "B" else text))

    def refuse_raw_write(self, verb: str) -> None:
        """Raise TypeError if a write that the caller composes could break a promise of the model.

        `verb` is `put`, `update` or `delete`.
        """

    @classmethod
    def _get_connection(cls) -> TableConnection:
        cached = cls.__dict__.get("_connection")
        if cached is None or cached.table_name != cls.table():
            cached = TableConnection(cls.table())
            cached.connection = SharedConnection(cls._may_miss_writes)
            cached.connection.add_meta_table(Described(cls._description()))
            cls._connection = cached
        return cached

    @classmethod
    def _description(cls) -> dict[str, object]:
        """The key and the indexes, in the form of DescribeTable's answer."""
        schema: Any = cls._get_schema()
        names = {"index_name": "IndexName", "key_schema": "KeySchema", "projection": "Projection"}
        return {
            "TableName": cls.table(),
            "KeySchema": schema["key_schema"],
            "AttributeDefinitions": schema["attribute_definitions"],
            "GlobalSecondaryIndexes": [
                {name: index[pynamos] for pynamos, name in names.items()}
                for index in schema["global_secondary_indexes"]
            ],
        }

    @classmethod
    def from_raw_data(cls, data: Item) -> Self:
        """The object for a stored item.

        Raises:
            DamagedItem: a value does not have its attribute's type.
            DoesNotExist: its discriminator says that it is an item of another class.
        """
        item = cls._class_of(data)(_user_instantiated=False)
        item.deserialize(data)
        return item

    @classmethod
    def _objects_of(
        cls,
        items: Iterable[Item],
        damaged: Damaged | None = None,
        make: Callable[[Item], object] | None = None,
    ) -> Iterator[Any]:
        """The objects for the stored `items`, without those of other classes of the table.

        Raises:
            DamagedItem: an item is damaged, and there is no `damaged` to replace it.
        """
        for item in items:
            try:
                made = (make or cls.from_raw_data)(item)
            except cls.DoesNotExist:
                continue
            except DamagedItem as error:
                if damaged is None:
                    raise
                made = damaged(item, error)
            if made is not None:
                yield made

    @classmethod
    def _damage_in(cls, items: Iterable[Item]) -> Iterator[tuple[Item, DamagedItem]]:
        """The damaged items among `items` of the model's table, with their errors."""
        # A guard item has a key that no item can have.
        own = filter(cls._is_key_of, items)
        for found in cls._objects_of(own, damaged=lambda *pair: pair):
            if isinstance(found, tuple):
                yield found

    @classmethod
    def _class_of(cls, item: Item) -> type[Self]:
        """The class of a stored item, this one or a subclass.

        Raises the errors of `from_raw_data`.
        """
        if not cls._discriminator:
            return cls
        attribute = cast(DiscriminatorAttribute, cls.get_attributes()[cls._discriminator])
        try:
            kind = cls._get_discriminator_class(cast(dict[str, dict[str, Any]], item))
        except UNUSABLE as error:
            raise cls._damaged(item, attribute.attr_name) from error
        if kind is None and attribute.get_discriminator(cls) is None:
            kind = cls
        if kind is None or not issubclass(kind, cls):
            raise cls.DoesNotExist
        found: type[Self] = kind
        return found

    @classmethod
    def _damaged(cls, item: Item, attribute: str) -> DamagedItem:
        key = [*(item.get(name, {}) for name in cls.key_attribute_names())]
        texts = (str(value) for typed in key for value in typed.values())
        return DamagedItem(cls.table(), "#".join(texts), attribute)

    def deserialize(self, attribute_values: Item) -> None:  # type: ignore[override]  # PynamoDB does not type values
        """Take the values of a stored item. PynamoDB calls this after an update.

        Raises:
            DamagedItem: a value does not have its attribute's type.
            DoesNotExist: its discriminator says that it is an item of another class.
        """
        if self._class_of(attribute_values) is not type(self):
            raise self.DoesNotExist
        # This does what PynamoDB does, in a fifth of the time.
        before, self.attribute_values = self.attribute_values, {}
        try:
            self._set_values(attribute_values, self._named_attributes())
            self._note_stored(attribute_values)
        except DamagedItem:
            self.attribute_values = before
            raise

    def _set_values(self, item: Item, attributes: Iterable[Named]) -> None:
        """Set `attributes`, as in `_named_attributes`, to their values in the stored `item`."""
        values = self.attribute_values
        for name, stored_name, attribute in attributes:
            typed = item.get(stored_name)
            if typed and "NULL" not in typed:
                try:
                    value = value_of(attribute, typed)
                except UNUSABLE as error:
                    raise self._damaged(item, stored_name) from error
                if isinstance(attribute, MapAttribute):
                    attribute.__set__(self, value)
                else:
                    values[name] = value
            elif attribute.default is not None:
                default = attribute.default
                values[name] = default() if callable(default) else default
            else:
                values.pop(name, None)

    def _note_stored(self, stored: Item) -> None:
        """Called after this object took the values of the item `stored`."""
        self.stored = stored

    def serialize(self, null_check: bool = True) -> Item:  # type: ignore[override]  # as above
        """The item as stored. PynamoDB's slower method also visits attributes without a value."""
        item: Item = {}
        for name, stored_name, attribute in self._named_attributes():
            value = self.attribute_values.get(name)
            typed = None
            if value is not None:  # most attributes of an account have no value
                if null_check or not isinstance(attribute, (ListAttribute, MapAttribute)):
                    typed = typed_value(attribute, value)
                else:
                    nested = as_typed(
                        attribute.attr_type, attribute.serialize(value, null_check=False)
                    )
                    typed = canonical_of(stored_name, nested)
            if typed:
                item[stored_name] = typed
            elif null_check and not attribute.null:
                raise AttributeNullError(name)
        return item

    @classmethod
    def _put_if_absent(cls, item: Item) -> Request:
        """The parameters of a request that puts `item`, as stored, if no item has its key."""
        return conditional(
            {"TableName": cls.table(), "Item": item},
            "attribute_not_exists(#key)",
            names={"#key": cls.key_attribute_names()[0]},
        )

    # Dumps ----------------------------------------------------------------------------------------

    @classmethod
    def dumped_first(cls) -> list[tuple["type[PlainModel]", Item]]:
        """Items of other models that a dump must contain before the items of this model."""
        return []

    @classmethod
    def dump_filter(cls, first: Iterable[Item]) -> Callable[[Item], bool]:
        """A function that selects the items of a dump. `first` are the items of `dumped_first`."""
        return cls.is_item

    @classmethod
    def is_item(cls, item: Item) -> bool:
        """Whether the stored `item` is one of this class, perhaps damaged, and no guard item."""
        try:
            return cls._is_key_of(item) and bool(cls._class_of(item))
        except cls.DoesNotExist:
            return False
        except DamagedItem:
            return True

    @classmethod
    def _is_key_of(cls, item: Item) -> bool:
        return all(name in item for name in cls.key_attribute_names())

    @classmethod
    def restore(cls, item: Item) -> bool:
        """Store the `item` of a dump under its key; False if it is stored already.

        Costs 1 request and 1 write unit per KB; with guard items, as much as `create`.

        Raises:
            AlreadyExists: an item with other values has its key.
            Taken, DamagedItem, ValueError: the item breaks a rule of the model.
        """
        return cls._restore_as_it_is(item)

    @classmethod
    def _restore_as_it_is(cls, item: Item) -> bool:
        key = {name: item[name] for name in cls.key_attribute_names()}
        done = write_one("PutItem", cls._put_if_absent(item) | Request(Key=key))
        if done or is_same_value({"M": done.stored or {}}, {"M": item}):
            return bool(done)
        raise AlreadyExists(str(cls._meta.verbose_name)) from done.refused

    # PynamoDB's methods would write without a condition, leave guard items behind, or use the
    # table's name without its prefix.
    create_table = update_ttl = not_supported(
        "Run manage.py createtables: it also creates indexes and the table of guard items."
    )
    exists = not_supported("Run manage.py check --tag dynamodb: it names the missing tables.")
    delete_table = not_supported("Delete tables with AWS's tools, and those of guard items.")
    batch_get = not_supported("Read many items with dynamo.client.bulk.read_batches.")
    batch_write = not_supported("Write many items with dynamo.client.bulk.write_batches.")
    delete = not_supported("Delete an item in a transaction, together with its guard items.")
    save = not_supported("Put an item in a transaction, then update single attributes.")

    @classmethod
    def set_or_remove(cls, values: Mapping[str, object]) -> list[Action]:
        """The update actions that set attributes, by Python name, to `values`; None removes one."""
        attributes = cls.get_attributes()
        return [
            attributes[name].remove() if value is None else attributes[name].set(value)
            for name, value in values.items()
        ]


def all_models(base: type[PlainModel] = PlainModel) -> Iterator[type[PlainModel]]:
    """Every model that names a table, in the order of their definition."""
    for model in base.__subclasses__():
        if getattr(getattr(model, "Meta", None), "table_name", None):
            yield model
        yield from all_models(model)
