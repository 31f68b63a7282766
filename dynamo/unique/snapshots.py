"""One guard with all that bears on it, as stored at one instant: what is wrong there, and its cure.

Items are judged as they are on the wire, never as objects: what was damaged from outside must be
told, and cannot be where reading it fails.
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
from dynamo.models import PARTITION_KEY_MAX_BYTES, Item
from dynamo.transactions import Transaction, read_together
from dynamo.unique import guards
from dynamo.unique.attributes import SEPARATOR, UniqueAttributes
from dynamo.unique.guards import Guard

Kind = Literal["missing", "orphaned", "foreign"]
"""What can be wrong with a guard.

missing: a user carries the value, and there is no guard; or it is the user's, but only reserved.
orphaned: there is a guard, and nobody carries the value; or a reservation that serves nobody.
foreign: a user carries the value, and the guard belongs to another.

A user who notes a reservation that is gone, or another's, is none of them: it lapsed, and the note
goes with the user's next change. What it was for simply cannot be had any more.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)

#: What a guard consists of beside its key, as stored.
GUARD_ATTRIBUTES = tuple(
    str(each.attr_name) for each in (Guard.owner, Guard.reservation, Guard.expires)
)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: with the guard `key`, for the user `pk`.

    `pk` of an orphaned guard is the owner that it names, empty where it names none. `mendable` is
    false where two live users carry one value: who is to have it, a person decides.
    """

    kind: Kind
    pk: str
    key: str
    mendable: bool


class ChangedMeanwhile(Exception):
    """What was read to judge a guard is not what is stored now; nothing was written."""


def stored_names(unique: UniqueAttributes[Any]) -> dict[str, str]:
    """The declared attributes: name as stored to name in Python."""
    return {unique.stored_name(name): name for name in unique.normalise}


def is_user_key(key: str) -> bool:
    """Whether an item with this key can be one that guards belong to, and no guard itself."""
    return SEPARATOR not in key and 0 < len(key.encode()) <= PARTITION_KEY_MAX_BYTES


def key_carried(unique: UniqueAttributes[Any], name: str, user: Item) -> str | None:
    """The key of the guard that `user` must have for the attribute `name`; None if it needs none.

    Raises:
        ValueError: the value is no text, or cannot be compared, or must be there and is not.
    """
    attribute = unique.model.get_attributes()[name]
    stored = user.get(str(attribute.attr_name), {"NULL": True})
    value = "" if "NULL" in stored else stored.get("S")
    if value is None or not (value or attribute.null):
        raise ValueError(f"{attribute.attr_name} is not stored as it must be.")
    return unique.key(name, value) if value else None


def reservation_of(guard: Item) -> str | None:
    """The id of a guard that is only reserved, empty where it has none; None for a real guard."""
    if not {Guard.reservation.attr_name, Guard.expires.attr_name} & guard.keys():
        return None
    return str(guard.get(Guard.reservation.attr_name, {}).get("S", ""))


def noted_names(unique: UniqueAttributes[Any], name: str) -> tuple[str, str] | None:
    """Where items note what is reserved for them of the attribute `name`, as stored; or nowhere.

    First the value, then the reservation.
    """
    if name not in unique.pending:
        return None
    attributes, pending = unique.model.get_attributes(), unique.pending[name]
    return str(attributes[pending.value].attr_name), str(attributes[pending.reservation].attr_name)


def reservation_noted(
    unique: UniqueAttributes[Any], name: str, user: Item
) -> tuple[str, str] | None:
    """The key and the id of the reservation that `user` notes for the attribute `name`, if any."""
    names = noted_names(unique, name)
    if names is None:
        return None
    value, reservation = (str(user.get(each, {}).get("S", "")) for each in names)
    try:
        return (unique.key(name, value), reservation) if value and reservation else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Snapshot:
    """What is stored at one instant under a guard's key, and under the keys of `users`.

    The guard's owner is among `users`, if it names one.
    """

    unique: UniqueAttributes[Any]
    key: str
    guard: Item | None
    users: Mapping[str, Item | None]

    @classmethod
    def read(cls, unique: UniqueAttributes[Any], key: str, pks: Sequence[str]) -> Snapshot:
        """Read the guard `key` with the users `pks` and its owner: as many as are read together.

        Costs 1 request and 2 read units per 4 KB of each item; again where the owner is not
        among `pks`.
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
        """Whom the guard belongs to; None where there is none, or it names none that can be."""
        named = self._named_owner()
        return named if is_user_key(named) else None

    def _named_owner(self) -> str:
        return str((self.guard or {}).get(Guard.owner.attr_name, {}).get("S", ""))

    @property
    def _reservation(self) -> str | None:
        return None if self.guard is None else reservation_of(self.guard)

    @property
    def _serves(self) -> bool:
        """Whether the guard reserves the value for somebody alive, who need not carry it.

        So it does, lapsed or not, where its owner notes it; where notes are not declared, while
        it has not lapsed.
        """
        user = None if self.owner is None else self.users[self.owner]
        if self.guard is None or self._reservation is None or user is None:
            return False
        name = self._attribute[1]
        if noted_names(self.unique, name) is None:
            expires = self.guard.get(Guard.expires.attr_name, {}).get("N")
            return expires is None or float(expires) > guards.now()
        return reservation_noted(self.unique, name, user) == (self.key, self._reservation)

    @property
    def _attribute(self) -> tuple[str, str]:
        """The attribute that the guard is for: name as stored, name in Python."""
        stored_name = self.key.partition(SEPARATOR)[0]
        return stored_name, stored_names(self.unique)[stored_name]

    @property
    def _names_that_count(self) -> tuple[str, ...]:
        """The attributes of a user, as stored, on which it depends what is wrong here."""
        stored_name, name = self._attribute
        return stored_name, *(noted_names(self.unique, name) or ())

    def _carries(self, user: Item | None) -> bool:
        try:
            return user is not None and self.key == key_carried(
                self.unique, self._attribute[1], user
            )
        except ValueError:
            return False

    def findings(self, oldest_by: str | None = None) -> list[Finding]:
        """What is wrong, at most one of it mendable, and that one first.

        Where several carry the value and there is no guard, the oldest is to have it: by the
        attribute stored as `oldest_by`, a time as text, then by primary key.
        """
        carriers = [pk for pk, user in self.users.items() if self._carries(user)]
        if not carriers:
            if self.guard is None or self._serves:
                return []
            return [Finding("orphaned", self._named_owner(), self.key, mendable=True)]
        if self._reservation is not None and self.owner in carriers:
            # It would lapse, and is no guard; who has the next best claim is its owner.
            others = [pk for pk in carriers if pk != self.owner]
            missing = Finding("missing", self.owner, self.key, mendable=True)
            return [missing, *(Finding("foreign", pk, self.key, mendable=False) for pk in others)]
        if self.guard is None:
            first, *others = sorted(carriers, key=lambda pk: (self._age(pk, oldest_by), pk))
            missing = Finding("missing", first, self.key, mendable=True)
            return [missing, *(Finding("foreign", pk, self.key, mendable=False) for pk in others)]
        return [
            Finding("foreign", pk, self.key, mendable=len(carriers) == 1)
            for pk in carriers
            if pk != self.owner
        ]

    def _age(self, pk: str, oldest_by: str | None) -> tuple[bool, str]:
        """Sorts the oldest first, and whose age is not known last."""
        since = (self.users[pk] or {}).get(oldest_by or "", {}).get("S")
        return since is None, since or ""

    def mend(self, finding: Finding) -> None:
        """Set one mendable finding right in one transaction, if nothing of it has changed.

        The guard, the value of who shall have it and that of who had it must be as they were
        read. Costs 1 request and 4 write units, 6 where the guard named another owner.

        Raises:
            ChangedMeanwhile: something was not; nothing was written.
        """
        changed = ChangedMeanwhile(self.key)
        guard = self.unique.guard(self.key, finding.pk)
        key_name = self.unique.guard_model.key_attribute_names()[0]
        guard_as_read = _as_read(self.guard, key_name, *GUARD_ATTRIBUTES)
        try:
            with Transaction() as write:
                if finding.kind == "orphaned":
                    write.delete(guard, guard_as_read, otherwise=changed)
                else:
                    write.put(guard, guard_as_read, otherwise=changed)
                for pk in self.users.keys() & {finding.pk, self.owner}:
                    value_as_read = _as_read(self.users[pk], *self._names_that_count)
                    write.check(self.unique.model(pk), value_as_read, otherwise=changed)
        except Refused as error:
            raise changed from error


def _as_read(item: Item | None, *names: str) -> Condition:
    """The condition that the stored item has these attributes as `item` has them, or has not."""
    conditions: list[Condition] = [
        Path([name]) == item[name] if item and name in item else Path([name]).does_not_exist()
        for name in names
    ]
    return reduce(and_, conditions)
