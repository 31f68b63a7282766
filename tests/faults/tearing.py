"""Mixes two answers to a Query or Scan: each item is from one of them."""

import json
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

    If the answers end at different keys, the page ends at the nearer one. Answers that cannot be
    mixed correctly (a page over its limit, pages of a Scan, whose order is unknown) are not mixed:
    the second one is returned.
    """
    chance = chance or random.Random()
    key = KEYS.get(request["TableName"], ())
    ends = [answer.get("LastEvaluatedKey") for answer in (before, after)]
    is_whole = not any(ends)
    shown = [*before.get("Items", ()), *after.get("Items", ())]
    if (
        not key
        or ("KeyConditionExpression" not in request and not is_whole)
        or any(name not in item for item in shown for name in key)
    ):
        return after
    older = {_key_of(item, key): item for item in before["Items"]}
    newer = {_key_of(item, key): item for item in after["Items"]}
    order = list(older)
    order += [each for each in newer if each not in older]
    if "KeyConditionExpression" in request:
        backwards = not request.get("ScanIndexForward", True)
        order.sort(reverse=backwards)
        if not is_whole:
            end = _nearer_end(ends, key, backwards=backwards)
            order = [each for each in order if (each >= end if backwards else each <= end)]
    items = [item for each in order if (item := chance.choice([older, newer]).get(each))]
    if len(items) > request.get("Limit", len(items)):
        return after
    mixed = after | {"Items": items, "Count": len(items), "ScannedCount": len(items)}
    if not is_whole:
        mixed["LastEvaluatedKey"] = _key_on_the_wire(end, key, ends)
    return mixed


def _key_of(item: Item, key: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(_comparable(item[name]) for name in key)


def _comparable(value: dict[str, str]) -> Any:
    return int(value["N"]) if "N" in value else json.dumps(value)


def _nearer_end(
    ends: list[Item | None], key: tuple[str, ...], *, backwards: bool
) -> tuple[Any, ...]:
    found = [_key_of(end, key) for end in ends if end]
    return max(found) if backwards else min(found)


def _key_on_the_wire(
    end: tuple[Any, ...], key: tuple[str, ...], ends: list[Item | None]
) -> Item | None:
    return next(wire for wire in ends if wire and _key_of(wire, key) == end)
