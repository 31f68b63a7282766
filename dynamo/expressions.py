"""Update expressions as on the wire: whether an item is what one of them leaves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_CLAUSE = re.compile(r"\b(SET|REMOVE|ADD|DELETE)\b", re.IGNORECASE)
_STEP = re.compile(r"[^.\[\]\s]+")


def is_updated(request: Mapping[str, Any], stored: Mapping[str, Any] | None) -> bool:
    """Whether `stored` has each value that `request` sets, and none that it removes.

    False if that cannot be told: if the request adds, or sets what an item's old values decide.
    """
    _nothing, *clauses = _CLAUSE.split(request.get("UpdateExpression", ""))
    values = request.get("ExpressionAttributeValues", {})
    names = request.get("ExpressionAttributeNames", {})
    for clause, text in zip(clauses[::2], clauses[1::2], strict=True):
        for part in text.split(","):
            path, _equals, operand = (each.strip() for each in part.partition("="))
            if clause.upper() == "SET" and operand in values:
                wanted = values[operand]
            elif clause.upper() == "REMOVE":
                wanted = None
            else:
                return False
            if _at(stored, path, names) != wanted:
                return False
    return bool(clauses) and stored is not None


def _at(item: Mapping[str, Any] | None, path: str, names: Mapping[str, str]) -> Any:
    """The typed value at `path` (`#0.#1[2]`), None if there is none."""
    value: Any = {"M": item or {}}
    for step in _STEP.findall(path):
        if "M" in value:
            value = value["M"].get(names.get(step, step))
        elif "L" in value and step.isdigit() and int(step) < len(value["L"]):
            value = value["L"][int(step)]
        else:
            return None
        if value is None:
            return None
    return value
