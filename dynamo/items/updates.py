"""The changes of one UpdateItem as data, from which its request is built."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path, Value
from pynamodb.expressions.update import Action, AddAction, RemoveAction, SetAction

from dynamo.items.values import Item, is_same_value
from dynamo.wire import Request, Typed

#: A stored name, or a tuple of those that lead into maps: `("sessions", "a1", "seenAt")`.
Name = Any  # Not a union: dictionaries with texts only would not fit.


@dataclass(frozen=True)
class Update:
    """Sets values (None removes one), and counts numbers up.

    `add` counts up from 0, or from the stored number; `count` from a start of its own: each entry
    is (start, step), and the first result is start + step.
    """

    set: Mapping[Name, Typed | None] = field(default_factory=dict)
    add: Mapping[Name, Typed] = field(default_factory=dict)
    count: Mapping[Name, tuple[Typed, Typed]] = field(default_factory=dict)

    @classmethod
    def of_actions(cls, actions: Iterable[Action]) -> Self:
        """What PynamoDB's `actions` do: each sets a value, removes one, or adds to a number.

        Raises:
            TypeError: one does something else.
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
        """Whether doing it twice does no more than doing it once."""
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
        """Whether `stored` has what this sets, and none of what it removes.

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
    """The `request` under `condition`; unless it says otherwise, its refusal shows the stored item.

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
