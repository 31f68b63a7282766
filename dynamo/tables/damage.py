"""Damaged items, which a model cannot read: finding and deleting them in their stored form."""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import and_

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path

from dynamo.client.plain import PlainModel
from dynamo.client.writes import Write
from dynamo.exceptions import DamagedItem
from dynamo.model.base import Model
from dynamo.transactions import Transaction
from dynamo.wire.types import Item, Request
from dynamo.wire.updates import conditional


def damage_in(model: type[PlainModel], items: Iterable[Item]) -> Iterator[tuple[Item, DamagedItem]]:
    """The damaged items among `items` of the model's table, with their errors."""
    # A guard item has a key that no item can have.
    is_item: Callable[[Item], object] = getattr(model, "_is_key_of", bool)
    for found in model._objects_of(filter(is_item, items), damaged=lambda *pair: pair):
        if isinstance(found, tuple):
            yield found


def as_read(item: Item | None, *names: str) -> Request:
    """The condition that the stored attributes are equal to those of `item`."""
    conditions: list[Condition] = [
        Path([name]) == item[name] if item and name in item else Path([name]).does_not_exist()
        for name in names
    ]
    return conditional({}, reduce(and_, conditions))


def delete_as_read(model: type[Model], item: Item) -> bool:
    """Delete the stored `item` with its guard items, if all its attributes are as they were read.

    The guard items of values that cannot be read stay: `checkunique --repair` deletes them. Returns
    whether there are such values. Costs as `Model.delete`.

    Raises:
        Stale: it changed, or was deleted, since it was read.
    """
    guards = model._guard_table()
    owner = model.owner_of(item)
    names = {*item, *(stored_name for _name, stored_name, _attribute in model._named_attributes())}
    key = {name: item[name] for name in model.key_attribute_names()}
    request: Request = {"TableName": model.table(), "Key": key, **as_read(item, *sorted(names))}
    unread = False
    with Transaction() as write:
        write.add(Write(item, "Delete", request, model.Stale(model._noun())))
        for unique in model.guarded():
            try:
                guard_key = unique.key(item)
            except ValueError:
                unread = True
                continue
            if guard_key is not None:
                write.add(guards.free(guard_key, owner, item))
    return unread
