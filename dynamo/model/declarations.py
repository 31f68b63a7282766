"""Declarations of Django's ORM and of PynamoDB that have no effect here: they are refused."""

import warnings
from collections.abc import Collection, Iterable

from django import forms
from django.db import models
from django.db.models.constraints import BaseConstraint
from django.db.models.fields import AutoFieldMixin
from django.db.models.manager import BaseManager
from pynamodb.attributes import Attribute, MapAttribute
from pynamodb.indexes import Index
from pynamodb.models import MetaProtocol, Model as PynamoModel

from dynamo.model.unique import Unique
from dynamo.wire.attributes import nearest_or_all

#: The options in `Meta` of a model, and of an index.
MODEL_OPTIONS = (
    "table_name guard_table verbose_name verbose_name_plural permissions abstract".split()
)
INDEX_OPTIONS = ("projection", "index_name")
#: The names that PynamoDB adds to `Meta` of an index.
_ADDED = "attributes"

_SORT_KEY = "a sort key of the table or of an index: range_key=True"
_UNIQUE = "Unique(…) in the class"
_BILLING = "manage.py createtables, whose tables are billed on demand"
_CREDENTIALS = "AWS's usual variables and profiles"
_TEMPLATE = "the template of manage.py cloudformation"
_METHODS = "class methods of the model"
#: What to use instead of options of Django's or PynamoDB's `Meta`.
_INSTEAD_OF_OPTIONS = {
    "app_label": "the app that contains the module",
    "base_manager_name": _METHODS,
    "constraints": _UNIQUE,
    "db_table": "table_name",
    "db_table_comment": "a docstring",
    "db_tablespace": _TEMPLATE,
    "default_manager_name": _METHODS,
    "default_permissions": "permissions, which adds to the four of each model",
    "default_related_name": "GlobalSecondaryIndex in the class, and its page(…)",
    "get_latest_by": _SORT_KEY,
    "index_together": "GlobalSecondaryIndex in the class",
    "indexes": "GlobalSecondaryIndex in the class",
    "managed": _TEMPLATE,
    "order_with_respect_to": _SORT_KEY,
    "ordering": _SORT_KEY,
    "proxy": "a subclass with the same table_name",
    "swappable": "another class, which the project imports",
    "unique_together": _UNIQUE,
    "aws_access_key_id": _CREDENTIALS,
    "aws_secret_access_key": _CREDENTIALS,
    "aws_session_token": _CREDENTIALS,
    "billing_mode": _BILLING,
    "host": "AWS_ENDPOINT_URL_DYNAMODB",
    "max_pool_connections": "DYNAMODB_MAX_CONNECTIONS",
    "read_capacity_units": _BILLING,
    "region": "AWS_REGION",
    "stream_view_type": _TEMPLATE,
    "tags": _TEMPLATE,
    "write_capacity_units": _BILLING,
}
#: PynamoDB's options are only warnings, because models that were written for PynamoDB have them.
_PYNAMODBS_OPTIONS = MetaProtocol.__annotations__.keys() - {"table_name"}

#: What to use instead of an object of Django in the body of a class. The nearest base class counts.
_INSTEAD: dict[type, str] = {
    models.Field: "TextAttribute",
    AutoFieldMixin: "the key pk, which comes with Model, or NumberedItem for numbers",
    models.BinaryField: "PynamoDB's BinaryAttribute",
    models.BooleanField: "BooleanAttribute",
    models.CompositePrimaryKey: "two attributes, with hash_key=True and range_key=True",
    models.DateField: "DateAttribute",
    models.DateTimeField: "DateTimeAttribute",
    models.DecimalField: "DecimalAttribute",
    models.DurationField: "IntegerAttribute, in seconds",
    models.FloatField: "DecimalAttribute",
    models.ForeignKey: "Reference(…)",
    models.GeneratedField: "a property",
    models.IntegerField: "IntegerAttribute",
    models.JSONField: "JSONAttribute",
    models.ManyToManyField: "PynamoDB's UnicodeSetAttribute with the keys of the other items",
    models.OneToOneField: "Reference(…, unique=True)",
    models.Index: "GlobalSecondaryIndex",
    BaseConstraint: "Unique",
    BaseManager: "find, get, page and query of the model",
    forms.Field: "an attribute here, and the field in a ModelForm",
}

_DECLARATIONS: tuple[type, ...] = (Attribute, Unique, Index)


def check_meta(
    noun: str, meta: object, options: Collection[str], others: Iterable[object] = ()
) -> None:
    """Check the names in the class `meta`, called `noun`, and in its bases except `others`.

    Raises:
        TypeError: one is not among `options`.
    """
    parts = [part for part in getattr(meta, "__mro__", ())[:-1] if part not in others]
    for name in {name: None for part in parts for name in vars(part)}:
        if name in options or name.startswith("__") or name == _ADDED:
            continue
        instead = _INSTEAD_OF_OPTIONS.get(name) or nearest_or_all(name, options)
        text = f"{noun}.{name} has no effect. Use {instead}."
        if name not in _PYNAMODBS_OPTIONS:
            raise TypeError(text)
        warnings.warn(text, stacklevel=3)


def check_body(model: type) -> None:
    """Check the contents of the class `model` and its bases.

    Raises:
        TypeError: an object of Django; a declaration that is not called, is in a list, or replaces
            another attribute; another attribute that replaces a declaration.
    """
    found: dict[str, list[object]] = {}
    for base in model.__mro__:
        for name, value in vars(base).items():
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        for value in values:
            _check_value(name, value)
        _check_replacement(name, values)


def check_indexes(model: type[PynamoModel]) -> None:
    """Check that each class of an index in the body of `model` is used.

    Raises:
        TypeError
    """
    used = tuple(type(index) for index in model._indexes.values())
    for name, kind in vars(model).items():
        is_index = isinstance(kind, type) and issubclass(kind, Index)
        if is_index and not any(issubclass(item, kind) for item in used):
            raise TypeError(f"the index {name} is not used. Write by_… = {name}().")


def _check_value(name: str, value: object) -> None:
    kind = value if isinstance(value, type) else type(value)
    for base in kind.__mro__:
        if base in _INSTEAD:
            raise TypeError(f"{name} is Django's {kind.__name__}. Use {_INSTEAD[base]}.")
    is_declaration = issubclass(kind, (Attribute, Unique)) and not issubclass(kind, MapAttribute)
    if kind is value and is_declaration:
        raise TypeError(f"{name} is a class. Write {name} = {kind.__name__}(…).")
    if isinstance(value, (tuple, list)) and any(isinstance(item, _DECLARATIONS) for item in value):
        raise TypeError(f"{name} is a {type(value).__name__}. Give each declaration its own name.")


def _check_replacement(name: str, values: list[object]) -> None:
    """Check the values that a class and then its bases have under `name`."""
    first, *others = values
    kinds = (
        kind for other in (*others, first) for kind in _DECLARATIONS if isinstance(other, kind)
    )
    kind = next(kinds, None)
    if kind is None:
        return
    is_kept = name == "version" or any(
        getattr(other, "is_hash_key", False) or getattr(other, "is_range_key", False)
        for other in others
    )
    if not isinstance(first, kind) and (first is not None or is_kept):
        raise TypeError(
            f"a base declares {name} as {kind.__name__}. Only another one can replace it, or None, "
            "which removes what is neither a key nor the version."
        )
    # None removes a declaration. If there is only None, it is an option of the library.
    if any(isinstance(other, kind) for other in others):
        others = [other for other in others if other is not None]
    if not all(isinstance(other, (kind, property)) for other in others):
        raise cannot_be_called(name)


def cannot_be_called(name: str) -> TypeError:
    return TypeError(
        f"an attribute cannot be called {name}, because models have a method or parameter of this "
        f"name. Store it under this name: attr_name={name!r}."
    )
