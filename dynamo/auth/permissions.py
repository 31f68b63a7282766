"""Permissions without database rows.

A permission is a text, `members.change_member`. A user has a set of them, which is part of the
user's item, so a page reads them anyway.
"""

from collections.abc import Callable, Collection
from typing import Any, NoReturn

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import UnicodeSetAttribute

from dynamo.client.plain import PlainModel, all_models
from dynamo.wire.attributes import StrOrPromise

#: The permissions on the items of each model.
ACTIONS = ("add", "change", "delete", "view")


class NamesAttribute(UnicodeSetAttribute):
    """A set of names that exist: a form asks `validator`, with the set or with lines of text."""

    def __init__(self, validator: Callable[[Any], None]) -> None:
        super().__init__(null=True, default=set)
        self.validators = [validator]


def permission(action: str, model: type[PlainModel]) -> str:
    """The permission to `action` ("add", "change", "delete", "view") items of `model`."""
    return f"{model._meta.app_label}.{action}_{model._meta.model_name}"


def all_permissions() -> dict[str, str]:
    """Each permission that exists, and what it permits, in English.

    Four for each model of the installed apps, and those of `Meta.permissions`, which are pairs of
    code name and text, as in Django.
    """
    found: dict[str, str] = {}
    for model in all_models():
        if model._meta.app_config:
            noun = getattr(model.Meta, "verbose_name", model.__name__.lower())
            found |= {permission(action, model): f"Can {action} {noun}" for action in ACTIONS}
            for code_name, text in getattr(model.Meta, "permissions", ()):
                found[f"{model._meta.app_label}.{code_name}"] = str(text)
    return dict(sorted(found.items()))


def check_permissions(typed: str | Collection[str]) -> None:
    """Raise ValidationError unless each of the permissions exists. A text has one in each line."""
    if unknown := names_of(typed) - all_permissions().keys():
        refuse(_("These permissions do not exist: %(names)s."), unknown)


def names_of(typed: str | Collection[str]) -> set[str]:
    lines = typed.splitlines() if isinstance(typed, str) else typed
    return set(filter(None, map(str.strip, lines)))


def refuse(text: StrOrPromise, names: set[str]) -> NoReturn:
    raise ValidationError(text, code="unknown", params={"names": ", ".join(sorted(names))})
