"""How large an item is, as DynamoDB counts.

Source: "DynamoDB item sizes and formats",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from __future__ import annotations

from typing import Any

from dynamo.models import Item

ITEM_MAX_BYTES = 400 * 1024
# Lists and maps have three bytes of their own and one for each element.
_CONTAINER_BYTES = 3


def item_bytes(item: Item) -> int:
    """The size of an item as on the wire, names included; never less than DynamoDB counts."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: dict[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return len(content) // 2 + 3
    if kind == "B":
        return len(content)
    if kind == "L":
        return _CONTAINER_BYTES + sum(1 + _value_bytes(each) for each in content)
    if kind == "M":
        return _CONTAINER_BYTES + len(content) + item_bytes(content)
    return 1
