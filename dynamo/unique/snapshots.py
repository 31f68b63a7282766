"""One guard item with all users that it concerns, read at one instant: what is wrong, and repair.

Items are examined as DynamoDB sends them, not as objects: a damaged item must be reported, and
cannot be if reading it as an object fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Literal, get_args

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo.exceptions import Refused
from dynamo.items import PARTITION_KEY_MAX_BYTES, Item
from dynamo.transactions import Transaction, read_together
from dynamo.unique.attributes import SEPARATOR, UniqueAttributes
from dynamo.unique.guarding import is_reserved
from dynamo.unique.guards import Guard

Kind = Literal["missing", "orphaned", "foreign"]
"""What can be wrong with a guard item.

missing: a user has the value, and there is no guard item, or one whose value is free (`Guard`).
orphaned: there is a guard item, and no user has the value.
foreign: a user has the value, and the guard item belongs to another user.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)

#: The stored names of a guard item's attributes, without its key.
GUARD_ATTRIBUTES = tuple(
    str(each.attr_name) for each in (Guard.owner, Guard.reservation, Guard.expires)
)


@dataclass(frozen=True)
class Finding:
    """One error: in the guard item `key`, for the user `pk`.

    For an orphaned guard item `pk` is the owner that it names, empty if it names none. Not
    `repairable` if two users have the same value: a person decides which one keeps it.
    """

    kind: Kind
    pk: str
    key: str
    repairable: bool


class ChangedMeanwhile(Exception):
    """The stored items are not those that were read; nothing was written."""


def stored_names(unique: UniqueAttributes[Any]) -> dict[str, str]:
    """The declared attributes: stored name to Python name."""
    return {unique.stored_name(name): name for name in unique.normalize}


def is_user_key(key: str) -> bool:
    """Whether an item with this key can own guard items, and is not one itself."""
    return SEPARATOR not in key and 0 < len(key.encode()) <= PARTITION_KEY_MAX_BYTES


def guard_key_of(unique: UniqueAttributes[Any], name: str, user: Item) -> str | None:
    """The key of the guard item that `user` must have for the attribute `name`, if any.

    Raises:
        ValueError: the value is not a text, cannot be normalized, or is required and absent.
    """
    attribute = unique.model.get_attributes()[name]
    stored = user.get(str(attribute.attr_name), {"NULL": True})
    value = "" if "NULL" in stored else stored.get("S")
    if value is None or not (value or attribute.null):
        raise ValueError(f"The stored value of {attribute.attr_name} is not valid.")
    return unique.key(name, value) if value else None


def _text(item: Item | None, stored_name: str | None) -> str:
    return str((item or {}).get(str(stored_name), {}).get("S", ""))


@dataclass(frozen=True)
class Snapshot:
    """The items stored at one instant under a guard item's key and the keys of `users`.

    The guard item's owner is one of `users`, if it names one.
    """

    unique: UniqueAttributes[Any]
    key: str
    guard: Item | None
    users: Mapping[str, Item | None]

    @classmethod
    def read(cls, unique: UniqueAttributes[Any], key: str, pks: Sequence[str]) -> Snapshot:
        """Read the guard item `key`, its owner and the users `pks`.

        Costs 1 request and 2 read units per 4 KB of each item; both again if the owner is not
        one of `pks`.
        """
        wanted = list(pks)
        while True:
            items = [unique.guard_model(key), *(unique.model(pk) for pk in wanted)]
            guard, *users = read_together(items)
            snapshot = cls(unique, key, guard, dict(zip(wanted, users, strict=True)))
            if snapshot.owner is None or snapshot.owner in snapshot.users:
                return snapshot
            wanted = [*pks, snapshot.owner]

    @property
    def owner(self) -> str | None:
        """The owner of the guard item; None if there is none, or its name cannot be a user's."""
        named = _text(self.guard, Guard.owner.attr_name)
        return named if is_user_key(named) else None

    def _has_value(self, user: Item | None) -> bool:
        name = stored_names(self.unique)[self.key.partition(SEPARATOR)[0]]
        try:
            return user is not None and self.key == guard_key_of(self.unique, name, user)
        except ValueError:
            return False

    def findings(self, oldest_by: str | None = None) -> list[Finding]:
        """What is wrong. At most one finding is repairable, and that one is the first.

        If several users have the value and there is no guard item, the oldest one gets it: by the
        attribute stored as `oldest_by`, a time as text, then by primary key.
        """
        holders = [pk for pk, user in self.users.items() if self._has_value(user)]
        if not holders:
            if self.guard is None:
                return []
            named = _text(self.guard, Guard.owner.attr_name)
            return [Finding("orphaned", named, self.key, repairable=True)]
        if self.guard is not None and not is_reserved(self.guard):
            return [
                Finding("foreign", pk, self.key, repairable=len(holders) == 1)
                for pk in holders
                if pk != self.owner
            ]
        first, *others = sorted(holders, key=lambda pk: (self._age(pk, oldest_by), pk))
        return [
            Finding("missing", first, self.key, repairable=True),
            *(Finding("foreign", pk, self.key, repairable=False) for pk in others),
        ]

    def _age(self, pk: str, oldest_by: str | None) -> tuple[bool, str]:
        """Sorts the oldest first, and those of unknown age last."""
        since = (self.users[pk] or {}).get(oldest_by or "", {}).get("S")
        return since is None, since or ""

    def repair(self, finding: Finding) -> None:
        """Repair one finding in one transaction, if no item of it has changed.

        The guard item, the value of its new owner and that of its old one must be as they were
        read. Costs 1 request and 4 write units, 6 if the guard item named another owner.

        Raises:
            ChangedMeanwhile: an item was not; nothing was written.
        """
        changed = ChangedMeanwhile(self.key)
        guard = self.unique.guard_model(self.key, owner=finding.pk)
        key_name = self.unique.guard_model.key_attribute_names()[0]
        guard_as_read = _as_read(self.guard, key_name, *GUARD_ATTRIBUTES)
        stored_name = self.key.partition(SEPARATOR)[0]
        try:
            with Transaction() as write:
                if finding.kind == "orphaned":
                    write.delete(guard, guard_as_read, otherwise=changed)
                else:
                    write.put(guard, guard_as_read, otherwise=changed)
                for pk in self.users.keys() & {finding.pk, self.owner}:
                    value_as_read = _as_read(self.users[pk], stored_name)
                    write.check(self.unique.model(pk), value_as_read, otherwise=changed)
        except Refused as error:
            raise changed from error


def _as_read(item: Item | None, *names: str) -> Condition:
    """The condition that each attribute is stored as in `item`, or absent as there."""
    conditions: list[Condition] = [
        Path([name]) == item[name] if item and name in item else Path([name]).does_not_exist()
        for name in names
    ]
    return reduce(and_, conditions)
