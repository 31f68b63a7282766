"""Requests of single items: the changes of an update as data, and conditions.

If a stored item lacks an attribute, a condition on it holds for the attribute's default.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self, cast

from pynamodb.attributes import Attribute
from pynamodb.expressions.condition import (
    And,
    BeginsWith,
    Condition,
    Contains,
    Exists,
    IsType,
    Not,
    NotExists,
    Or,
)
from pynamodb.expressions.operand import Path, Value
from pynamodb.expressions.update import Action, AddAction, RemoveAction, SetAction

from dynamo.wire.types import Item, Request, Typed
from dynamo.wire.values import canonical, is_same_value, kind_and_value, typed_value

#: Attributes with their Python and their stored names.
Attributes = Sequence[tuple[str, str, Attribute]]

#: A stored name, or a tuple of those that lead into maps: `("sessions", "a1", "seenAt")`.
Name = Any  # This is not a union, because a dictionary with only texts would not match it.

#: The functions that compare the values of a condition, by operator.
_COMPARISONS: dict[str, Callable[..., bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "BETWEEN": lambda own, low, high: bool(low <= own <= high),
    "begins_with": lambda own, prefix: bool(own.startswith(prefix)),
    "contains": lambda own, part: part in own,
}


@dataclass(frozen=True)
class Update:
    """Sets values (None removes one), and counts numbers up.

    `add` counts up from the stored number, or from 0. `count` has its own starts: an entry is
    (start, step), and the first result is start + step.
    """

    set: Mapping[Name, Typed | None] = field(default_factory=dict)
    add: Mapping[Name, Typed] = field(default_factory=dict)
    count: Mapping[Name, tuple[Typed, Typed]] = field(default_factory=dict)

    @classmethod
    def of_actions(cls, actions: Iterable[Action]) -> Self:
        """The update of PynamoDB's `actions`, which set or remove a value, or add to a number.

        Raises:
            TypeError: an action does something else.
        """
        set_: dict[Name, Typed | None] = {}
        add: dict[Name, Typed] = {}
        for action in actions:
            name = tuple(cast(Path, action.values[0]).path)
            if isinstance(action, RemoveAction):
                set_[name] = None
            elif isinstance(action, (SetAction, AddAction)) and isinstance(action.values[1], Value):
                (add if isinstance(action, AddAction) else set_)[name] = action.values[1].value
            else:
                raise TypeError(f"An update sets, removes or adds values: {action!r}.")
        return cls(set_, add)

    @property
    def is_repeatable(self) -> bool:
        """Whether doing it twice has the same effect as doing it once."""
        return not (self.add or self.count)

    def request(
        self,
        address: Mapping[str, object],
        condition: str | Condition = "",
        *,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Typed] | None = None,
    ) -> Request:
        """The parameters of UpdateItem, and of Update in a transaction.

        `address` has TableName and Key. A `condition` in text uses `names` and `values`.
        """
        placeholders: dict[str, str] = {}
        operands: dict[str, Any] = {}

        def path(name: Name) -> str:
            steps = (name,) if isinstance(name, str) else name
            return ".".join(
                placeholders.setdefault(step, f"#{len(placeholders)}") for step in steps
            )

        def operand(typed: Typed) -> str:
            place = f":{len(operands)}"
            operands[place] = typed
            return place

        def counted(name: Name, start: Typed, step: Typed) -> str:
            return f"if_not_exists({path(name)}, {operand(start)}) + {operand(step)}"

        clauses = {
            "SET": [
                *(f"{path(name)} = {operand(value)}" for name, value in self.set.items() if value),
                *(f"{path(name)} = {counted(name, *value)}" for name, value in self.count.items()),
            ],
            "REMOVE": [path(name) for name, value in self.set.items() if value is None],
            "ADD": [f"{path(name)} {operand(typed)}" for name, typed in self.add.items()],
        }
        if isinstance(condition, Condition):
            condition = condition.serialize(placeholders, operands)
        expression = " ".join(
            f"{verb} {', '.join(clause)}" for verb, clause in clauses.items() if clause
        )
        return conditional(
            {**address, "UpdateExpression": expression},
            condition,
            names=_by_place(placeholders) | dict(names or {}),
            values=operands | dict(values or {}),
        )

    def is_done(self, stored: Item | None) -> bool:
        """Whether `stored` has the values that this sets, and none of those that it removes.

        False if that cannot be told, because this counts up.
        """
        return (
            stored is not None
            and self.is_repeatable
            and all(
                is_same_value(value_at(stored, name), value) for name, value in self.set.items()
            )
        )


def conditional(
    request: Mapping[str, object],
    condition: str | Condition,
    *,
    names: Mapping[str, str] | None = None,
    values: Mapping[str, Typed] | None = None,
) -> Request:
    """The `request` with `condition`.

    Its refusal contains the stored item, unless it says otherwise.

    A condition in text uses the placeholders `names` and `values`.
    """
    if isinstance(condition, Condition):
        placeholders: dict[str, str] = {}
        operands: dict[str, Any] = {}
        condition = condition.serialize(placeholders, operands)
        names, values = _by_place(placeholders), operands
    found = {
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **request,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    # DynamoDB rejects empty parameters.
    return cast(Request, {name: value for name, value in found.items() if value})


def _by_place(names: Mapping[str, str]) -> dict[str, str]:
    return {place: name for name, place in names.items()}


def value_at(item: Item, name: Name) -> Typed | None:
    """The typed value under `name`; None if there is none."""
    steps = (name,) if isinstance(name, str) else name
    value: Typed = {"M": item}
    for step in steps:
        if step not in value.get("M", {}):
            return None
        value = value["M"][step]
    return value


def check_condition(condition: object) -> None:
    """Raise TypeError unless it is a condition."""
    if not isinstance(condition, Condition):
        raise TypeError(
            f"A condition is made of attributes, as in Member.visits < 10, not {condition!r}."
        )


def with_defaults(attributes: Attributes, condition: Condition) -> Condition:
    """The `condition` on a stored item in the form that also holds for defaults of `attributes`.

    `exists`, `does_not_exist` and `is_type` concern stored values, and are not changed.

    Raises:
        TypeError: it uses the size or a part of an attribute with a default, or it is not a
            condition.
    """
    check_condition(condition)
    if isinstance(condition, (And, Or, Not)):
        return type(condition)(*(with_defaults(attributes, value) for value in condition.values))
    if isinstance(condition, (Exists, NotExists, IsType)):
        return condition
    named = names_in(condition)
    defaults = {
        stored_name: Value(typed)
        for _name, stored_name, attribute in attributes
        if stored_name in named
        and not callable(default := getattr(attribute, "default", None))
        and (typed := typed_value(attribute, default))
    }
    if not defaults:
        return condition
    is_function = isinstance(condition, (BeginsWith, Contains))
    are_plain = all(isinstance(operand, (Path, Value)) for operand in condition.values)
    if not are_plain or (is_function and len(named) > 1):
        raise TypeError(
            f"A condition can compare {', '.join(defaults)} with values and attributes, but not "
            "its size, a part of it or a sum: stored items may lack it and read its default."
        )
    return cast(Condition, _as_read(condition, [*defaults.items()]))


def _as_read(condition: Condition, defaults: list[tuple[str, Value]]) -> Any:
    """The `condition` with these defaults; True or False if it compares only values."""
    values = [operand.value for operand in condition.values if isinstance(operand, Value)]
    if len(values) == len(condition.values):
        own, *others = map(canonical, values)
        return _is_met(condition.operator, own, others)
    if not defaults:
        return condition
    (name, default), *further = defaults
    is_absent, is_stored = Path([name]).does_not_exist(), Path([name]).exists()
    with_default = copy(condition)
    with_default.values = tuple(
        default if names_in(operand) == [name] else operand for operand in condition.values
    )
    stored = _as_read(condition, further)
    absent = _as_read(with_default, further)
    if absent is True:
        return stored | is_absent
    if absent is False:
        # `<>` is the only operator that is true for an absent attribute.
        return stored & is_stored if condition.operator == "<>" else stored
    return (is_stored & stored) | (is_absent & absent)


def names_in(operand: object) -> list[str]:
    """The attributes, by stored name, that an operand is made of."""
    if isinstance(operand, Path):
        return operand.path if len(operand.path) == 1 else []
    if isinstance(operand, Value):
        return []
    return [name for item in getattr(operand, "values", ()) for name in names_in(item)]


def _is_met(comparison: str, own: Typed, others: list[Typed]) -> bool:
    if comparison in {"=", "IN"}:
        return own in others
    if comparison == "<>":
        return own not in others
    is_one_type = all(other.keys() == own.keys() for other in others)
    return is_one_type and _COMPARISONS[comparison](*map(_ordinal, (own, *others)))


def _ordinal(typed: Typed) -> object:
    kind, value = kind_and_value(typed)
    return Decimal(value) if kind == "N" else value
