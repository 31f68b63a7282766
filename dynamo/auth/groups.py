"""Groups of users: items with a set of permissions.

A user has a set of names of groups, which is part of the user's item. What a process has read of a
group counts for `GROUP_SECONDS` there.
"""

import logging
from collections.abc import Collection
from functools import partial
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.dispatch import receiver

# Under another name `make messages` leaves out what is in Django's own catalogues.
from django.utils.translation import gettext_lazy as _, gettext_lazy as djangos_lazy

from dynamo.auth.permissions import NamesAttribute, check_permissions, names_of, refuse
from dynamo.exceptions import DamagedItem
from dynamo.model.base import Model
from dynamo.runtime.clock import now
from dynamo.runtime.threads import together
from dynamo.signals import tables_emptied
from dynamo.wire.attributes import TextAttribute

logger = logging.getLogger(__name__)

#: How long a process uses what it has read of a group.
GROUP_SECONDS = 60.0

# By table and name: until when it may be used, and the permissions.
_read: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}


class AbstractGroup(Model):
    """A group of users, which have its permissions. Its key is its name, which never changes."""

    name = TextAttribute(djangos_lazy("name"), hash_key=True, max_length=150)
    permissions = NamesAttribute(check_permissions)

    def __str__(self) -> str:
        return str(self.name)


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
    """Read the group. Returns None if it is absent or damaged.

    This process uses its permissions for `GROUP_SECONDS`. Costs 1 request and 1 read unit.
    """
    # The time before the request, so that a later change is read in time.
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
