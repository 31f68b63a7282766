"""`_meta` of a model: what Django's forms, auth and admin read of a model of `django.db`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig, apps
from django.core.exceptions import FieldDoesNotExist
from django.utils.text import camel_case_to_spaces, format_lazy

if TYPE_CHECKING:
    from dynamo._internal.fields import AttributeField


class Options:
    """The names of a model and of its app, and its attributes as fields (`_internal.fields`)."""

    abstract = is_composite_pk = False
    swapped = None
    private_fields = many_to_many = ()

    def __init__(self, model: Any) -> None:
        self.model = model
        self.object_name, self.model_name = model.__name__, model.__name__.lower()

    def __str__(self) -> str:
        return self.label_lower

    @property
    def app_config(self) -> AppConfig | None:
        return apps.get_containing_app_config(self.model.__module__)

    @property
    def app_label(self) -> str:
        """The label of its app; its module if that is not in an app."""
        return self.app_config.label if self.app_config else self.model.__module__

    @property
    def label(self) -> str:
        return f"{self.app_label}.{self.object_name}"

    @property
    def label_lower(self) -> str:
        return f"{self.app_label}.{self.model_name}"

    @property
    def verbose_name(self) -> Any:
        named = getattr(self.model.Meta, "verbose_name", None)
        return named or camel_case_to_spaces(self.object_name)

    @property
    def verbose_name_plural(self) -> Any:
        named = getattr(self.model.Meta, "verbose_name_plural", None)
        return named or format_lazy("{}s", self.verbose_name)

    @cached_property
    def fields(self) -> dict[str, AttributeField]:
        """By name, the attributes in the order of their declaration."""
        from dynamo._internal.fields import field_of

        attributes = self.model.get_attributes()
        # PynamoDB sorts them by name.
        declared = dict.fromkeys(name for base in self.model.__mro__[::-1] for name in vars(base))
        unique = {each.names for each in getattr(self.model, "_unique_keys", ())}
        return {
            name: field_of(name, attributes[name], self.model, unique=(name,) in unique)
            for name in declared
            if name in attributes and name != "version"
        }

    @property
    def concrete_fields(self) -> list[AttributeField]:
        return list(self.fields.values())

    @cached_property
    def pk(self) -> Any:
        """Stands for the key, whatever its attributes are."""
        from dynamo._internal.fields import key_field

        return key_field()

    def get_field(self, name: Any) -> AttributeField:
        if name not in self.fields:
            raise FieldDoesNotExist(f"{self.object_name} has no attribute {name!r}.")
        return self.fields[name]


class OptionsOf:
    """The options of the class that has this attribute, made on first use."""

    def __init__(self, kind: type[Options] = Options) -> None:
        self.kind = kind

    def __get__(self, item: object, model: type) -> Options:
        options: Options | None = vars(model).get("_options")
        if options is None:
            options = self.kind(model)
            model._options = options  # type: ignore[attr-defined]  # each class has its own
        return options
