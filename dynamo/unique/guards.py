"""Guard items, and values that are only reserved: kept for an item that does not have them yet.

The guard item of a reserved value has a `reservation`, a random id, and `expires`. The item stores
both, and the value, in attributes that the declaration names:

    unique = UniqueAttributes(
        email=comparable_email,
        pending={"email": Pending("pending_email", "pending_reservation", "pending_until")},
    )

A value is free if it has no guard item, or if `expires` has passed: a reservation lapses by itself.
The item keeps its note of it until its next change. If another item took the value since, the
transaction that removes the note leaves the other's guard item alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pynamodb.attributes import UnicodeAttribute
from pynamodb.expressions.condition import Condition

from dynamo.attributes import IntegerAttribute
from dynamo.items import PlainModel


def now() -> int:
    """The time that `expires` is compared with, in epoch seconds."""
    return int(time.time())


@dataclass(frozen=True)
class Pending:
    """The attributes, by Python name, in which an item notes a reserved value.

    `until` holds epoch seconds, as `expires` of the guard item does.
    """

    value: str
    reservation: str
    until: str


class Guard(PlainModel):
    """The base of guard items; each declaration derives one for its table.

    `expires` (epoch seconds) and `reservation` are set while a value is only reserved.
    """

    pk: UnicodeAttribute
    owner = UnicodeAttribute()
    expires = IntegerAttribute(null=True)
    reservation = UnicodeAttribute(null=True)

    @property
    def is_reserved(self) -> bool:
        """Whether the owner does not have the value yet."""
        return any(self._has(name) for name in ("expires", "reservation"))

    @property
    def has_lapsed(self) -> bool:
        """Whether the value was reserved and is free now."""
        return self._has("expires") and self.expires <= now()

    @classmethod
    def is_free(cls) -> Condition:
        """The condition that the value may be taken."""
        # Without `expires`, in a guard item that is not a reservation, the comparison is false.
        free: Condition = cls.pk.does_not_exist() | (cls.expires <= now())
        return free

    def is_as_written(self) -> Condition:
        """The condition that owner and reservation (if it has one) are the stored ones."""
        condition: Condition = type(self).owner == self.owner
        if self._has("reservation"):
            condition &= type(self).reservation == self.reservation
        return condition

    def _has(self, name: str) -> bool:
        return self.attribute_values.get(name) is not None
