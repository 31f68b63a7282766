"""What pages show of a model and of its items: names, labels and values."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from django.apps import apps
from django.contrib.admin.utils import display_for_value
from django.core.exceptions import ImproperlyConfigured
from django.core.serializers.json import DjangoJSONEncoder
from django.forms.utils import pretty_name
from django.utils.choices import flatten_choices
from django.utils.text import camel_case_to_spaces, format_lazy
from pynamodb.attributes import Attribute, MapAttribute

from dynamo._internal.items import Item, as_hex
from dynamo.admin.keys import id_of
from dynamo.exceptions import DamagedItem
from dynamo.models import Model


class Options:
    """What templates and `AdminSite` read of the `_meta` of Django's models."""

    abstract = False
    swapped = None

    def __init__(self, model: type[Model]) -> None:
        config = apps.get_containing_app_config(model.__module__)
        if config is None:
            raise ImproperlyConfigured(f"The app of {model.__name__} is not in INSTALLED_APPS.")
        self.app_config, self.app_label = config, config.label
        self.object_name, self.model_name = model.__name__, model.__name__.lower()
        meta: Any = model.Meta
        self.verbose_name = getattr(meta, "verbose_name", None) or camel_case_to_spaces(
            model.__name__
        )
        self.verbose_name_plural = getattr(meta, "verbose_name_plural", None) or format_lazy(
            "{}s", self.verbose_name
        )

    def __str__(self) -> str:
        return f"{self.app_label}.{self.model_name}"


def name_of(item: Model) -> str:
    """What pages and the audit log call an item: its text if its class makes one, else its key."""
    # An item that is not stored lacks the values that `__str__` may need.
    # Nor does one from an index have all of them.
    if item.stored and type(item).__str__ is not object.__str__:
        with suppress(AttributeError, TypeError):
            return str(item)
    return f"{item._noun()} {id_of(item)}"


class DamagedRow:
    """Stands for an item of a list that cannot be read."""

    def __init__(self, item: Item, error: DamagedItem) -> None:
        self.stored, self.error = item, error

    def __str__(self) -> str:
        return str(self.error)


class Shown:
    """An item with the `pk` that contrib.admin's templates put into URLs."""

    def __init__(self, item: Model) -> None:
        self._item, self.pk = item, id_of(item)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._item, name)

    def __str__(self) -> str:
        return name_of(self._item)


def is_sensitive(model: type[Model], name: Any) -> bool:
    """Whether the attribute is neither shown nor logged."""
    attribute = model.get_attributes().get(name) if isinstance(name, str) else None
    return bool(getattr(attribute, "sensitive", False))


def described(name: Any, model_admin: Any) -> Any:
    """What `name` stands for in `list_display` and other options; None if it is nothing.

    An attribute of the model, a function, a method of the ModelAdmin or of the model.
    """
    attributes = model_admin.model.get_attributes()
    if callable(name):
        return name
    if name in attributes:
        return attributes[name]
    return getattr(model_admin, name, None) or getattr(model_admin.model, name, None)


def label_for(name: Any, model_admin: Any) -> Any:
    """The heading of a column and the label of a field."""
    if name == "__str__":
        return model_admin.opts.verbose_name
    if (field := model_admin.model._meta.fields.get(name)) is not None:
        return field.verbose_name
    found = described(name, model_admin)
    found = getattr(found, "fget", found)
    default = pretty_name(getattr(found, "__name__", str(name)))
    return getattr(found, "short_description", default)


def shown(name: Any, item: Model, model_admin: Any) -> Any:
    """The value as pages show it."""
    empty = model_admin.get_empty_value_display()
    found = described(name, model_admin)
    if isinstance(found, Attribute):
        return _of_attribute(found, getattr(item, name), empty)
    if name == "__str__":
        return name_of(item)
    if callable(name) or hasattr(model_admin, name):
        value = found(item) if callable(name) else getattr(model_admin, name)(item)
    else:
        value = getattr(item, name, None)
        value = value() if callable(value) else value
    found = getattr(found, "fget", found)
    empty = getattr(found, "empty_value_display", empty)
    return display_for_value(value, empty, getattr(found, "boolean", False))


def _of_attribute(attribute: Any, value: Any, empty: str) -> Any:
    choices: Any = flatten_choices(getattr(attribute, "choices", None) or ())
    labels = {str(choice): label for choice, label in choices}
    if str(value) in labels:
        return labels[str(value)]
    if attribute.attr_type == "BOOL":
        return display_for_value(value, empty, boolean=True)
    if isinstance(value, (set, frozenset)):
        value = sorted(map(_text, value))
    elif isinstance(value, bytes):
        value = value.hex()
    elif isinstance(value, MapAttribute):
        value = _text(value.as_dict())  # type: ignore[no-untyped-call]  # PynamoDB's
    elif isinstance(value, (dict, list)):
        value = _text(value)
    return display_for_value(value, empty)


class _Encoder(DjangoJSONEncoder):
    def default(self, o: Any) -> Any:
        if isinstance(o, MapAttribute):
            return o.as_dict()  # type: ignore[no-untyped-call]  # PynamoDB's
        if isinstance(o, (set, frozenset)):
            return sorted(o, key=str)
        return as_hex(o) if isinstance(o, bytes) else super().default(o)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return (
        as_hex(value)
        if isinstance(value, bytes)
        else json.dumps(value, cls=_Encoder, ensure_ascii=False)
    )
