"""Calls that Django's ORM has as well. They use `writing`, `creating` and `reading`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Never, Self, TypeVar

from django.core.exceptions import (
    NON_FIELD_ERRORS,
    FieldError,
    MultipleObjectsReturned,
    ValidationError,
)
from django.db.models import CharField, Model as DjangosModel
from django.db.models.base import ModelState
from django.db.models.utils import resolve_callables
from django.forms import ModelChoiceField
from django.utils.functional import classproperty

from dynamo.client.tally import CountingPool
from dynamo.exceptions import ErrorWithValues, Refused, TableMissing, Unavailable
from dynamo.model.managers import Manager
from dynamo.model.references import Reference
from dynamo.model.writing import Writable, refuse_alias
from dynamo.runtime.threads import asynchronous, in_thread
from dynamo.transactions import Transaction
from dynamo.wire.values import typed_value

M = TypeVar("M")

#: `get_or_create` tries this many times while others create and delete the item.
_ATTEMPTS = 10
#: `create_many` takes this many items per worker at once, because `items` may be endless.
_AHEAD = 25


@dataclass
class Created(Generic[M]):
    """The result of `create_many`: the number of stored items, and the errors of `refused` ones."""

    stored: int = 0
    refused: list[tuple[M, Exception]] = field(default_factory=list)


class DjangoCalls(Writable):
    """The calls of Django's ORM, for `Model`."""

    MultipleObjectsReturned = MultipleObjectsReturned
    objects: ClassVar[Manager[Any]] = Manager()
    _default_manager: ClassVar[Any] = classproperty(lambda model: model.objects)

    @classmethod
    def _get_by(cls, **values: Any) -> Self:
        """The item with this key, or with these values of one `Unique`.

        Costs as much as `get` or `find`.

        The item must also have the further values.

        Raises:
            DoesNotExist: no item has them.
            TypeError: neither the key nor the attributes of one `Unique`.
        """
        key = cls._key_names()
        values = cls._with_key(values)
        sets = [key, *(unique.names for unique in cls._unique_keys)]
        named = [names for names in sets if values.keys() >= {*names}]
        if len(named) != 1 and named[:1] != [key]:
            uniques = ", ".join(" and ".join(names) for names in sets[1:]) or "none"
            raise TypeError(
                f"Give the key ({', '.join(key)}) or the attributes of one Unique ({uniques}), "
                f"not {', '.join(values)}."
            )
        known = {name: values[name] for name in named[0]}
        item = cls.get(*known.values()) if named[0] is key else cls.find(**known)
        if not all(item._has_value(name, values[name]) for name in values.keys() - known.keys()):
            raise cls.DoesNotExist
        return item

    def _has_value(self, name: str, value: object) -> bool:
        if name not in self._meta.by_name:
            raise TypeError(f"{type(self).__name__} has no attribute {name}.")
        attribute = self._meta.by_name[name].attribute
        return typed_value(attribute, getattr(self, name)) == typed_value(attribute, value)

    @classmethod
    def _with_key(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The `values`, where the attributes of the key replace `pk`, the whole key or its text.

        Raises:
            DoesNotExist: no item can have the key.
            FieldError: it is not a tuple, but the key has two parts.
        """
        if "pk" not in values:
            return values
        names = cls._key_names()
        parts = values["pk"] if len(names) > 1 else [values["pk"]]
        if not isinstance(parts, (list, tuple)):
            # A ModelChoiceField would report a TypeError as an error of the user.
            raise FieldError(
                f"The key of {cls.__name__} is a tuple: pk=({', '.join(names)}). A "
                "ModelChoiceField needs to_field_name, an attribute that is unique."
            )
        if len(parts) != len(names):
            raise cls.DoesNotExist
        further = {name: value for name, value in values.items() if name != "pk"}
        return further | cls._typed_values(dict(zip(names, parts, strict=True)))

    @classmethod
    def _typed_values(cls, values: Mapping[str, object]) -> dict[str, Any]:
        """The `values` with the types of their attributes. They may be texts of a URL or a form.

        Raises:
            DoesNotExist: no item can have them.
            TypeError: not an attribute.
        """
        typed = dict(values)
        for name, value in values.items():
            if name not in cls._meta.by_name:
                raise TypeError(f"{cls.__name__} has no attribute {name}.")
            field = cls._meta.by_name[name]
            try:
                if isinstance(field.attribute, Reference):
                    value = field.attribute.key_of(value)
                if value is not None and isinstance(field, CharField):
                    typed[name] = str(value)
                elif isinstance(value, str) and (form_field := field.formfield()):
                    typed[name] = form_field.clean(value)
                typed_value(field.attribute, typed[name])
            except (ArithmeticError, TypeError, ValueError, ValidationError) as error:
                raise cls.DoesNotExist from error
        return typed

    @classmethod
    def get_or_create(
        cls, defaults: Mapping[str, object] | None = None, **values: object
    ) -> tuple[Self, bool]:
        """The item with these `values`, and whether this call made it.

        A new item gets `defaults` as well. `values` are the key, or those of one `Unique`. If
        several calls run at the same time, one makes the item and the others return it.

        Costs as much as `get` or `find`, and `create` if the item is absent. The costs are repeated
        each time that others create and delete it in between.

        Raises:
            Taken: another item has a unique value of `defaults`.
            TypeError: neither the key nor the attributes of one `Unique`.
            ValueError: a value is None or empty, which is not unique.
            Other errors of `create`.
        """
        if empty := [name for name, value in values.items() if value in (None, "", b"")]:
            raise ValueError(f"No item is found by an empty {empty[0]}: several may have it.")
        if "write" in values:
            raise TypeError(
                "get_or_create and update_or_create join no transaction, because what they write "
                "depends on what they read. Call find, then create or change with write=write."
            )
        values = cls._with_key(values)
        refused: Exception = cls.DoesNotExist()
        for attempt in range(_ATTEMPTS):
            with suppress(cls.DoesNotExist):
                return cls._get_by(**values), False
            if attempt and not cls._has_taken(values, refused):
                break
            try:
                new = {**dict(resolve_callables(defaults or {})), **values}
                return cls.objects.create(**new), True
            except (cls.Taken, cls.AlreadyExists, Refused) as error:
                refused = error
        raise refused

    @classmethod
    def _has_taken(cls, values: Mapping[str, object], refused: Exception) -> bool:
        """Whether the error `refused` means that an item has the key or the unique `values`."""
        for error in refused.exceptions if isinstance(refused, Refused) else [refused]:
            is_taken = any({*names} == values.keys() for names in getattr(error, "uniques", ()))
            if is_taken or isinstance(error, cls.AlreadyExists):
                return True
        return False

    @classmethod
    def update_or_create(
        cls,
        defaults: Mapping[str, object] | None = None,
        create_defaults: Mapping[str, object] | None = None,
        **values: object,
    ) -> tuple[Self, bool]:
        """Give the item with these `values` the `defaults`; if there is none, make it.

        Returns the item, and whether this call made it, with `create_defaults` if they are given.
        If others change the item in the meantime, it is read again. Only `defaults` are written.
        Has the costs and errors of `get_or_create` and `change`.
        """
        new = defaults if create_defaults is None else create_defaults
        while True:
            item, is_new = cls.get_or_create(new, **values)
            if is_new:
                return item, True
            try:
                item.change(**dict(resolve_callables(defaults or {})))
            except cls.Stale:
                continue
            return item, False

    @classmethod
    def create_many(
        cls,
        items: Iterable[Self],
        *,
        workers: int = 8,
        progress: Callable[[int], object] | None = None,
    ) -> Created[Self]:
        """Store new objects, each in a separate transaction, in `workers` threads.

        `items` may be a generator. `progress` is called with the number of objects that were tried
        since its last call. An object that is stored already is not written, so the same list can
        be passed again after an error. It is refused if values were set since. Costs 1 request for
        each item, and the units of `create`.

        Raises:
            Unavailable, TableMissing: an item could not be stored. Items in progress were tried.
            TypeError: not an object of the model.
        """
        with Transaction():
            # Inside another transaction this raises, because these writes would not join it.
            pass

        def refusal(item: Self) -> Exception | None:
            if not isinstance(item, cls):
                raise TypeError(f"create_many takes objects of {cls.__name__}, not {item!r}.")
            try:
                if not item.stored:
                    item.insert()
                elif item._assigned(item.stored):
                    raise TypeError("This object is stored already: save() stores what was set.")
            except (Unavailable, TableMissing):
                raise
            except (ErrorWithValues, TypeError, ValueError) as error:
                return error
            return None

        report = Created[Self]()
        with CountingPool(workers) as pool:
            for batch in pool.batches(refusal, items, workers * _AHEAD):
                refused = [(item, error) for item, error in batch if error]
                report.stored += len(batch) - len(refused)
                report.refused += refused
                if progress:
                    progress(len(batch))
        return report

    def refresh_from_db(self, using: str | None = None, fields: None = None) -> None:
        """`refresh` reads the whole item, so values that were set on other attributes are lost."""
        refuse_alias("refresh_from_db", using)
        if fields is not None:
            raise TypeError("refresh_from_db reads the whole item: call it without fields.")
        self.refresh()

    # Validation -----------------------------------------------------------------------------------

    #: Check the values of attributes by their options, then `clean`, then unique values.
    full_clean: Any = DjangosModel.full_clean
    clean_fields: Any = DjangosModel.clean_fields
    unique_error_message: Any = DjangosModel.unique_error_message

    @property
    def _state(self) -> ModelState:
        """As in Django: `_state.adding` tells rules in `clean` whether the object is new."""
        state = ModelState()
        state.adding = not self.stored
        return state

    def clean(self) -> None:
        """Check the values together, for subclasses. Forms and `full_clean` call it.

        Raises:
            ValidationError: for the item, or for attributes: `ValidationError({"name": …})`.
        """

    def validate_unique(self, exclude: Iterable[str] | None = None) -> None:
        """Check that no other item has the unique values now. Only a write guarantees this.

        Costs 1 request and 1 read unit for each `Unique` whose values were set.

        Raises:
            ValidationError
        """
        errors: dict[str, list[ValidationError]] = {}
        for unique in self._unique_keys:
            if not set(exclude or ()).isdisjoint(unique.names):
                continue
            key = unique.usable_key(unique.wire(self.attribute_values))
            if key and key != unique.usable_key(self.stored) and self._read_guard(key):
                place, error = self._unique_error(unique.names)
                errors.setdefault(place, []).append(error)
        if errors:
            raise ValidationError(errors)

    def _unique_error(self, names: tuple[str, ...]) -> tuple[str, ValidationError]:
        """The field and the text of the error that another item has the values of `names`."""
        error = self.unique_error_message(type(self), names)
        if len(names) == 1:
            return names[0], error
        for name in names:
            messages = getattr(self.get_attributes()[name], "error_messages", {})
            if error.code in messages:
                return name, ValidationError(messages[error.code], error.code, error.params)
        return NON_FIELD_ERRORS, error

    def _errors_at_fields(self, refused: Exception) -> Iterator[tuple[str, ValidationError]]:
        """The errors of a `refused` write by field, with Django's texts.

        Empty if the error does not concern a value.
        """
        if reference := getattr(refused, "reference", ""):
            text = ModelChoiceField.default_error_messages["invalid_choice"]
            yield reference, ValidationError(text, "invalid_choice")
        elif isinstance(refused, self.Taken):
            yield from map(self._unique_error, refused.uniques)
        elif isinstance(refused, self.AlreadyExists):
            yield self._unique_error(tuple(self._key_names()))

    def validate_constraints(self, exclude: object = None) -> None:
        """Do nothing, because `validate_unique` checks each `Unique`."""

    def _display(self, *, name: str) -> str:
        """`get_<name>_display()`: the label of the choice that is the value of `name`."""
        shown: Any = DjangosModel
        return str(shown._get_FIELD_display(self, self._meta.get_field(name)))

    # Asynchronously -------------------------------------------------------------------------------

    @classmethod
    async def aget_or_none(cls, *key: object, **values: Never) -> Self | None:
        """Like `get_or_none`."""
        return await in_thread(cls.get_or_none, *key, **values)

    @classmethod
    async def aget_or_create(
        cls, defaults: Mapping[str, object] | None = None, **values: object
    ) -> tuple[Self, bool]:
        """Like `get_or_create`."""
        return await in_thread(cls.get_or_create, defaults, **values)

    @classmethod
    async def aupdate_or_create(
        cls,
        defaults: Mapping[str, object] | None = None,
        create_defaults: Mapping[str, object] | None = None,
        **values: object,
    ) -> tuple[Self, bool]:
        """Like `update_or_create`."""
        return await in_thread(cls.update_or_create, defaults, create_defaults, **values)

    @classmethod
    async def acreate_many(cls, items: Iterable[Self], **options: Any) -> Created[Self]:
        """Like `create_many`."""
        return await in_thread(cls.create_many, items, **options)

    arefresh = asynchronous(Writable.refresh)
    arefresh_from_db = asynchronous(refresh_from_db)
