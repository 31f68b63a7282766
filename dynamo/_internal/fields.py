"""The attributes of a model as fields of `django.db`, which Django's forms and admin work with."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.core.validators import EMPTY_VALUES
from django.db import models
from django.utils import formats
from django.utils.functional import keep_lazy_text
from pynamodb import attributes as pynamodb

from dynamo import attributes as own


class NumberField(forms.FloatField):
    """A number of PynamoDB's NumberAttribute: an integer of any size, or a float."""

    def to_python(self, value: Any) -> Any:
        number = super().to_python(value)
        if number is None or isinstance(value, (int, float)):
            return value if isinstance(value, int) else number
        if not math.isfinite(number):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        exact = Decimal(formats.sanitize_separators(value) if self.localize else str(value).strip())
        if exact == int(exact):
            return int(exact)
        if exact != Decimal(repr(number)):
            # A float cannot hold it.
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return number


class ShownEncoder(DjangoJSONEncoder):
    """Values of any attribute as text: sets, binary values and maps as well."""

    def encode(self, o: Any) -> str:
        if isinstance(o, (set, frozenset)):
            return ", ".join(
                sorted(each if isinstance(each, str) else self.encode(each) for each in o)
            )
        return o.hex() if isinstance(o, bytes) else super().encode(o)

    def default(self, o: Any) -> Any:
        if isinstance(o, pynamodb.MapAttribute):
            return o.as_dict()  # type: ignore[no-untyped-call]  # PynamoDB's
        if isinstance(o, (set, frozenset)):
            return sorted(o, key=str)
        return o.hex() if isinstance(o, bytes) else super().default(o)


class AttributeField(models.Field):
    """A field of `django.db` that stands for `attribute`."""

    attribute: pynamodb.Attribute[Any]

    def formfield(self, *args: Any, **options: Any) -> Any:
        """The field of the attribute in a form; None if forms have none for its type."""
        return super().formfield(*args, **{"show_hidden_initial": False, **options})


class _Number(models.FloatField):
    def formfield(self, *args: Any, **options: Any) -> Any:
        return super().formfield(*args, **{"form_class": NumberField, **options})


class _JSON(models.JSONField):
    def __init__(self, **options: Any) -> None:
        super().__init__(encoder=ShownEncoder, **options)


class _NotEditable(_JSON):
    """Forms have no field for it, unless they name its class."""

    def formfield(self, *args: Any, **options: Any) -> Any:
        return models.Field.formfield(self, *args, **options) if "form_class" in options else None


#: Of an attribute's classes, the first one that is named here counts.
_KINDS: dict[type, type[models.Field]] = {
    own.TextAttribute: models.CharField,
    own.IntegerAttribute: models.IntegerField,
    own.DecimalAttribute: models.DecimalField,
    own.BooleanAttribute: models.BooleanField,
    own.DateAttribute: models.DateField,
    own.DateTimeAttribute: models.DateTimeField,
    own.JSONAttribute: _JSON,
    pynamodb.UnicodeAttribute: models.CharField,
    pynamodb.NumberAttribute: _Number,
    pynamodb.BooleanAttribute: models.BooleanField,
    pynamodb.UTCDateTimeAttribute: models.DateTimeField,
    pynamodb.TTLAttribute: models.DateTimeField,
    pynamodb.JSONAttribute: _JSON,
    pynamodb.VersionAttribute: _NotEditable,
    pynamodb.Attribute: _NotEditable,
}
_KINDS = {
    attribute: type(kind.__name__, (AttributeField, kind), {}) for attribute, kind in _KINDS.items()
}

#: Options that our attributes and Django's fields have in common.
_OPTIONS = (
    *("choices", "decimal_places", "editable", "help_text", "max_digits", "max_length"),
    "validators",
)


def field_of(
    name: str, attribute: pynamodb.Attribute[Any], model: Any = None, *, unique: bool = False
) -> Any:
    """The field that stands for the attribute of `model` called `name`."""
    kind = next(_KINDS[each] for each in type(attribute).__mro__ if each in _KINDS)
    options: dict[str, Any] = {}
    if isinstance(attribute, own.FormAttribute):
        options = {each: getattr(attribute, each) for each in _OPTIONS if hasattr(attribute, each)}
        options["verbose_name"] = attribute.label and _in_sentences(attribute.label)
    # A MapAttribute has neither.
    defaults = (getattr(attribute, each, None) for each in ("default", "default_for_new"))
    default = next((each for each in defaults if each is not None), models.NOT_PROVIDED)
    may_be_empty = bool(attribute.null) or default in EMPTY_VALUES
    field: Any = kind(
        null=attribute.null, blank=may_be_empty, default=default, unique=unique, **options
    )
    field.set_attributes_from_name(name)
    field.attribute, field.model = attribute, model
    return field


def key_field() -> Any:
    field: Any = models.CharField("primary key", max_length=36, primary_key=True)
    field.set_attributes_from_name("pk")
    return field


@keep_lazy_text
def _in_sentences(label: str) -> str:
    """A label as it is written inside of Django's messages."""
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"
