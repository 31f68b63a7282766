"""Two models with unique attributes, whose guards are in their own table or in a second one."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.attributes import UnicodeAttribute

from dynamo.client.sending import send
from dynamo.items import PlainModel
from dynamo.transactions import Transaction
from dynamo.unique.attributes import UniqueAttributes


class Band(PlainModel):
    """Its guards are in its own table."""

    class Meta:
        table_name = "tests-bands"

    pk = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique: UniqueAttributes[Band] = UniqueAttributes(
        name=str.casefold, site=str.casefold, label=str.upper
    )


class Singer(PlainModel):
    """Its guards are in a second table, whose key has another name."""

    class Meta:
        table_name = "tests-singers"

    number = UnicodeAttribute(hash_key=True, attr_name="singerNumber")
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique: UniqueAttributes[Singer] = UniqueAttributes(
        table="tests-singer-guards", name=str.casefold, site=str.casefold, label=str.upper
    )


both_models = pytest.mark.parametrize("model", [Band, Singer])


class Taken(Exception):
    """Another item holds the value."""


class Stale(Exception):
    """The item is not stored."""


def taken(name: str, value: str) -> Taken:
    return Taken(name, value)


def _key_of(item: Any) -> Any:
    return type(item)._hash_key_attribute()


def insert(item: Any) -> Any:
    with Transaction() as write:
        write.put(item, _key_of(item).does_not_exist(), otherwise=Stale())
        type(item).unique.claim(write, item, taken)
    return item


def change(item: Any, **values: Any) -> None:
    with Transaction() as write:
        changes = item.set_or_remove(values)
        write.update(item, changes, _key_of(item).exists(), otherwise=Stale())
        type(item).unique.move(write, item, values, taken)
    for name, value in values.items():
        setattr(item, name, value)


def remove(item: Any) -> None:
    with Transaction() as write:
        write.delete(item, _key_of(item).exists(), otherwise=Stale())
        type(item).unique.free(write, item)


def guards_of(model: Any) -> dict[str, tuple[str, ...]]:
    """The owner of each guard, and what else it stores, by name."""
    items = send("Scan", {"TableName": model.unique.guard_model.table()})["Items"]
    return {
        item["pk"]["S"]: (item["owner"]["S"], *sorted(item.keys() - {"pk", "owner"}))
        for item in items
        if "#" in item["pk"]["S"]
    }


def put_guard(model: Any, key: str, owner: str, **more: dict[str, str]) -> None:
    """Store a guard as it stands."""
    item = {"pk": {"S": key}, "owner": {"S": owner}, **more}
    send("PutItem", {"TableName": model.unique.guard_model.table(), "Item": item})


def delete_guard(model: Any, key: str) -> None:
    table = model.unique.guard_model.table()
    send("DeleteItem", {"TableName": table, "Key": {"pk": {"S": key}}})


def the_who(model: Any) -> Any:
    """A stored item with the guards `WHO`."""
    return insert(model("1", name="The Who", site="who.example"))


WHO = {"name#the who": ("1",), "site#who.example": ("1",)}
NAME = {"name#the who": ("1",)}
