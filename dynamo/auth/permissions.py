"""Permissions without database rows, and groups of users that have them.

A permission is a text, `members.change_member`. A user has a set of them, which is part of the
user's item, so a page reads them anyway. The user's item also has the names of the user's groups,
which are items with a set of permissions. A process uses what it has read of a group for
`GROUP_SECONDS`.
"""

import logging
from collections.abc import Callable, Collection, Set
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.dispatch import receiver

# Under another name, `make messages` leaves out the texts of Django's own catalogues.
from django.utils.translation import gettext_lazy as _, gettext_lazy as djangos_lazy
from pynamodb.attributes import UnicodeSetAttribute

from dynamo.client.plain import PlainModel, all_models
from dynamo.exceptions import DamagedItem
from dynamo.model.base import Model
from dynamo.runtime.clock import now
from dynamo.runtime.threads import together
from dynamo.signals import tables_emptied
from dynamo.wire.attributes import StrOrPromise, TextAttribute

logger = logging.getLogger(__name__)

#: A process uses what it has read of a group for this time.
GROUP_SECONDS = 60.0

# The permissions by table and name, and the time until which they may be used.
_read: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}

#: The permissions on the items of each model.
ACTIONS = ("add", "change", "delete", "view")


class Names(set[str]):
    """The value of a `NamesAttribute`. `save` stores the added and removed names."""

    def add(self, *names: str) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"These are names: add a text, not {name!r}. Then call save().")
        super().update(names)

    def all(self) -> Self:
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"A set of names has no {name!r}. Iterate over it, or use name in user.groups; "
                'to write it, call user.change(groups={"editors"}).'
            )


class NamesAttribute(UnicodeSetAttribute):
    """A set of names.

    A form checks with `validator` that they exist, as a set or as lines of text.
    """

    def __init__(self, validator: Callable[[Any], None]) -> None:
        super().__init__(null=True, default=Names)
        self.validators = [validator]

    def __set__(self, instance: Any, value: set[str] | None) -> None:
        super().__set__(instance, Names(value) if isinstance(value, Set) else value)

    def deserialize(self, value: list[str]) -> Names:
        return Names(value)


def permission(action: str, model: type[PlainModel]) -> str:
    """The permission to `action` ("add", "change", "delete", "view") items of `model`."""
    return f"{model._meta.app_label}.{action}_{model._meta.model_name}"


def all_permissions() -> dict[str, str]:
    """All permissions by name, with an English description.

    There are four for each model of the installed apps, and those of `Meta.permissions`, which are
    pairs of code name and text, as in Django.
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


# Groups -------------------------------------------------------------------------------------------


class AbstractGroup(Model):
    """A group of users, who have its permissions. The key is its name, which never changes."""

    name = TextAttribute(djangos_lazy("name"), hash_key=True, max_length=150)
    permissions = NamesAttribute(check_permissions)

    def __str__(self) -> str:
        return str(self.name)


def permissions_of_groups(model: type[AbstractGroup], names: Collection[str]) -> set[str]:
    """The permissions of the groups called `names`. A deleted or damaged group has none.

    Costs 1 request and 1 read unit per group that this process has not read within the last minute,
    sent together.
    """
    table = model.table()
    missing = [name for name in names if _read.get((table, name), (0.0,))[0] <= now()]
    if missing:
        together(*(partial(read_group, model, item) for item in missing))
    return {item for name in names for item in _read[table, name][1]}


def read_group(model: type[AbstractGroup], name: str) -> AbstractGroup | None:
    """Read the group. Returns None if it is absent or damaged.

    This process uses its permissions for `GROUP_SECONDS`. Costs 1 request and 1 read unit.
    """
    # The time is taken before the request, so that a later change is read in time.
    began = now()
    group: AbstractGroup | None = None
    try:
        group = model.get_or_none(name)
    except DamagedItem as error:
        logger.error("A group has no permissions: %s", error)
    found = frozenset(group.permissions or ()) if group else frozenset[str]()
    _read[model.table(), name] = (began + GROUP_SECONDS, found)
    return group


def check_groups(typed: str | Collection[str]) -> None:
    """Like `check_permissions`. Costs 1 request and 1 read unit per group, sent together."""
    model: Any = get_user_model()
    names = sorted(names_of(typed))
    reads = (partial(read_group, model.group_model, name) for name in names)
    found = [group.name for group in (together(*reads) if names else []) if group]
    if unknown := {*names} - {*found}:
        refuse(_("These groups do not exist: %(names)s."), unknown)


@receiver(tables_emptied)
def _forget(**_signal: object) -> None:
    _read.clear()
