"""The rights of the user who edits, as conditions of the edit's own transaction.

A page asks `has_perm` when it is opened and when its form is sent. In between, and until the write,
the right can end: so each write also requires that what gave the right is still stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pynamodb.expressions.condition import Condition

from dynamo.exceptions import DynamoError
from dynamo.models import Model


class RightsLost(DynamoError):
    """The user no longer has the right to do this. Nothing was written."""

    user: str

    text = "The user {user} no longer has the right to do this. Nothing was written."


@dataclass(frozen=True)
class Right:
    """What an item must have: these values, and these elements of its sets.

    `also` is a further condition, of what changes without a new version of the item.
    """

    item: Model
    values: Mapping[str, Any] = field(default_factory=dict)
    elements: Mapping[str, str] = field(default_factory=dict)
    also: Condition | None = None

    def condition(self) -> Condition:
        attributes = self.item.get_attributes()
        condition: Any = self.item._exists_condition()
        for name, value in self.values.items():
            each: Any = attributes[name] == value
            # A constant stands for a stored item without the attribute.
            if attributes[name].default == value:
                each = each | attributes[name].does_not_exist()
            condition = condition & each
        for name, element in self.elements.items():
            condition = condition & attributes[name].contains(element)
        if self.also is not None:
            condition = condition & self.also
        made: Condition = condition
        return made

    def holds(self, item: Model) -> bool:
        """Whether `item`, as it was read, has them."""
        return all(getattr(item, name) == value for name, value in self.values.items()) and all(
            element in (getattr(item, name) or ()) for name, element in self.elements.items()
        )


def rights_of(user: Any, permission: str) -> list[Right]:
    """What must still be stored if `user` has `permission` ("members.change_member") now.

    The user is active and staff, and is a superuser, has the permission, or is in a group that has
    it. If `has_perm` of another backend decides, its decision cannot be part of a transaction.
    What is read of the groups counts for `has_perm` from then on.

    Costs 1 request for each group of a user who has the permission by a group.
    """
    # It needs the apps, which are loaded later.
    from dynamo.auth.permissions import read_group

    item: Any = user
    if not isinstance(item, Model):
        return []
    values = {"is_active": True, "is_staff": True}
    if user.is_superuser:
        return [Right(user, {**values, "is_superuser": True})]
    if permission in (getattr(user, "permissions", None) or ()):
        return [Right(user, values, {"permissions": permission})]
    for name in getattr(user, "groups", None) or ():
        group = read_group(user.group_model, name)
        if group is not None and permission in (group.permissions or ()):
            return [
                Right(user, values, {"groups": name}),
                Right(group, elements={"permissions": permission}),
            ]
    return [Right(user, values)]
