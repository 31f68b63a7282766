"""Permissions and groups without rows of their own.

A permission is a text, `members.change_member`. A user has a set of them, and a set of names of
groups, each of which is an item with a set of permissions. Both sets are part of the user's item,
so a page reads them anyway. What a process has read of a group counts for `GROUP_SECONDS` there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.dispatch import receiver
from django.utils.translation import gettext_lazy as _

from dynamo.client.plain import all_models
from dynamo.exceptions import DamagedItem
from dynamo.runtime.clock import now
from dynamo.runtime.threads import together
from dynamo.signals import tables_emptied

if TYPE_CHECKING:
    from dynamo.auth.models import AbstractGroup

logger = logging.getLogger(__name__)

#: What may be permitted on the items of each model.
ACTIONS = ("add", "change", "delete", "view")

#: How long a process uses what it has read of a group.
GROUP_SECONDS = 60.0

# By table and name: until when it may be used, and the permissions.
_read: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}


def permission(action: str, model: type[Any]) -> str:
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


def permissions_of_groups(model: type[AbstractGroup] | None, names: Collection[str]) -> set[str]:
    """The permissions of the groups called `names`. One that was deleted or is damaged has none.

    Costs 1 request and 1 read unit per group that this process has not read within the last minute,
    sent together.
    """
    if not names:
        return set()
    if model is None:
        raise ImproperlyConfigured(
            "A user has groups, but the user model does not name their model: see group_model."
        )
    table = model.table()
    missing = [name for name in names if _read.get((table, name), (0.0,))[0] <= now()]
    if missing:
        together(*(partial(read_group, model, item) for item in missing))
    return {item for name in names for item in _read[table, name][1]}


def read_group(model: type[AbstractGroup], name: str) -> AbstractGroup | None:
    """The group as it is stored, for this process from now on; None if it is absent or damaged.

    Costs 1 request and 1 read unit.
    """
    # From before the request, so that a later change is seen in time.
    began = now()
    group: AbstractGroup | None = None
    try:
        group = model.get_or_none(name)
    except DamagedItem as error:
        logger.error("A group has no permissions: %s", error)
    found = frozenset(group.permissions or ()) if group else frozenset[str]()
    _read[model.table(), name] = (began + GROUP_SECONDS, found)
    return group


def check_permissions(typed: str | Collection[str]) -> None:
    """Raise ValidationError unless each of the permissions exists. A text has one in each line."""
    if unknown := _names(typed) - all_permissions().keys():
        _refuse(_("These permissions do not exist: %(names)s."), unknown)


def check_groups(typed: str | Collection[str]) -> None:
    """As `check_permissions`. Costs 1 request and 1 read unit per group, sent together."""
    model: Any = get_user_model()
    names = sorted(_names(typed))
    reads = (partial(read_group, model.group_model, name) for name in names)
    found = [group.name for group in (together(*reads) if names else []) if group]
    if unknown := {*names} - {*found}:
        _refuse(_("These groups do not exist: %(names)s."), unknown)


def _names(typed: str | Collection[str]) -> set[str]:
    lines = typed.splitlines() if isinstance(typed, str) else typed
    return set(filter(None, map(str.strip, lines)))


def _refuse(text: Any, names: set[str]) -> NoReturn:
    raise ValidationError(text, code="unknown", params={"names": ", ".join(sorted(names))})


@receiver(tables_emptied)
def _forget(**_signal: object) -> None:
    _read.clear()
