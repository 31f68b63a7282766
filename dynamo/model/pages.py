"""Pages of a partition, of a table or of a global secondary index, with signed cursors.

    class Member(Model):
        class ByCity(GlobalSecondaryIndex["Member"]):
            city = TextAttribute(hash_key=True)
            joined = DateAttribute(range_key=True)

        city = TextAttribute()
        joined = DateAttribute()
        by_city = ByCity()

    page = Member.by_city.page("Rome", after=request.GET.get("after"))
    page.items, page.next

A cursor is the key after which the next page begins. Its signature covers what it belongs to: the
model, the index, the partition, the direction, the conditions and the caller's `scope`. A cursor is
not encrypted: everybody who has it can read the key.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar, cast, overload

from django.core import signing
from pynamodb.expressions.condition import Condition
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex as PynamoIndex, Index
from pynamodb.pagination import ResultIterator

from dynamo.client import bulk
from dynamo.client.plain import TABLE_NAME_PATTERN, Damaged, PlainModel
from dynamo.client.sending import send
from dynamo.exceptions import BadCursor, DamagedItem
from dynamo.model.declarations import INDEX_OPTIONS, check_meta
from dynamo.model.objects import ItemObject
from dynamo.model.unique import GUARD_ATTRIBUTES, OWNER, SEARCH_INDEX, SEARCH_PREFIX, SEARCH_VALUE
from dynamo.runtime.threads import asynchronous, in_thread
from dynamo.wire.types import Item
from dynamo.wire.updates import check_condition
from dynamo.wire.values import PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES, as_hex, with_binary

logger = logging.getLogger(__name__)

M = TypeVar("M", bound="Paged")
Value = TypeVar("Value")

#: The most requests that a page sends. It needs more than one only if a filter leaves items out, or
#: if its items have more than 1 MB together.
MOST_REQUESTS = 5
#: The most attributes of the partition key of an index, and of its sort key.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.DesignPattern.MultiAttributeKeys.html
MOST_PARTS = 4
#: The most requests for a page of a whole table, because guard items are left out.
MOST_SCANS = 3


@dataclass(frozen=True)
class Page(Sequence[Value]):
    """Some items of a list, as a sequence.

    `next` is the cursor of the following items; None after the last one.
    `damaged` has the error of each item that could not be read and is not among `items`.

    After a filter, or with items above 1 MB, a page may have fewer items than asked for, even none,
    although `next` leads to more.
    """

    items: list[Value]
    next: str | None
    damaged: list[DamagedItem] = field(default_factory=list)

    def has_next(self) -> bool:
        return self.next is not None

    def next_page_number(self) -> str | None:
        """The cursor, for templates that were written for Django's pages."""
        return self.next

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> list[Value]: ...

    def __getitem__(self, place: int | slice) -> Value | list[Value]:
        return self.items[place]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise AttributeError(
                f"A page has no {name!r}, because its items were read. Give conditions and the "
                "order to page(…). Fields of forms take objects.page(…)."
            )


class Results(ResultIterator[Value]):
    """The items of a query or a scan, read page by page. In a coroutine, use `async for`.

    With `damaged`, they include the values that it returns for damaged items.
    """

    def __init__(
        self, model: type[PlainModel], found: ResultIterator[Value], damaged: Damaged | None
    ) -> None:
        vars(self).update(vars(found))
        if damaged is not None:
            make = found._map_fn
            self._map_fn = lambda item: next(model._objects_of([item], damaged, make), None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise AttributeError(
                f"The items of a query or a scan have no {name!r}. Give conditions and the order "
                "to query(…) or scan(…)."
            )

    def __next__(self) -> Value:
        while (item := super().__next__()) is None:
            pass
        return item

    async def __aiter__(self) -> AsyncIterator[Value]:
        while found := await in_thread(self._next_items):
            for item in found:
                if isinstance(item, DamagedItem):
                    raise item
                yield item

    def _next_items(self) -> list[Value | DamagedItem]:
        """The items of the next request, up to a damaged item."""
        found: list[Value | DamagedItem] = []
        try:
            for item in self:
                found.append(item)
                if self._index == self._count:
                    break
        except DamagedItem as error:
            found.append(error)
        return found


class GlobalSecondaryIndex(PynamoIndex[M]):
    """PynamoDB's index, with types. Without a `Meta`, all attributes are projected."""

    def __init_subclass__(cls, **options: object) -> None:
        if cls.Meta is None:
            cls.Meta = type("Meta", (), {"projection": AllProjection()})
        super().__init_subclass__(**options)  # type: ignore[no-untyped-call]  # PynamoDB's
        # PynamoDB sorts attributes by name, but the order of a key's parts matters.
        order = [name for base in cls.__mro__[::-1] for name in vars(base)]
        cls.Meta.attributes = dict(
            sorted(
                cls.Meta.attributes.items(),
                key=lambda item: (not item[1].is_hash_key, order.index(item[0])),
            )
        )

    def page(self, hash_key: object, *conditions: Condition | None, **options: Any) -> Page[M]:
        """A page of the items with this value of the index's partition key, like `Model.page`.

        If the partition key has several attributes, `hash_key` is a tuple of their values.

        Items that were written within the last second may be missing. Objects of an index whose
        projection is not ALL cannot be written before `refresh`.
        """
        return self._model.page(hash_key, *conditions, index_name=self.Meta.index_name, **options)

    apage = asynchronous(page)

    def query(self, hash_key: object, *args: Any, **options: Any) -> Results[M]:
        """Like `Model.query`, of the items with this value of the index's partition key."""
        options["index_name"] = self.Meta.index_name
        model: Any = self._model
        return cast(Results[M], model.query(hash_key, *args, **options))

    def scan(self, *args: object, **options: Any) -> Results[M]:
        """Like `Model.scan`, for the items of the index."""
        options["index_name"] = self.Meta.index_name
        model: Any = self._model
        return cast(Results[M], model.scan(*args, **options))


def complete_index(model: type[Paged], index: Index) -> dict[str, int]:
    """Check the index of a new model, and give PynamoDB's own class the methods of ours.

    Returns how many bytes each of its key attributes, by stored name, may have.

    Raises:
        TypeError: its declaration cannot be right.
    """
    name = index.Meta.index_name
    attributes = index.Meta.attributes.values()
    check_meta(f"the index {name}: Meta", index.Meta, INDEX_OPTIONS)
    parts = [
        attribute for attribute in attributes if attribute.is_hash_key or attribute.is_range_key
    ]
    key = {str(part.attr_name): part.attr_type for part in parts}
    is_global = isinstance(index, PynamoIndex) and index._hash_key_attribute()
    if not is_global or not TABLE_NAME_PATTERN.fullmatch(name):
        raise TypeError(
            f"the index {name} must be a GlobalSecondaryIndex (local ones cannot be added later) "
            "with a hash_key and a name of 3 to 255 letters, digits and the characters _ - ."
        )
    types = {
        str(attribute.attr_name): attribute.attr_type
        for attribute in model.get_attributes().values()
    }
    for stored_name in (*key, *(index.Meta.projection.non_key_attributes or ())):
        if key.get(stored_name, types.get(stored_name)) != types.get(stored_name, ""):
            raise TypeError(
                f"the index {name}: the model has no attribute of its type with the stored name "
                f"{stored_name}."
            )
    partitions = sum(part.is_hash_key for part in parts)
    if max(partitions, len(parts) - partitions) > MOST_PARTS:
        raise TypeError(f"the index {name}: a key has at most {MOST_PARTS} attributes of a kind.")
    others = set(key) - set(model.key_attribute_names())
    if not model._guard_table().is_separate and (not others or others & set(GUARD_ATTRIBUTES)):
        raise TypeError(
            f"the index {name} would contain guard items. Give the attribute another attr_name, "
            "or the guard items a table: Meta.guard_table."
        )
    if not isinstance(index, GlobalSecondaryIndex):
        for method in ("page", "apage", "query", "scan"):
            vars(index)[method] = MethodType(vars(GlobalSecondaryIndex)[method], index)
    return {
        str(part.attr_name): PARTITION_KEY_MAX_BYTES if part.is_hash_key else SORT_KEY_MAX_BYTES
        for part in parts
    }


class Paged(ItemObject):
    """The pages of `Model`."""

    @classmethod
    def page(
        cls,
        hash_key: object,
        range_key_condition: Condition | None = None,
        filter_condition: Condition | None = None,
        *,
        index_name: str | None = None,
        scan_index_forward: bool = True,
        consistent_read: bool | None = None,
        after: str | None = None,
        limit: int = 50,
        scope: object = "",
        damaged: Damaged | None = None,
    ) -> Page[Self]:
        """A page of the items of a partition, in the order of the sort key.

        `after` is the cursor of the page before, its `next`. It belongs to this query, with any
        `limit`, and to `scope`. Name the user there if lists of several users have the same
        partition and conditions. The cursor also works after its item was deleted.

        `scan_index_forward=False` reverses the order. A damaged item is left out, logged as an
        error and named in `Page.damaged`, unless `damaged(stored, error)` returns a replacement.
        The other options are those of `query`. Guard items are left out.

        Costs 1 request, and 1 read unit per 4 KB of `limit` + 1 items (half of that if the read is
        not consistent, like that of an index). With `filter_condition`, or if the items exceed 1
        MB, at most 5 requests, each of which reads at most `limit` + 1 items. Therefore, such a
        page may be short or empty, and still have a `next`.

        Raises:
            BadCursor: `after` was changed, or belongs to another query or scope.
            ValueError: `limit` is below 1.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1.")
        query = {
            "range_key_condition": range_key_condition,
            "filter_condition": filter_condition,
            "index_name": index_name,
            "scan_index_forward": scan_index_forward,
            "consistent_read": consistent_read,
        }
        salt = _salt(cls, hash_key, scope, query)
        last = None if after is None else _opened(after, salt)
        if not cls.is_partition(hash_key, index_name):
            return Page([], None)
        # One more item is read, to know whether another page follows.
        found = cls.query(hash_key, page_size=limit + 1, last_evaluated_key=last, **query)  # type: ignore[arg-type]  # PynamoDB's
        return _collected(cls, found, limit, salt, MOST_REQUESTS, damaged)

    @classmethod
    def search(
        cls,
        name: str,
        letters: str,
        *,
        after: str | None = None,
        limit: int = 50,
        scope: object = "",
        damaged: Damaged | None = None,
    ) -> Page[Self]:
        """A page of the items whose value of `name` begins with `letters`, in the order of values.

        The attribute `name` has a searchable `Unique`, which also normalizes the letters. `after`,
        `scope` and `damaged` are those of `page`. Items that were written within the last second
        may be missing, and a page may then have fewer items than `limit`.

        Costs 2 requests: half a read unit per 4 KB of `limit` + 1 guard items, and 1 read unit per
        4 KB of each item.

        Raises:
            TypeError: `name` has no searchable `Unique`.
            ValueError: fewer than 2 letters after they are normalized, or `limit` is below 1.
            BadCursor: as `page`.
        """
        unique = cls._unique_of({name: letters}, "search")
        if not unique.searchable:
            raise TypeError(f"search: Unique({', '.join(unique.names)}) needs searchable=True.")
        if limit < 1:
            raise ValueError("limit must be at least 1.")
        if not (beginning := unique.beginning(letters)):
            return Page([], None)
        guards = cls._guard_table()
        partition, value = unique.search_attributes(beginning).values()
        salt = json.dumps(["dynamo.search", cls.__name__, guards.name, beginning, str(scope)])
        request = {
            "TableName": guards.name,
            "IndexName": SEARCH_INDEX,
            "KeyConditionExpression": "#prefix = :prefix AND begins_with(#value, :value)",
            "ExpressionAttributeNames": {"#prefix": SEARCH_PREFIX, "#value": SEARCH_VALUE},
            "ExpressionAttributeValues": {":prefix": partition, ":value": value},
            # One more item is read, to know whether another page follows.
            "Limit": limit + 1,
        }
        if after is not None:
            request["ExclusiveStartKey"] = _opened(after, salt)
        answer = send("Query", request)
        found = answer["Items"]
        last = answer.get("LastEvaluatedKey")
        if len(found) > limit:
            found = found[:limit]
            names = guards.key_name, SEARCH_PREFIX, SEARCH_VALUE
            last = {name: found[-1][name] for name in names}
        # The index truncates long values, so different values can match: compare the whole key.
        owners = {
            key: item.get(OWNER, {}).get("S", "")
            for item in found
            if (key := item[guards.key_name]["S"]).startswith(beginning)
        }
        keys = {cls.owner_of(key): key for key in map(cls._key_of_owner, owners.values()) if key}
        read = bulk.read_batches(cls.table(), [*keys.values()])
        stored = {cls.owner_of(item): item for item in read}
        # The index may still have a guard item that was deleted, so each one is compared with its
        # item.
        items = (
            item
            for key, owner in owners.items()
            if (item := stored.get(owner)) and unique.usable_key(item) == key
        )
        return _page(cls, items, _sealed(last, salt), damaged)


def scan_page(
    model: type[M], limit: int, after: str | None, damaged: Damaged | None = None
) -> Page[M]:
    """A page of the whole table, in no order. Costs at most 3 requests; may be short.

    A request reads enough items for a full page, even if each item has all its guard items.

    Raises:
        BadCursor: see `Model.page`.
    """
    salt = json.dumps(["dynamo.model.pages.scan", model.__name__, model.table()])
    last = None if after is None else _opened(after, salt)
    guards = 0 if model._guard_table().is_separate else len(model._unique_keys)
    found = model.scan(page_size=(limit + 1) * (1 + guards), last_evaluated_key=cast(Any, last))
    return _collected(model, found, limit, salt, MOST_SCANS, damaged)


def _collected(
    model: type[M], found: Any, limit: int, salt: str, most_requests: int, damaged: Damaged | None
) -> Page[M]:
    answers = found.page_iter
    items = list[Item]()
    for _request in range(most_requests):
        items += next(answers)["Items"]
        last = answers.last_evaluated_key
        if len(items) > limit:
            items = items[:limit]
            last = {name: items[-1][name] for name in answers.key_names}
            break
        if not last:
            break
    return _page(model, items, _sealed(last, salt), damaged, found._map_fn)


def _page(
    model: type[M],
    items: Iterable[Item],
    after: str | None,
    damaged: Damaged | None,
    make: Callable[[Item], object] | None = None,
) -> Page[M]:
    errors: list[DamagedItem] = []

    def left_out(_item: Item, error: DamagedItem) -> None:
        logger.error("An item is left out of a page: %s", error)
        errors.append(error)

    return Page([*model._objects_of(items, damaged or left_out, make)], after, errors)


def _salt(model: type[Paged], hash_key: object, scope: object, query: dict[str, Any]) -> str:
    """The data that the signature of a cursor covers, in addition to the key."""
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    conditions: list[str | None] = []
    for condition in map(query.get, ("range_key_condition", "filter_condition")):
        if condition is not None:
            check_condition(condition)
            condition = condition.serialize(names, values)
        conditions.append(condition)
    bound = [
        "dynamo.model.pages",
        model.__name__,
        model.table(),
        query["index_name"],
        str(hash_key),
        query["scan_index_forward"],
        conditions,
        names,
        values,
        str(scope),
    ]
    return json.dumps(bound, default=repr)


def _sealed(last: Item | None, salt: str) -> str | None:
    return signing.dumps(with_binary(last, as_hex), salt=salt) if last else None


def _opened(cursor: str, salt: str) -> Item:
    try:
        key: Item = signing.loads(cursor, salt=salt)
    except (signing.BadSignature, ValueError) as error:
        raise BadCursor from error
    return with_binary(key, bytes.fromhex)
