"""The base of every table's model: PynamoDB on the shared client, written attribute by attribute.

PynamoDB's own `save` puts the whole item: it brings a deleted item back, and old values over what
another wrote meanwhile. Here an item is inserted once, under the condition that it is absent, and
from then on changed by updates of single attributes, each under a condition.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from django.conf import settings
from pynamodb.attributes import Attribute
from pynamodb.connection import Connection
from pynamodb.connection.base import MetaTable
from pynamodb.connection.table import TableConnection
from pynamodb.constants import NUMBER
from pynamodb.exceptions import AttributeDeserializationError
from pynamodb.expressions.update import Action
from pynamodb.models import Model as PynamoModel

from dynamo.client.sending import send
from dynamo.exceptions import DamagedItem

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
PARTITION_KEY_MAX_BYTES = 2048
TABLE_NAME_PATTERN = re.compile(r"[a-zA-Z0-9_.-]{3,255}")

Item = dict[str, dict[str, Any]]
"""An item as on the wire: attribute names to typed values, `{"pk": {"S": "…"}}`."""


class SharedConnection(Connection):
    """PynamoDB's builder of requests; the sending is left to `dynamo.client.sending`."""

    def _make_api_call(self, operation_name: str, operation_kwargs: dict[str, Any]) -> Any:
        return send(operation_name, operation_kwargs)


class Model(PynamoModel):
    """A table's items. A subclass names its table, without the prefix, in `Meta.table_name`."""

    #: The item as it was last read or written; what a change is compared with.
    stored: Item

    #: The attribute that DynamoDB's TTL sweeps by, as stored; None where nothing expires.
    ttl_attribute: ClassVar[str | None] = None

    @classmethod
    def table(cls) -> str:
        """The table's full name, prefix included."""
        return f"{settings.DYNAMODB_TABLE_PREFIX}{cls.Meta.table_name}"

    @classmethod
    def key_attribute_names(cls) -> list[str]:
        """The names of the key attributes as stored: the partition key, then any sort key."""
        keys = sorted(cls._get_schema()["key_schema"], key=lambda key: key["KeyType"] != "HASH")
        return [key["AttributeName"] for key in keys]

    @classmethod
    def _get_connection(cls) -> TableConnection:
        cached = cls.__dict__.get("_connection")
        if cached is None or cached.table_name != cls.table():
            schema = cls._get_schema()
            cached = TableConnection(cls.table())
            cached.connection = SharedConnection()
            cached.connection.add_meta_table(
                MetaTable(
                    {
                        "TableName": cls.table(),
                        "KeySchema": schema["key_schema"],
                        "AttributeDefinitions": schema["attribute_definitions"],
                    }
                )
            )
            cls._connection = cached
        return cached

    @classmethod
    def from_raw_data(cls, data: Item) -> Self:
        """The object for an item as on the wire.

        Raises:
            DamagedItem: a value is not of its attribute's type.
        """
        try:
            item = super().from_raw_data(data)
        except (AttributeDeserializationError, ValueError) as error:
            key = data.get(cls.key_attribute_names()[0], {})
            raise DamagedItem(cls.table(), str(next(iter(key.values()), "")), str(error)) from error
        item.stored = data
        return item

    def deserialize(self, attribute_values: Item) -> None:
        """Take the values of an item as on the wire (PynamoDB calls this after an update)."""
        super().deserialize(attribute_values)
        self.stored = attribute_values

    def insert(self) -> None:
        """Put the item under the condition that its key is absent.

        Costs 1 request, 1 write unit per KB.

        Raises:
            ConditionFailed: an item has this key already.
        """
        absent = type(self)._hash_key_attribute().does_not_exist()  # type: ignore[no-untyped-call]  # PynamoDB's
        super().save(condition=absent)
        self.stored = self.to_dynamodb_dict()

    @classmethod
    def batch_get(cls, *args: Any, **kwargs: Any) -> Any:
        """Refused: PynamoDB's looks for the table's name without its prefix."""
        raise TypeError("Read many items by dynamo.bulk.read_batches.")

    @classmethod
    def batch_write(cls, *args: Any, **kwargs: Any) -> Any:
        """Refused: it puts whole items, unconditionally."""
        raise TypeError("Write many items by dynamo.bulk.write_batches.")

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: it would leave the item's guards behind."""
        raise TypeError("Items are deleted by a transaction, with what belongs to them.")

    def save(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: a whole item is never put over what another may have written meanwhile."""
        raise TypeError(
            "Items are inserted, then updated attribute by attribute; see dynamo.models."
        )

    @classmethod
    def set_or_remove(cls, values: Mapping[str, Any]) -> list[Action]:
        """The update actions that give Python attributes their `values`; None removes one."""
        attributes = cls.get_attributes()
        return [
            attributes[name].remove() if value is None else attributes[name].set(value)
            for name, value in values.items()
        ]


def all_models() -> Iterator[type[Model]]:
    """Every model that names a table, in the order of their definition."""
    waiting = list(Model.__subclasses__())
    while waiting:
        model = waiting.pop(0)
        waiting = model.__subclasses__() + waiting
        if getattr(getattr(model, "Meta", None), "table_name", None):
            yield model


class IntegerAttribute(Attribute[int]):
    """A whole number, stored as N. Exact: it does not go through a float."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        """The number as on the wire."""
        return json.dumps(value)

    def deserialize(self, value: str) -> int:
        """The number of a value as on the wire."""
        number: int = json.loads(value)
        return number


#: Random versions start here. A smaller one was stored by version 0.1, which counted from 1.
_LEAST = 1 << 61
#: More writes than an item ever sees.
_MOST_WRITES = 1 << 32


def new_version() -> int:
    """The version of an item that is created now. No two items have the same one."""
    return _LEAST + secrets.randbelow(_LEAST)


def next_version(version: int | None) -> int:
    """The version that a write gives to an item that has `version`.

    An item without a version, or with one that counts from 1, gets a random one.
    """
    return new_version() if version is None or version < _LEAST else version + 1


def follows(later: int, version: int) -> bool:
    """Whether an item with the version `later` had the random `version` before."""
    return 0 < later - version < _MOST_WRITES


ITEM_MAX_BYTES = 400 * 1024
# Lists and maps have three bytes of their own and one for each element.
_CONTAINER_BYTES = 3


def item_bytes(item: Item) -> int:
    """The size of an item as on the wire, names included; never less than DynamoDB counts."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: dict[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return len(content) // 2 + 3
    if kind == "B":
        return len(content)
    if kind == "L":
        return _CONTAINER_BYTES + sum(1 + _value_bytes(each) for each in content)
    if kind == "M":
        return _CONTAINER_BYTES + len(content) + item_bytes(content)
    return 1
