"""Conditions on attributes that a stored item may lack: the default that it reads counts."""

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pynamodb.expressions.condition import And, Condition, Exists, IsType, Not, NotExists, Or
from pynamodb.expressions.operand import Path, Value

from dynamo.items.plain import PlainModel
from dynamo.items.values import canonical, kind_and_value, typed_value
from dynamo.wire import Typed

_COMPARISONS: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda own, low, high: bool(low <= own <= high),
    "begins_with": lambda own, prefix: bool(own.startswith(prefix)),
    "contains": lambda own, part: part in own,
}


def with_defaults(model: type[PlainModel], condition: Condition) -> Condition:
    """The `condition` of a stored item of `model`, as it holds for the values that are read.

    `exists`, `does_not_exist` and `is_type` ask what is stored, and stay.

    Raises:
        TypeError: it compares a default with another attribute, or its size.
    """
    if isinstance(condition, (And, Or, Not)):
        return type(condition)(*(with_defaults(model, value) for value in condition.values))
    if isinstance(condition, (Exists, NotExists, IsType)):
        return condition
    named = _names(condition)
    defaults = {
        name: typed
        for name, stored_name, attribute in model._named_attributes()
        if stored_name in named
        and not callable(default := getattr(attribute, "default", None))
        and (typed := typed_value(attribute, default))
    }
    if not defaults:
        return condition
    path, *others = condition.values
    if not (isinstance(path, Path) and all(isinstance(other, Value) for other in others)):
        raise TypeError(
            f"A condition can compare {', '.join(defaults)} with values only, because stored items "
            "may lack it and read its default."
        )
    [default] = defaults.values()
    if _is_met(condition.operator, default, [canonical(other.value) for other in others]):
        return condition | path.does_not_exist()
    # Of an absent attribute, only this one is true.
    return condition & path.exists() if condition.operator == "<>" else condition


def _names(operand: object) -> list[str]:
    """The attributes, by stored name, that an operand is made of."""
    if isinstance(operand, Path):
        return operand.path if len(operand.path) == 1 else []
    if isinstance(operand, Value):
        return []
    return [name for item in getattr(operand, "values", ()) for name in _names(item)]


def _is_met(comparison: str, own: Typed, others: list[Typed]) -> bool:
    if comparison in {"=", "IN"}:
        return own in others
    if comparison == "<>":
        return own not in others
    is_one_type = all(other.keys() == own.keys() for other in others)
    return is_one_type and _COMPARISONS[comparison](*map(_ordinal, (own, *others)))


def _ordinal(typed: Typed) -> Any:
    kind, value = kind_and_value(typed)
    return Decimal(value) if kind == "N" else value
