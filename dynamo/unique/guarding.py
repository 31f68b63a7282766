"""Guard items: one for each unique value, written in the transaction that writes its item.

    <key>        S: what `dynamo.unique.declarations` makes of the value
    owner        S: the key of the item that has the value
    digest       S: for a request id, the digest of what was asked for

A value is free if it has no guard item. Earlier versions also wrote guard items with `expires` and
`reservation`, for values that were only reserved: they count as free.

Two items of one transaction can swap their values, or one can take what the other gives up. Their
two writes of one guard item become one put here, because a transaction takes each item once.

Source: "Simulating Amazon DynamoDB unique constraints using transactions", AWS Database Blog. The
`owner` is added here: it answers look-ups, keeps one item from freeing another's value, and lets an
operation whose reply was lost recognize its own work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from dynamo.transactions import Otherwise, Refusal, Write

OWNER = "owner"
DIGEST = "digest"
_RESERVED = ("expires", "reservation")

#: The stored names of a guard item's attributes, without its key.
GUARD_ATTRIBUTES = (OWNER, DIGEST, *_RESERVED)

_NAMES = {"#owner": OWNER, "#expires": _RESERVED[0], "#reservation": _RESERVED[1]}


def is_reserved(guard: dict[str, Any]) -> bool:
    """Whether the stored guard item only reserved its value, which is free."""
    return any(name in guard for name in _RESERVED)


@dataclass(frozen=True)
class GuardTable:
    """Where a model's guard items are stored: `name` with its prefix, and the table's key."""

    name: str
    key_name: str


@dataclass(frozen=True, eq=False, kw_only=True)
class GuardWrite(Write):
    """A write of one guard item: it claims a value for `owner`, or frees that of `owner`."""

    table: GuardTable
    guard_key: str
    owner: str
    claims: bool
    digest: str = ""
    #: Who gives up the value in the same transaction.
    former_owners: tuple[str, ...] = ()

    @classmethod
    def claim(
        cls,
        table: GuardTable,
        key: str,
        owner: str,
        *,
        part_of: object,
        otherwise: Otherwise,
        digest: str = "",
        former_owners: tuple[str, ...] = (),
    ) -> Self:
        """Put the guard item if the value is free or the owner's. Costs 2 write units."""
        item = {table.key_name: {"S": key}, OWNER: {"S": owner}}
        owners = {":owner": {"S": owner}}
        if digest:
            item[DIGEST] = {"S": digest}
        owners |= {f":former{n}": {"S": each} for n, each in enumerate(former_owners)}
        action = {
            "TableName": table.name,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(#key) OR attribute_exists(#expires)"
            f" OR attribute_exists(#reservation) OR #owner IN ({', '.join(owners)})",
            "ExpressionAttributeNames": {"#key": table.key_name, **_NAMES},
            "ExpressionAttributeValues": owners,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return cls(
            None,
            {"Put": action},
            otherwise,
            part_of=part_of,
            table=table,
            guard_key=key,
            owner=owner,
            claims=True,
            digest=digest,
            former_owners=former_owners,
        )

    @classmethod
    def free(cls, table: GuardTable, key: str, owner: str, *, part_of: object) -> Self:
        """Delete the guard item if it is the owner's. Costs 2 write units.

        A guard item that is absent or another item's was damaged, and the check reports it. It does
        not prevent the transaction.
        """
        action = {
            "TableName": table.name,
            "Key": {table.key_name: {"S": key}},
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": OWNER},
            "ExpressionAttributeValues": {":owner": {"S": owner}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        left = action | {"ConditionExpression": "NOT #owner = :owner"}
        return cls(
            None,
            {"Delete": action},
            None,
            {"ConditionCheck": left},
            part_of=part_of,
            table=table,
            guard_key=key,
            owner=owner,
            claims=False,
        )

    @property
    def key(self) -> tuple[Any, ...]:
        return self.table.name, self.guard_key

    @property
    def is_of_item(self) -> bool:
        return True

    def merged(self, other: Write) -> Write:
        if not isinstance(other, GuardWrite):
            return super().merged(other)
        if self.claims and other.claims:
            # Two items of this transaction want the same value: the second one cannot have it.
            raise Refusal(other, None).error
        claim, free = (self, other) if self.claims else (other, self)
        if not claim.claims:
            return self
        return GuardWrite.claim(
            claim.table,
            claim.guard_key,
            claim.owner,
            part_of=claim.part_of,
            otherwise=claim.otherwise or ValueError(),
            digest=claim.digest,
            former_owners=(*claim.former_owners, free.owner),
        )
