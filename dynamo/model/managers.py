"""`Model.objects`: the methods that Django's shortcuts, forms and serializers call.

    get_object_or_404(Member, email="ann@example.org")      # Django's own
    ModelChoiceField(Member.objects.page("chess"))          # or search(…), or all(): a whole table

It reads by key, by a `Unique`, or page by page. All other calls of querysets are refused.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar

from django.db.models import QuerySet
from pynamodb.indexes import Index

from dynamo.model.writing import refuse_alias
from dynamo.runtime.altering import AltersData
from dynamo.runtime.threads import asynchronous, in_thread

M = TypeVar("M")
N = TypeVar("N")

_PAGES = (
    "{model}.page(…) of a partition or an index, {model}.find(…) by a Unique, {model}.search(…)"
)
_CHANGES = "a loop over {model}.scan() or a page, with change(…) of each item, or manage.py rewrite"
_FIRST = "{place}.page(partition, limit=1).items"
_LAST = "{place}.page(partition, scan_index_forward=False, limit=1).items"
_PART = "{place}.query(partition, attributes_to_get=[…])"
_FORMSET = "formset_factory(…) with a form of dynamo.forms: it needs no list in an order"
#: What to use instead of calls of querysets. For calls that are not listed, it is `_PAGES`.
_INSTEAD = {
    "aiterator": "async for item in {model}.objects.all()",
    "bulk_create": "{model}.create_many(…)",
    "bulk_update": _CHANGES,
    "count": "{place}.count(partition), or read the whole table: sum(1 for _ in {model}.scan())",
    "defer": _PART,
    "delete": "a loop over {model}.scan() or a page, with delete() of each item",
    "earliest": _FIRST,
    "first": _FIRST,
    "in_bulk": "{model}.batch_get(keys)",
    "last": _LAST,
    "latest": _LAST,
    "only": _PART,
    "ordered": _FORMSET,
    "prefetch_related": "{model}.batch_get(keys)",
    "select_for_update": "item.change(…), which raises Stale if the item changed since it was read",
    "select_related": "{model}.batch_get(keys)",
    "totally_ordered": _FORMSET,
    "update": _CHANGES,
    "values": _PART,
    "values_list": _PART,
}


class Items(Generic[M]):
    """Items that are read when they are needed, for code that takes a queryset.

    As in Django, an object reads them once, `all()` is a new object, and `iterator()` stores none.
    """

    _prefetch_related_lookups = ()
    _items: list[M] | None = None

    def __init__(self, model: type[Any], read: Callable[[], Iterable[M]] | None = None) -> None:
        self.model = model
        self._read = read

    def _fetched(self) -> list[M]:
        if self._items is None:
            self._items = [*self.iterator()]
        return self._items

    def __iter__(self) -> Iterator[M]:
        return iter(self._fetched())

    def __len__(self) -> int:
        return len(self._fetched())

    async def __aiter__(self) -> AsyncIterator[M]:
        for item in await in_thread(list, self):
            yield item

    def __bool__(self) -> bool:
        return self.exists()

    def __getitem__(self, _place: object) -> Never:
        raise TypeError(self._refusal("[…]"))

    def iterator(self, chunk_size: int | None = None) -> Iterator[M]:
        return iter((self._read or self.model.scan)())

    def all(self) -> "Items[M]":
        return Items(self.model, self._read)

    def exists(self) -> bool:
        return next(self.iterator() if self._items is None else iter(self), None) is not None

    aexists = asynchronous(exists)

    def get(self, *conditions: Never, **values: object) -> M:
        """The item with these values: the key, also as `pk`, or those of one `Unique`.

        Costs as much as `get` or `find`. If these are only some items, reading them is added.

        Raises:
            DoesNotExist: no item has them, or it is not among these items.
            TypeError: neither the key nor the attributes of one `Unique`.
        """
        if conditions:
            name = self.model.__name__
            raise TypeError(f"Use {name}.objects.get(pk=…) or {name}.get(…) of a key.")
        found: M = self.model._get_by(**values)
        if self._read and found not in self.iterator():
            raise self.model.DoesNotExist
        return found

    aget = asynchronous(get)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Never:
            raise AttributeError(self._refusal(name))

    def filter(self, *conditions: Never, **values: Never) -> Never:
        # Django's own views of one object call it with a key.
        one = ""
        if "pk" in values:
            one = " One item: objects.get(pk=…). Generic views are those of dynamo.views."
        raise AttributeError(f"{self._refusal('filter')}{one}")

    def count(self) -> Never:
        # `list` calls `count` for the choices of a form field, and ignores this TypeError.
        raise TypeError(self._refusal("count"))

    def _refusal(self, name: str) -> str:
        model = vars(self).get("model")
        called = getattr(model, "__name__", "Model")
        instead = _instead_of(name, model)
        if not hasattr(QuerySet, name) and callable(getattr(model, name, None)):
            instead = f"{called}.{name}(…)"
        return f"{called}.objects has no {name!r}. Use {instead}."


def _instead_of(name: str, model: object) -> str:
    """What to use instead of a call of querysets."""
    instead = _INSTEAD.get(name) or _INSTEAD.get(name.removeprefix("a")) or _PAGES
    called = place = getattr(model, "__name__", "Model")
    if not getattr(model, "_range_keyname", None):
        # Without a sort key, a partition of the table has one item.
        names = (name for base in getattr(model, "__mro__", ()) for name in vars(base))
        indexes = (name for name in names if isinstance(getattr(model, name, None), Index))
        place = f"{called}.{next(indexes, 'by_…')}"
        if "…" in place and "{place}" in instead:
            instead += ", with an index by_… of the model"
    return instead.format(model=called, place=place)


def missing(cls: type, name: str) -> AttributeError:
    """The error of a model that lacks `name`."""
    model = cls.__name__
    text = f"type object {model!r} has no attribute {name!r}"
    # Managers have these two methods only to reject calls.
    if hasattr(Manager, name) and name not in {"count", "filter"}:
        text += f". Use {model}.objects.{name}(…)."
    elif hasattr(QuerySet, name):
        text += f". Use {_instead_of(name, cls)}."
    return AttributeError(text)


class Manager(AltersData, Items[M]):
    """The manager of a model, `objects`. A subclass can have further methods, as in Django."""

    _alters_data = "create get_or_create update_or_create"

    def __init__(self) -> None:
        # `__get__` sets the model, which is the class whose attribute is read.
        self._read = None

    def __bool__(self) -> bool:
        return True

    def __get__(self, instance: object, model: type[N]) -> "Manager[N]":
        manager: Any = type(self)()
        manager.model = model
        return manager

    def __iter__(self) -> Iterator[M]:
        return iter(self.get_queryset())

    def __len__(self) -> Never:
        # Nothing is read here, because `list` asks for the length, too.
        self.count()

    def iterator(self, chunk_size: int | None = None) -> Iterator[M]:
        return self.get_queryset().iterator()

    def get_queryset(self) -> Items[M]:
        """The items of `all` and `get`. A subclass may return `self.page(…)`."""
        return Items(self.model)

    def all(self) -> Items[M]:
        """All items, in no order: each use reads the whole table."""
        return self.get_queryset()

    def get(self, *conditions: Never, **values: object) -> M:
        """Like `get` of `get_queryset`."""
        return self.get_queryset().get(*conditions, **values)

    def using(self, alias: str | None) -> "Manager[M]":
        refuse_alias("objects", alias)
        return self

    db_manager = using

    def none(self) -> Items[M]:
        return Items(self.model, tuple)

    def page(self, *args: object, **options: object) -> Items[M]:
        """The items of `Model.page`."""
        return Items(self.model, partial(self.model.page, *args, **options))

    def search(self, name: str, letters: str, **options: object) -> Items[M]:
        """The items of `Model.search`."""
        return Items(self.model, partial(self.model.search, name, letters, **options))

    def create(self, **values: object) -> M:
        """As of the model."""
        return self.model.create(**values)

    acreate = asynchronous(create)

    def get_or_create(
        self, defaults: Mapping[str, object] | None = None, **values: object
    ) -> tuple[M, bool]:
        """As of the model."""
        return self.model.get_or_create(defaults, **values)

    aget_or_create = asynchronous(get_or_create)

    def update_or_create(self, *args: object, **values: object) -> tuple[M, bool]:
        """As of the model."""
        return self.model.update_or_create(*args, **values)

    aupdate_or_create = asynchronous(update_or_create)
