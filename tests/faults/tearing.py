"""Mixes two answers to a Query or Scan: each item is from one of them."""

import random
from typing import Any

Answer = dict[str, Any]
Item = dict[str, Any]

#: The key of each table whose answers are mixed.
KEYS = {"users": ("pk",), "counters": ("counterName",), "invoices": ("series", "number")}


def torn(
    request: dict[str, Any], before: Answer, after: Answer, chance: random.Random | None = None
) -> Answer:
    """Take the state of each item before or after at random; absence is a state too.

    Answers that are not everything, or whose items lack their keys, are not mixed: the second one
    is returned.
    """
    key = KEYS.get(request["TableName"], ())
    shown = [*before.get("Items", ()), *after.get("Items", ())]
    is_part = "LastEvaluatedKey" in before or "LastEvaluatedKey" in after
    if not key or is_part or any(name not in item for item in shown for name in key):
        return after
    older, newer = ({_key_of(item, key): item for item in one["Items"]} for one in (before, after))
    order = [*older, *(item for item in newer if item not in older)]
    if "KeyConditionExpression" in request:
        order.sort(reverse=not request.get("ScanIndexForward", True))
    chance = chance or random.Random()
    items = [item for entry in order if (item := chance.choice([older, newer]).get(entry))]
    if len(items) > request.get("Limit", len(items)):
        return after
    return after | {"Items": items, "Count": len(items), "ScannedCount": len(items)}


def _key_of(item: Item, key: tuple[str, ...]) -> tuple[Any, ...]:
    values = (item[name] for name in key)
    return tuple(int(value["N"]) if "N" in value else value["S"] for value in values)
