"""Guard items: one for each unique value, written in the transaction that writes its item.

    <key>        S: what `dynamo.unique.declarations` makes of the value
    owner        S: the key of the item that has the value
    digest       S: for a request id, the digest of what was asked for
    searchPrefix, searchValue
                 S: for a searchable value (`dynamo.unique.declarations`)

A value is free if it has no guard item. Earlier versions also wrote guard items with `expires` and
`reservation`, for values that were only reserved: they count as free.

Two items of one transaction can swap their values, or one can take what the other gives up. Their
two writes of one guard item become one put here, because a transaction takes each item once.

Source: "Simulating Amazon DynamoDB unique constraints using transactions", AWS Database Blog. The
`owner` is added here: it answers look-ups, keeps one item from freeing another's value, and lets an
operation whose reply was lost recognize its own work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dynamo._internal.items import Item
from dynamo.transactions import Otherwise, Refusal, Write
from dynamo.unique.declarations import SEARCH_PREFIX, SEARCH_VALUE

OWNER = "owner"
DIGEST = "digest"
_RESERVED = ("expires", "reservation")

#: The stored names of a guard item's attributes, without its key.
GUARD_ATTRIBUTES = (OWNER, DIGEST, *_RESERVED, SEARCH_PREFIX, SEARCH_VALUE)

_NAMES = {"#owner": OWNER, "#expires": _RESERVED[0], "#reservation": _RESERVED[1]}


def is_reserved(guard: dict[str, Any]) -> bool:
    """Whether the stored guard item only reserved its value, which is free."""
    return any(name in guard for name in _RESERVED)


@dataclass(frozen=True)
class GuardTable:
    """Where a model's guard items are stored: `name` with its prefix, and the table's key."""

    name: str
    key_name: str

    def address(self, key: str) -> dict[str, Any]:
        """The parameters of a request that name the guard item `key`."""
        return {"TableName": self.name, "Key": {self.key_name: {"S": key}}}

    def claim(
        self, key: str, owner: str, part_of: object, otherwise: Otherwise, attributes: Item
    ) -> GuardWrite:
        """Put the guard item, with further `attributes`, if the value is free or the owner's.

        Costs 2 write units, 3 if it is searchable.
        """
        action = {
            "TableName": self.name,
            "Item": {self.key_name: {"S": key}, OWNER: {"S": owner}, **attributes},
            "ConditionExpression": "attribute_not_exists(#key) OR attribute_exists(#expires)"
            " OR attribute_exists(#reservation) OR #owner = :owner",
            "ExpressionAttributeNames": {"#key": self.key_name, **_NAMES},
            "ExpressionAttributeValues": {":owner": {"S": owner}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        stored_key = self.address(key)["Key"]
        return GuardWrite(
            None, {"Put": action}, otherwise, part_of=part_of, put_key=stored_key, guard_key=key
        )

    def free(self, key: str, owner: str, part_of: object) -> GuardWrite:
        """Delete the guard item if it is the owner's. Costs 2 write units, 3 if it is searchable.

        A guard item that is absent or another item's was damaged, and the check reports it. It does
        not prevent the transaction.
        """
        action = {
            **self.address(key),
            "ConditionExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": OWNER},
            "ExpressionAttributeValues": {":owner": {"S": owner}},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        left = {"ConditionCheck": action | {"ConditionExpression": "NOT #owner = :owner"}}
        return GuardWrite(None, {"Delete": action}, None, left, part_of=part_of, guard_key=key)


@dataclass(frozen=True, eq=False, kw_only=True)
class GuardWrite(Write):
    """A write of one guard item: it claims a value for an item, or frees that of an item."""

    guard_key: str

    @property
    def key(self) -> tuple[Any, ...]:
        return self.request["TableName"], self.guard_key

    def merged(self, other: Write) -> Write:
        if not isinstance(other, GuardWrite):
            return super().merged(other)
        claim, free = (self, other) if self.kind == "Put" else (other, self)
        if free.kind == "Put":
            # Two items of this transaction want the same value: the second one cannot have it.
            raise Refusal(other, None).error
        if claim.kind != "Put":
            return self
        put, owners = claim.request, claim.request["ExpressionAttributeValues"]
        former = f":former{len(owners)}"
        put = put | {
            "ConditionExpression": f"{put['ConditionExpression']} OR #owner = {former}",
            "ExpressionAttributeValues": owners
            | {former: free.request["ExpressionAttributeValues"][":owner"]},
        }
        return replace(claim, action={"Put": put})
