"""One guard item with all items that it concerns, read at one instant: what is wrong, and repair.

Items are examined as DynamoDB sends them, not as objects: a damaged item must be reported, and
cannot be if reading it as an object fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Literal

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo._internal.items import Item, text_of
from dynamo._internal.updates import conditional
from dynamo.exceptions import Stale
from dynamo.models import Model
from dynamo.transactions import Transaction, Write, read_together
from dynamo.unique.declarations import REQUEST_DIGEST, REQUEST_ID, SEPARATOR
from dynamo.unique.guarding import DIGEST, GUARD_ATTRIBUTES, OWNER, is_reserved

Fault = Literal["missing", "orphaned", "foreign", "unsearchable"]
"""What can be wrong with a guard item.

missing: an item has the value, and there is no guard item, or one whose value is free.
orphaned: there is a guard item, and no item has the value.
foreign: an item has the value, and the guard item belongs to another item.
unsearchable: only searches do not find it, because it was written before its value was searchable.
"""

#: Those that are errors.
FAULTS: tuple[Fault, ...] = ("missing", "orphaned", "foreign")


@dataclass(frozen=True)
class Finding:
    """One error: in the guard item `key`, for the item with the key `pk` (`Model.owner_of`).

    For an orphaned guard item `pk` is the owner that it names, empty if it names none. Not
    `repairable` if two items have the same value: a person decides which one keeps it.
    """

    fault: Fault
    pk: str
    key: str
    repairable: bool


def names_in(model: type[Model], guard_key: str) -> tuple[str, ...]:
    """The stored names of the attributes that the guard item is for; empty if not declared."""
    prefix = guard_key.partition(SEPARATOR)[0] + SEPARATOR
    names = {each.prefix: each.stored_names for each in model._unique_keys}
    return ({f"{REQUEST_ID}{SEPARATOR}": (REQUEST_ID,)} | names).get(prefix, ())


def search_attributes(model: type[Model], guard_key: str) -> Item:
    """What the guard item stores for searches; empty if its values are not searchable."""
    found = (each for each in model._unique_keys if guard_key.startswith(each.prefix))
    return next((each.search_attributes(guard_key) for each in found), {})


def is_searchable(model: type[Model], guard_key: str, guard: Item) -> bool:
    """Whether searches find the stored `guard`, if they should."""
    return search_attributes(model, guard_key).items() <= guard.items()


def claims_of(model: type[Model], item: Item) -> tuple[list[str], str]:
    """The keys of the guard items that the stored `item` must have.

    Also the stored name of an attribute that cannot be compared: damaged, impossible to normalize,
    or absent though required. Empty if there is none.
    """
    keys, unusable = [], ""
    for unique in model._unique_keys:
        try:
            key = unique.key(item)
        except ValueError:
            unusable = unique.stored_names[0]
            continue
        if key is not None:
            keys.append(key)
        elif not any(each.null for each in unique.attributes):
            unusable = unique.stored_names[0]
    if request_id := text_of(item, REQUEST_ID):
        keys.append(f"{REQUEST_ID}{SEPARATOR}{request_id}")
    return keys, unusable


@dataclass(frozen=True)
class Snapshot:
    """The items stored at one instant under a guard item's key and the keys of `items`.

    The guard item's owner is one of `items`, if it names one.
    """

    model: type[Model]
    key: str
    guard: Item | None
    items: Mapping[str, Item | None]

    @classmethod
    def read(cls, model: type[Model], key: str, pks: Sequence[str]) -> Snapshot:
        """Read the guard item `key`, its owner and the items `pks`.

        Costs 1 request and 2 read units per 4 KB of each item; both again if the owner is not
        one of `pks`.
        """
        wanted = list(pks)
        while True:
            addresses = [model._guard_table().address(key), *(_address(model, pk) for pk in wanted)]
            guard, *items = read_together(addresses)
            snapshot = cls(model, key, guard, dict(zip(wanted, items, strict=True)))
            if snapshot.owner is None or snapshot.owner in snapshot.items:
                return snapshot
            wanted = [*pks, snapshot.owner]

    @property
    def owner(self) -> str | None:
        """The owner of the guard item; None if there is none, or its name cannot be an item's."""
        named = text_of(self.guard, OWNER)
        return named if is_owner(self.model, named) else None

    def _has_value(self, item: Item | None) -> bool:
        return item is not None and self.key in claims_of(self.model, item)[0]

    def findings(self, oldest_by: str | None = None) -> list[Finding]:
        """What is wrong. At most one finding is repairable, and that one is the first.

        If several items have the value and there is no guard item, the oldest one gets it: by the
        attribute stored as `oldest_by`, a time as text, then by key.
        """
        holders = [pk for pk, item in self.items.items() if self._has_value(item)]
        if not holders:
            if self.guard is None:
                return []
            return [Finding("orphaned", text_of(self.guard, OWNER), self.key, repairable=True)]
        if self.guard is not None and not is_reserved(self.guard):
            is_found = is_searchable(self.model, self.key, self.guard)
            return [
                Finding("foreign", pk, self.key, repairable=len(holders) == 1)
                for pk in holders
                if pk != self.owner
            ] or [
                Finding("unsearchable", pk, self.key, repairable=True)
                for pk in holders
                if not is_found
            ]
        first, *others = sorted(holders, key=lambda pk: (self._age(pk, oldest_by), pk))
        return [
            Finding("missing", first, self.key, repairable=True),
            *(Finding("foreign", pk, self.key, repairable=False) for pk in others),
        ]

    def _age(self, pk: str, oldest_by: str | None) -> tuple[bool, str]:
        """Sorts the oldest first, and those of unknown age last."""
        since = (self.items[pk] or {}).get(oldest_by or "", {}).get("S")
        return since is None, since or ""

    def repair(self, finding: Finding) -> bool:
        """Repair one finding in one transaction. Returns False if an item of it has changed.

        The guard item, the value of its new owner and that of its old one must be as they were
        read; otherwise nothing is written. Costs 1 request and 4 write units, 6 if the guard item
        named another owner.
        """
        changed = Stale()
        address = self.model._guard_table().address(self.key)
        as_read = _as_read(self.guard, *address["Key"], *GUARD_ATTRIBUTES)
        names = names_in(self.model, self.key)
        if finding.fault == "orphaned":
            action = {"Delete": {**address, **as_read}}
        else:
            item = {**address["Key"], OWNER: {"S": finding.pk}}
            item |= search_attributes(self.model, self.key)
            digest = (self.items[finding.pk] or {}).get(REQUEST_DIGEST)
            if digest and names == (REQUEST_ID,):
                item[DIGEST] = digest
            action = {"Put": {"TableName": address["TableName"], "Item": item, **as_read}}
        write = Transaction()
        write.add(Write(action, action, changed, put_key=address["Key"]))
        for pk in self.items.keys() & {finding.pk, self.owner}:
            check = {**_address(self.model, pk), **_as_read(self.items[pk], *names)}
            write.add(Write(check, {"ConditionCheck": check}, changed))
        return not write.try_commit()


def is_owner(model: type[Model], owner: str) -> bool:
    """Whether an item can have this key."""
    return model._key_of_owner(owner) is not None


def _address(model: type[Model], owner: str) -> dict[str, Any]:
    return {"TableName": model.table(), "Key": model._key_of_owner(owner)}


def _as_read(item: Item | None, *names: str) -> dict[str, Any]:
    """The condition that each attribute is stored as in `item`, or absent as there."""
    conditions: list[Condition] = [
        Path([name]) == item[name] if item and name in item else Path([name]).does_not_exist()
        for name in names
    ]
    return conditional({}, reduce(and_, conditions))
