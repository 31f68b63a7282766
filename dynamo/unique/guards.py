"""Guard items: a key for each unique value, with the primary key of the item that has the value."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute
from pynamodb.expressions.condition import Condition

from dynamo.attributes import IntegerAttribute
from dynamo.items import PlainModel


class Guard(PlainModel):
    """The base of guard items; each declaration derives one for its table.

    Version 0.1 also stored guard items with `expires` and `reservation`, for values that an item
    did not have yet. Their values are free.
    """

    pk: UnicodeAttribute
    owner = UnicodeAttribute()
    expires = IntegerAttribute(null=True)
    reservation = UnicodeAttribute(null=True)

    @classmethod
    def is_free(cls) -> Condition:
        """The condition that the value may be taken."""
        free: Condition = cls.pk.does_not_exist() | cls.expires.exists() | cls.reservation.exists()
        return free
