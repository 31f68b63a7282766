"""`_meta` of a model, as Django's forms, auth and admin read it from a model of `django.db`."""

import math
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, Never

from django import forms
from django.apps import AppConfig, apps
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.core.validators import EMPTY_VALUES, MaxValueValidator, MinValueValidator
from django.db import models
from django.forms.utils import from_current_timezone
from django.utils import formats
from django.utils.functional import keep_lazy_text
from django.utils.text import camel_case_to_spaces, format_lazy
from pynamodb import attributes as pynamodb

from dynamo.wire import attributes as own
from dynamo.wire.values import UNUSABLE, typed_value


class NumberField(forms.FloatField):
    """A number of PynamoDB's NumberAttribute: an integer of any size, or a float."""

    def to_python(self, value: Any) -> Any:
        number = super().to_python(value)
        if number is None or isinstance(value, (int, float)):
            return value if isinstance(value, int) else number
        if math.isfinite(number):
            text = formats.sanitize_separators(value) if self.localize else str(value).strip()
            exact = Decimal(text)
            if exact == int(exact):
                return int(exact)
            # Otherwise, a float cannot represent it.
            if exact == Decimal(repr(number)):
                return number
        raise ValidationError(self.error_messages["invalid"], code="invalid")


class ShownEncoder(DjangoJSONEncoder):
    """Values of any attribute as text: sets, binary values and maps as well."""

    def encode(self, o: object) -> str:
        if isinstance(o, (set, frozenset)):
            return ", ".join(
                sorted(item if isinstance(item, str) else self.encode(item) for item in o)
            )
        return o.hex() if isinstance(o, bytes) else super().encode(o)

    def default(self, o: object) -> object:
        if isinstance(o, pynamodb.MapAttribute):
            return o.as_dict()
        if isinstance(o, (set, frozenset)):
            return sorted(o, key=str)
        return o.hex() if isinstance(o, bytes) else super().default(o)


#: Options that Django's fields do not pass to those of forms.
_IN_FORMS = ("error_messages", "max_value", "min_value")


class AttributeField(models.Field):
    """A field of `django.db` that represents `attribute`."""

    attribute: pynamodb.Attribute

    def formfield(self, *args: Any, **options: Any) -> forms.Field | None:
        # An attribute of `dynamo.inputs` has a field that also cleans what people type.
        make = getattr(self.attribute, "form_field", None)
        if make is not None and options.keys() <= {"help_text", "label", "widget"}:
            field: forms.Field = make(**options)
            return field
        own = {
            name: value
            for name in _IN_FORMS
            if (value := getattr(self.attribute, name, None)) not in (None, {})
        }
        return super().formfield(*args, **own | options)

    def clean(self, value: object, model_instance: Any) -> object:
        """Like Django's method, but converts the value of an object only if it has another type."""
        if model_instance is None or not self._has_type(value):
            value = self.to_python(value)
        self.validate(value, model_instance)
        self.run_validators(value)
        return value

    def _has_type(self, value: object) -> bool:
        try:
            typed_value(self.attribute, value)
        except UNUSABLE:
            return False
        return True

    def save_form_data(self, instance: object, data: object) -> None:
        raise TypeError(
            f"Django's ModelForm cannot write a {type(instance).__name__}, because it knows no "
            "version and no request id. Derive the form from dynamo.forms.ModelForm."
        )


class _Integer(models.IntegerField):
    # Without the limits of SQL databases.
    validators = models.Field.validators


class _Number(models.FloatField):
    def formfield(self, *args: Any, **options: Any) -> forms.Field | None:
        return super().formfield(*args, **{"form_class": NumberField, **options})


class _Decimal(models.DecimalField):
    def run_validators(self, value: Any) -> None:
        # An int is a value of a DecimalAttribute, but Django's validators accept only Decimals.
        super().run_validators(self.to_python(value))


class _DateTime(models.DateTimeField):
    def to_python(self, value: object) -> datetime | None:
        """Like a form's field: a time without a zone is in the current time zone."""
        return from_current_timezone(super().to_python(value))


class _JSON(models.JSONField):
    def __init__(self, **options: Any) -> None:
        super().__init__(encoder=ShownEncoder, **options)


class _NotEditable(_JSON):
    """Forms have no field for it, unless they name its class."""

    def formfield(self, *args: Any, **options: Any) -> forms.Field | None:
        return models.Field.formfield(self, *args, **options) if "form_class" in options else None


#: The first class in an attribute's MRO that is a key here counts.
_KINDS: dict[type, type[models.Field]] = {
    own.TextAttribute: models.CharField,
    own.IntegerAttribute: _Integer,
    own.DecimalAttribute: _Decimal,
    own.BooleanAttribute: models.BooleanField,
    own.DateAttribute: models.DateField,
    own.DateTimeAttribute: _DateTime,
    own.JSONAttribute: _JSON,
    pynamodb.UnicodeAttribute: models.CharField,
    pynamodb.NumberAttribute: _Number,
    pynamodb.BooleanAttribute: models.BooleanField,
    pynamodb.UTCDateTimeAttribute: _DateTime,
    pynamodb.TTLAttribute: _DateTime,
    pynamodb.JSONAttribute: _JSON,
    pynamodb.VersionAttribute: _NotEditable,
    pynamodb.Attribute: _NotEditable,
}
_KINDS = {
    attribute: type(kind.__name__, (AttributeField, kind), {}) for attribute, kind in _KINDS.items()
}

_LIMITS = {"min_value": MinValueValidator, "max_value": MaxValueValidator}
#: Options that our attributes and Django's fields have in common.
_OPTIONS = (
    "choices",
    "decimal_places",
    "editable",
    "error_messages",
    "help_text",
    "max_digits",
    "max_length",
)


def field_of(
    name: str, attribute: pynamodb.Attribute, model: object = None, *, unique: bool = False
) -> AttributeField:
    """The field that represents the attribute of `model` called `name`."""
    kind = next(_KINDS[item] for item in type(attribute).__mro__ if item in _KINDS)
    options: dict[str, Any] = {}
    if isinstance(attribute, own.FormAttribute):
        options = {
            option: value
            for option in _OPTIONS
            if (value := getattr(attribute, option)) is not None
        }
        options["verbose_name"] = attribute.label and _in_sentences(attribute.label)
    options["validators"] = [
        *getattr(attribute, "validators", ()),
        *(
            limit(value)
            for name, limit in _LIMITS.items()
            if (value := getattr(attribute, name, None)) is not None
        ),
    ]
    # A MapAttribute has neither of these options.
    defaults = (getattr(attribute, name, None) for name in ("default", "default_for_new"))
    default = next((default for default in defaults if default is not None), models.NOT_PROVIDED)
    may_be_empty = bool(attribute.null) or default in EMPTY_VALUES
    blank = getattr(attribute, "blank", None)
    field: Any = kind(
        null=attribute.null,
        blank=may_be_empty if blank is None else blank,
        default=default,
        unique=unique,
        **options,
    )
    field.set_attributes_from_name(name)
    field.attribute, field.model = attribute, model
    return field


@keep_lazy_text
def _in_sentences(label: str) -> str:
    """A label in the form for Django's messages, inside a sentence."""
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"


class Options:
    """The names of a model and of its app, and its attributes as fields: a model's `_meta`."""

    abstract = is_composite_pk = False
    swapped = None
    private_fields = many_to_many = local_many_to_many = all_parents = ()
    # Checks of a ForeignKey to the model read these before they report it.
    unique_together = total_unique_constraints = pk_fields = ()
    constraints = related_objects = ()

    def __init__(self, model: Any) -> None:
        self.model = model
        self.concrete_model = model
        self.object_name = model.__name__
        self.model_name = model.__name__.lower()

    def __str__(self) -> str:
        return self.label_lower

    @property
    def app_config(self) -> AppConfig | None:
        return apps.get_containing_app_config(self.model.__module__)

    @property
    def app_label(self) -> str:
        """The label of its app, or its module if that belongs to no app."""
        return self.app_config.label if self.app_config else self.model.__module__

    @property
    def label(self) -> str:
        return f"{self.app_label}.{self.object_name}"

    @property
    def label_lower(self) -> str:
        return f"{self.app_label}.{self.model_name}"

    @property
    def verbose_name(self) -> own.StrOrPromise:
        named = getattr(self.model.Meta, "verbose_name", None)
        return named or camel_case_to_spaces(self.object_name)

    @property
    def verbose_name_plural(self) -> own.StrOrPromise:
        named = getattr(self.model.Meta, "verbose_name_plural", None)
        return named or format_lazy("{}s", self.verbose_name)

    @property
    def parents(self) -> Never:
        raise AttributeError(
            f"{self.object_name} is not a model of a relational database. For Django REST "
            "framework, derive the serializer from dynamo.rest.ModelSerializer."
        )

    @cached_property
    def by_name(self) -> dict[str, AttributeField]:
        """The attributes by name, in the order of their declaration."""
        attributes = self.model.get_attributes()
        # PynamoDB sorts them by name.
        declared = dict.fromkeys(name for base in self.model.__mro__[::-1] for name in vars(base))
        unique = {item.names for item in getattr(self.model, "_unique_keys", ())}
        return {
            name: field_of(name, attributes[name], self.model, unique=(name,) in unique)
            for name in declared
            if name in attributes and name != "version"
        }

    @property
    def fields(self) -> list[AttributeField]:
        return [*self.by_name.values()]

    concrete_fields = local_fields = fields

    def get_fields(
        self, include_parents: bool = True, include_hidden: bool = False
    ) -> tuple[AttributeField, ...]:
        return tuple(self.fields)

    @cached_property
    def pk(self) -> models.CharField:
        """Stands for the key with all its attributes."""
        field: models.CharField = models.CharField("primary key", primary_key=True)
        field.set_attributes_from_name("pk")
        return field

    def get_field(self, name: str) -> AttributeField:
        if name not in self.by_name:
            raise FieldDoesNotExist(f"{self.object_name} has no attribute {name!r}.")
        return self.by_name[name]
