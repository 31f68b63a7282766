"""`Model`: items whose declared rules hold.

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
item is still the one that was read: `version` starts at random, and each write adds one. Therefore,
two items never have the same unique value, and no write undoes another. A call that could break
this raises TypeError with the name of the right call.

With `write=` a call adds its writes to the caller's transaction; its errors are then raised by the
commit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partialmethod
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self, TypeVar, cast

from pynamodb.attributes import Attribute, TTLAttribute
from pynamodb.models import MetaModel

from dynamo import exceptions
from dynamo.client.plain import not_supported
from dynamo.client.sending import read_item
from dynamo.model.declarations import (
    MODEL_OPTIONS,
    cannot_be_called,
    check_body,
    check_indexes,
    check_meta,
)
from dynamo.model.keys import new_key
from dynamo.model.managers import missing
from dynamo.model.objects import VERSION, WRITE_ID
from dynamo.model.orm import DjangoCalls
from dynamo.model.pages import Page, complete_index
from dynamo.model.references import Reference
from dynamo.model.unique import (
    REQUEST_DIGEST,
    REQUEST_ID,
    SEARCH_PREFIX,
    SEARCH_VALUE,
    SEPARATOR,
    Unique,
    UniqueKey,
)
from dynamo.model.writing import Writable
from dynamo.runtime.altering import AltersData
from dynamo.runtime.threads import asynchronous, in_thread
from dynamo.transactions import Transaction
from dynamo.wire.attributes import IntegerAttribute, TextAttribute
from dynamo.wire.values import (
    PARTITION_KEY_MAX_BYTES,
    SORT_KEY_MAX_BYTES,
    UNUSABLE,
    fits_key,
    typed_value,
)

_ERRORS = ("Taken", "Stale", "DoesNotExist", "AlreadyExists", "RequestIdReused")

#: The right calls, for the error of a write that a caller composes.
_RIGHT = {
    "put": "create(…, write=write)",
    "update": "change(…, write=write)",
    "delete": "delete(write=write)",
    "check": "require(write=write)",
}


class ModelMeta(MetaModel):
    """Completes a model that names a table, and checks its declarations."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **options: object
    ) -> Any:
        if _names_table(name, bases, namespace.get("Meta")):
            _add_key_and_version(bases, namespace)
        _add_uniques(name, namespace)
        _add_errors(name, bases, namespace)
        return super().__new__(cls, name, bases, namespace, **options)  # type: ignore[no-untyped-call]  # PynamoDB's

    def __init__(
        cls: Any,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        **options: object,
    ) -> None:
        with _declaring(cls, name):
            check_body(cls)
            super().__init__(name, bases, namespace)
            check_indexes(cls)
            for attribute, item in cls.get_attributes().items():
                display = f"get_{attribute}_display"
                if getattr(item, "choices", None) and not hasattr(cls, display):
                    setattr(cls, display, partialmethod(cls._display, name=attribute))
            cls._unique_keys = list[UniqueKey]()
            # A base without a table may be incomplete, so only its subclasses are checked.
            if getattr(getattr(cls, "Meta", None), "table_name", None):
                cls._complete()
            # This comes last, because the data that it shares with its bases must not contain a
            # class that is refused.
            cls._initialize_attributes(cls, options.get("discriminator"))
            for index in cls._indexes.values():
                for part in index.Meta.attributes.values():
                    if isinstance(part, Reference) and part.model is None:
                        part.model = cls

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Never:
            raise missing(cls, name)


def _names_table(name: str, bases: tuple[type, ...], meta: object) -> bool:
    """Whether the new class has a table, by its `Meta`.

    Raises:
        TypeError: an option has no effect, or it is unclear whether it has one.
    """
    metas = [vars(item).get("Meta") for base in bases for item in base.__mro__]
    check_meta(f"{name}: Meta", meta, MODEL_OPTIONS, metas)
    for pair in getattr(meta, "permissions", ()):
        if not (isinstance(pair, (list, tuple)) and len(pair) == 2):
            raise TypeError(f"{name}: Meta.permissions has pairs of a code name and a text.")
    names_table = bool(getattr(meta, "table_name", None))
    if getattr(meta, "abstract", False):
        if names_table:
            raise TypeError(f"{name}: an abstract model has no table. Remove table_name.")
        # As in Django, its subclasses are not abstract.
        cast(Any, meta).abstract = False
    if meta and not names_table and any(getattr(meta, "table_name", None) for meta in metas):
        raise TypeError(f"{name}: its Meta names no table. Derive it: class Meta(Base.Meta).")
    return names_table


def _add_key_and_version(bases: tuple[type, ...], namespace: dict[str, object]) -> None:
    """Declare the key, unless the class or a base does, and the version."""
    inherited = [item for base in bases for item in getattr(base, "_attributes", {}).items()]
    known = [*inherited, *_attributes_in(namespace).items()]
    if "pk" not in dict(known) and not any(item.is_hash_key for _name, item in known):
        namespace["pk"] = TextAttribute(hash_key=True, default_for_new=new_key, editable=False)
    if VERSION not in dict(known):
        namespace[VERSION] = IntegerAttribute(null=True, editable=False)


def _attributes_in(namespace: dict[str, object]) -> dict[str, Attribute]:
    found = {name: item for name, item in namespace.items() if isinstance(item, Attribute)}
    # A MapAttribute becomes an attribute only in PynamoDB's metaclass.
    return {name: item for name, item in found.items() if hasattr(item, "is_hash_key")}


def _add_uniques(name: str, namespace: dict[str, object]) -> None:
    """Declare a `Unique` for each attribute with `unique=True`."""
    for attribute, item in _attributes_in(namespace).items():
        if getattr(item, "unique", False):
            unique = namespace.setdefault(f"unique_{attribute}", Unique(attribute))
            if getattr(unique, "names", None) != (attribute,):
                raise TypeError(
                    f"{name}: unique=True of {attribute} would be unique_{attribute}, which is "
                    f"declared otherwise. Write a Unique({attribute!r}) with another name."
                )


def _add_errors(name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> None:
    """Give the class its own errors, such as `Member.Taken`, which derive from those of a base."""
    for error in _ERRORS:
        parents = [getattr(base, error) for base in bases if hasattr(base, error)]
        base = next(
            (parent for parent in parents if issubclass(parent, exceptions.DynamoError)),
            getattr(exceptions, error),
        )
        place = {"__module__": namespace["__module__"], "__qualname__": f"{name}.{error}"}
        namespace.setdefault(error, type(error, (base,), place))


@contextmanager
def _declaring(model: Any, name: str) -> Iterator[None]:
    """Name the model in a TypeError about its declarations, and forget a refused model."""
    try:
        yield
    except Exception as error:
        # Otherwise `all_models` would find it until garbage is collected.
        model.Meta = None
        if isinstance(error, TypeError):
            raise TypeError(f"{name}: {error}") from error
        raise


class Model(AltersData, DjangoCalls, metaclass=ModelMeta):
    """The items of a table, with unique attributes and versions; see the module.

    `Meta.table_name` names the table, without the prefix. A model that declares no key has the
    partition key `pk`, a random UUID. Guard items are in the same table if the key is only a
    partition key of type text, and otherwise in `<table_name>-guards`. `Meta.guard_table` names
    another table.

    The errors of `dynamo.exceptions` that concern an item exist for each model: `Member.Taken`.
    """

    _alters_data = (
        "create create_many get_or_create update_or_create insert insert_for save change require "
        "delete refresh refresh_from_db deserialize expect_version insert_once"
    )

    #: The parameters of `create`, `change` and PynamoDB's constructor.
    _parameters: ClassVar[set[str]] = {
        "add",
        "condition",
        "hash_key",
        "range_key",
        "request_id",
        "write",
    }

    #: The reason why its items are never deleted; empty if they can be deleted.
    _never_deleted: ClassVar[str] = ""

    @classmethod
    def _complete(cls) -> None:
        """Read the declarations of a new class.

        Raises:
            TypeError: one of them cannot be right.
        """
        attributes = cls.get_attributes()
        for name, attribute in attributes.items():
            if isinstance(attribute, Reference) and attribute.model is None:
                setattr(cls, name, attribute.of(cls))
                attributes[name] = getattr(cls, name)
        cls._check_names()
        cls._complete_expiry()
        cls._complete_uniques()
        cls._fixed = {VERSION, *cls.key_attribute_names()}
        cls._index_keys = {}
        for index in cls._indexes.values():
            for name, limit in complete_index(cls, index).items():
                cls._index_keys[name] = min(limit, cls._index_keys.get(name, limit))
        cls._check_defaults()

    @classmethod
    def _check_names(cls) -> None:
        """Check the names of the attributes, declared and stored, and the types of the key."""
        attributes = cls.get_attributes()
        stored_names = [str(attribute.attr_name) for attribute in attributes.values()]
        for name, attribute in attributes.items():
            stored_name = str(attribute.attr_name)
            if name in cls._parameters or (hasattr(Model, name) and name != "pk"):
                raise cannot_be_called(name)
            marks = {REQUEST_DIGEST, WRITE_ID}
            if name != "request_id":
                marks.add(REQUEST_ID)
            if stored_names.count(stored_name) > 1 or stored_name in marks:
                raise TypeError(f"the stored name {stored_name} of {name} is used otherwise.")
            if name == "pk" and not attribute.is_hash_key:
                raise TypeError("pk is the name of the key. Declare it with hash_key=True.")
            is_key = attribute.is_hash_key or attribute.is_range_key
            if is_key and attribute.attr_type not in {"S", "N", "B"}:
                raise TypeError(f"the key {name} must be a text, a number or binary.")
        version = attributes[VERSION]
        if (version.attr_name, version.attr_type) != (VERSION, "N") or cls._version_attribute_name:
            raise TypeError("its version is the integer that comes with Model.")

    @classmethod
    def _complete_expiry(cls) -> None:
        """Find the attribute by which items expire, if there is one."""
        expiries = [
            attribute
            for attribute in cls.get_attributes().values()
            if isinstance(attribute, TTLAttribute) or attribute.attr_name == cls.ttl_attribute
        ]
        if expiries or cls.ttl_attribute:
            if [expiry.attr_type for expiry in expiries] != ["N"]:
                raise TypeError("ttl_attribute must be the stored name of one number.")
            cls.ttl_attribute = str(expiries[0].attr_name)

    @classmethod
    def _complete_uniques(cls) -> None:
        """Read each `Unique` of the class and its bases."""
        attributes = cls.get_attributes()
        names = [
            name
            for base in reversed(cls.__mro__)
            for name, value in vars(base).items()
            if isinstance(value, Unique)
        ]
        uniques = (getattr(cls, name) for name in dict.fromkeys(names))
        cls._unique_keys = [
            UniqueKey.of(unique, attributes) for unique in uniques if unique is not None
        ]
        prefixes = [key.prefix for key in cls._unique_keys]
        if len({*prefixes}) < len(prefixes) or f"{VERSION}{SEPARATOR}" in prefixes:
            raise TypeError("a Unique is declared twice, or for the version.")
        stored_names = {str(attribute.attr_name) for attribute in attributes.values()}
        own = stored_names & {SEARCH_PREFIX, SEARCH_VALUE}
        if own and any(key.searchable for key in cls._unique_keys):
            raise TypeError(f"the stored name {own.pop()} is used for searches.")
        if cls.ttl_attribute and cls._unique_keys:
            raise TypeError(
                "items that expire cannot have unique values: DynamoDB would delete them without "
                "their guard items. Delete them by a command, by an attribute of another type."
            )

    @classmethod
    def _check_defaults(cls) -> None:
        """Raise TypeError if no item can have the constant default of an attribute."""
        limits = PARTITION_KEY_MAX_BYTES, SORT_KEY_MAX_BYTES
        keys = cls._index_keys | dict(zip(cls.key_attribute_names(), limits, strict=False))
        for name, stored_name, attribute in cls._named_attributes():
            # A MapAttribute has neither.
            for option in ("default", "default_for_new"):
                default = getattr(attribute, option, None)
                try:
                    typed = None if callable(default) else typed_value(attribute, default)
                except UNUSABLE as error:
                    raise TypeError(f"the default of {name} cannot be stored: {error}") from error
                limit = keys.get(stored_name)
                if limit and not all(fits_key(value, limit) for value in (typed or {}).values()):
                    raise TypeError(
                        f"the key {name}, of the table or an index, cannot be {default!r}: give it "
                        "another default, or null=True without one."
                    )

    # Asynchronously, in threads -------------------------------------------------------------------

    @classmethod
    async def acreate(cls, **values: Any) -> Self:
        """Like `create`."""
        return await in_thread(cls.create, **values)

    asave = asynchronous(Writable.save)
    achange = asynchronous(Writable.change)
    adelete = asynchronous(Writable.delete)

    @classmethod
    async def aget(cls, *key: Any, **options: Any) -> Self:
        """Like `get`."""
        return await in_thread(cls.get, *key, **options)

    @classmethod
    async def afind(cls, **values: object) -> Self:
        """Like `find`."""
        return await in_thread(cls.find, **values)

    @classmethod
    async def apage(cls, hash_key: object, *args: Any, **options: Any) -> Page[Self]:
        """Like `page`."""
        return await in_thread(cls.page, hash_key, *args, **options)

    # Calls that could break the promises ----------------------------------------------------------

    def refuse_raw_write(self, verb: str, *_arguments: object, **_options: object) -> None:
        raise TypeError(
            f"{verb}: call {type(self).__name__}.{_RIGHT[verb]}, which keeps the guard items and "
            "the version right."
        )

    get_save_kwargs_from_instance: Any = partialmethod(refuse_raw_write, "put")
    get_update_kwargs_from_instance: Any = partialmethod(refuse_raw_write, "update")
    get_delete_kwargs_from_instance: Any = partialmethod(refuse_raw_write, "delete")
    update = get_update_kwargs_from_instance
    batch_write = not_supported(
        "A batch has no conditions: call create(…), change(…) or delete() for each item."
    )


M = TypeVar("M", bound=Model)


def ensure(
    item: M,
    *,
    is_so: Callable[[M], bool] | None = None,
    write: Transaction | None = None,
    **values: Any,
) -> None:
    """Change `item` to `values`. Also succeeds if another call did this since it was read.

    Use it for changes that may be repeated, such as a form that is sent twice. Two callers can both
    succeed. Do not use it to claim a job. `is_so` decides whether the stored item is as wanted. By
    default, it must have the values.

    In a caller's transaction, this is the same as `change`. It has the costs and errors of
    `change`. If that was refused with Stale, it costs 1 request and 1 read unit more.
    """
    try:
        item.change(write=write, **values)
    except item.Stale:
        if write is not None or not accept_stored(item, is_so or values):
            raise


def accept_stored(item: M, wanted: Mapping[str, object] | Callable[[M], bool]) -> bool:
    """After Stale: whether the stored item is as `wanted`. If so, `item` gets its values.

    Costs 1 request and 1 read unit.
    """
    stored = read_item(item._address())
    if not stored or not item.is_same_item(stored):
        return False
    now = item.from_raw_data(stored)
    is_so = wanted(now) if callable(wanted) else not now._changed(wanted)
    if is_so:
        names = item.get_attributes() if callable(wanted) else wanted
        item._become(stored, item.stored, [*names])
    return is_so
