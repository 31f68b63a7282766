"""Reads of a model: consistent by default, and without guard items."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Never, Self

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.pagination import ResultIterator

from dynamo.client import bulk
from dynamo.client.plain import Damaged
from dynamo.client.sending import read_item
from dynamo.model.pages import Paged, Results
from dynamo.model.unique import OWNER
from dynamo.wire.types import Item
from dynamo.wire.updates import with_defaults
from dynamo.wire.values import text_of

#: Stands for a sort key that is not given. A sort key of None finds nothing.
LEFT_OUT = object()


class Readable(Paged):
    """The reads of `Model`."""

    _may_miss_writes = True

    @classmethod
    def find(cls, **values: object) -> Self:
        """The item with the `values` of one `Unique`: `Member.find(email="ann@x.example")`.

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
    def find_owner(cls, **values: object) -> str | None:
        """The first step of `find`: the key of the item that the guard item of `values` names."""
        key = cls._usable_key(values)
        return None if key is None else text_of(cls._read_guard(key), OWNER) or None

    @classmethod
    def find_from(cls, owner: str, /, **values: object) -> Self:
        """The second step of `find`: the item with the key `owner`, if it has the `values`.

        Costs 1 request and 1 read unit.
        """
        unique = cls._unique_of(values)
        key = cls._usable_key(values)
        item = cls._get_owner(owner)
        if key is None or unique.usable_key(item.stored) != key:
            raise cls.DoesNotExist
        return item

    @classmethod
    def _usable_key(cls, values: Mapping[str, object]) -> str | None:
        """The key of the guard item for `values`; None if no item can have them."""
        with suppress(ValueError):
            return cls.guard_key_of(**values)
        return None

    @classmethod
    def is_taken(cls, **values: object) -> bool:
        """Whether an item has the `values` of one `Unique` now. Only a write guarantees this.

        Costs 1 request and 1 read unit.
        """
        return cls.read_guard(**values) is not None

    @classmethod
    def read_guard(cls, **values: object) -> Item | None:
        """The guard item of the `values` of one `Unique`; None if they are free now.

        Costs 1 request and 1 read unit.

        Raises:
            ValueError: see `UniqueKey.key`.
        """
        key = cls.guard_key_of(**values)
        return None if key is None else cls._read_guard(key)

    @classmethod
    def _read_guard(cls, key: str) -> Item | None:
        return read_item(cls._guard_table().address(key))

    @classmethod
    def _get_owner(cls, owner: str) -> Self:
        key = cls._key_of_owner(owner)
        stored = key and read_item({"TableName": cls.table(), "Key": key})
        if not stored:
            raise cls.DoesNotExist
        return cls.from_raw_data(stored)

    @classmethod
    def get(
        cls,
        hash_key: object = LEFT_OUT,
        range_key: object = LEFT_OUT,
        consistent_read: bool = True,
        attributes_to_get: object = None,
        **values: Never,
    ) -> Self:
        """The item with this key. Costs 1 request and 1 read unit per 4 KB.

        `consistent_read=False` costs half and may miss recent writes. An object that was read with
        `attributes_to_get` cannot be written.

        Raises:
            DoesNotExist: there is none, or no item can have the key.
            TypeError: it is not the whole key.
        """
        names = cls._key_names()
        given = sum(part is not LEFT_OUT for part in (hash_key, range_key))
        if values or given != len(names):
            raise TypeError(
                f"{cls.__name__}.get takes the key: get({', '.join(names)}). Call find(…) for the "
                "values of a Unique, or objects.get(…), which takes names."
            )
        range_key = None if range_key is LEFT_OUT else range_key
        if not cls._is_key(hash_key, range_key):
            raise cls.DoesNotExist
        options = cls._read_options(
            {"consistent_read": consistent_read, "attributes_to_get": attributes_to_get}
        )
        item = super().get(hash_key, range_key, **options)
        return item if attributes_to_get is None else cls._from_part(item.stored)

    @classmethod
    def get_or_none(
        cls, hash_key: object = LEFT_OUT, range_key: object = LEFT_OUT, **values: Never
    ) -> Self | None:
        """Like `get`, but None if the item is absent."""
        try:
            return cls.get(hash_key, range_key, **values)
        except cls.DoesNotExist:
            return None

    def refresh(self, consistent_read: bool = True) -> None:
        """Read the stored item into this object. Costs 1 request and 1 read unit per 4 KB.

        Raises:
            DoesNotExist: it was deleted.
        """
        if not self._is_key_of(self._key()):
            raise self.DoesNotExist
        stored = read_item({**self._address(), "ConsistentRead": consistent_read})
        if not stored:
            raise self.DoesNotExist
        self.deserialize(stored)
        self._is_partial = False

    @classmethod
    def batch_get(  # type: ignore[override]  # other parameters than PynamoDB's
        cls, items: Iterable[Any], *, damaged: Damaged | None = None
    ) -> Iterator[Self]:
        """The items with these keys (or pairs of keys), in no order; absent ones are left out.

        Keys may be repeated. `damaged` is that of `scan`. Costs 1 request per 100 keys, 1 read unit
        per 4 KB of each item.

        Raises:
            DamagedItem: an item is damaged, and `damaged` is not given.
            TypeError: these are not keys.
            Unavailable: DynamoDB did not process all of them until the deadline.
        """
        names = ", ".join(cls._key_names())
        if isinstance(items, (str, bytes)):
            raise TypeError(f"{cls.__name__}.batch_get takes a list of keys ({names}).")
        keys: dict[tuple[object, ...], Item] = {}
        for item in items:
            if cls._range_keyname and not (isinstance(item, (list, tuple)) and len(item) == 2):
                raise TypeError(f"{cls.__name__}.batch_get takes pairs ({names}), not {item!r}.")
            pair = item if cls._range_keyname else (item, None)
            if cls._is_key(*pair):
                keys[tuple(pair)] = cls(pair[0], pair[1], _user_instantiated=False)._key()
        yield from cls._objects_of(bulk.read_batches(cls.table(), list(keys.values())), damaged)

    @classmethod
    def query(  # type: ignore[override]  # other parameters than PynamoDB's
        cls,
        hash_key: object,
        range_key_condition: Condition | None = None,
        filter_condition: Condition | None = None,
        *,
        damaged: Damaged | None = None,
        **options: Any,
    ) -> Results[Self]:
        """Like PynamoDB's `query`: the items of a partition, or of an index, without guard items.

        `damaged` is that of `scan`.
        """
        if not cls.is_partition(hash_key, options.get("index_name")):
            options["limit"] = 0
        given = cls._read_options(options | {"filter_condition": filter_condition})
        key = cls._key_condition(hash_key, range_key_condition, options.get("index_name"))
        found = super().query(*key, **given)
        return cls._results(found, options, damaged)

    @classmethod
    def scan(  # type: ignore[override]  # other parameters than PynamoDB's
        cls,
        filter_condition: Condition | None = None,
        *,
        damaged: Damaged | None = None,
        **options: object,
    ) -> Results[Self]:
        """Like PynamoDB's `scan`: all items of the table. Guard items are read, but left out.

        At a damaged item, the result raises DamagedItem, and reading can continue. With `damaged`,
        the result has what `damaged(stored, error)` returns instead, or leaves the item out if that
        is None. `limit` also counts damaged items.
        """
        given = cls._read_options(options | {"filter_condition": filter_condition})
        if not cls._guard_table().is_separate and options.get("index_name") is None:
            key = Path([cls.key_attribute_names()[0]])
            for prefix in cls._guard_prefixes():
                given["filter_condition"] &= ~key.startswith(prefix)
        return cls._results(super().scan(**given), options, damaged)

    @classmethod
    def count(  # type: ignore[override]  # other parameters than PynamoDB's
        cls,
        hash_key: object = None,
        range_key_condition: Condition | None = None,
        filter_condition: Condition | None = None,
        **options: Any,
    ) -> int:
        """Like PynamoDB's `count`: the number of items of a partition, or of an index."""
        if hash_key is None:
            raise TypeError(
                "count needs a partition: DynamoDB does not know how many items a table has. "
                "Read them all with sum(1 for item in scan())."
            )
        if not cls.is_partition(hash_key, options.get("index_name")):
            return 0
        given = cls._read_options(options | {"filter_condition": filter_condition})
        key = cls._key_condition(hash_key, range_key_condition, options.get("index_name"))
        return super().count(*key, **given)

    @classmethod
    def _read_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Reads are consistent, except those of an index and those where the caller asks otherwise.

        A read of some attributes (`attributes_to_get`) also reads the key. A filter treats an
        absent attribute as its constant default, except in an index without all attributes.
        """
        consistent = options.get("consistent_read")
        if consistent is None:
            consistent = options.get("index_name") is None
        options = {**options, "consistent_read": consistent}
        if (condition := options.get("filter_condition")) is not None and cls._is_whole(options):
            options["filter_condition"] = with_defaults(cls._named_attributes(), condition)
        if (names := options.get("attributes_to_get")) is not None:
            if isinstance(names, str):
                raise TypeError(f"attributes_to_get is a list of names: [{names!r}].")
            own = [item.attr_name for item in [cls._get_discriminator_attribute()] if item]
            options["attributes_to_get"] = [*{*names, *own, *cls.key_attribute_names()}]
        return options

    @classmethod
    def _results(
        cls, found: ResultIterator[Self], options: Mapping[str, object], damaged: Damaged | None
    ) -> Results[Self]:
        """The items of `found`.

        Those that were read in part are marked, because they cannot be written.
        """
        if options.get("attributes_to_get") is not None or not cls._is_whole(options):
            found._map_fn = cls._from_part
        return Results(cls, found, damaged)

    @classmethod
    def _is_whole(cls, options: Mapping[str, object]) -> bool:
        """Whether the table or index that is read has all attributes."""
        index = cls._indexes.get(str(options.get("index_name")))
        return index is None or index.Meta.projection.projection_type == "ALL"

    @classmethod
    def _from_part(cls, data: Item) -> Self:
        item = cls.from_raw_data(data)
        item._is_partial = True
        # Attributes that were not read do not get their default.
        for name, stored_name, _attribute in item._named_attributes():
            if stored_name not in data:
                item.attribute_values.pop(name, None)
        return item
