"""Two models with unique attributes, whose guards are in their own table or in a second one."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.attributes import UnicodeAttribute

from dynamo._internal.client.sending import send
from dynamo.models import Model
from dynamo.unique import Unique


class Band(Model):
    """Its guards are in its own table."""

    class Meta:
        table_name = "tests-bands"

    pk = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique_name = Unique("name", normalize=str.casefold)
    unique_site = Unique("site", normalize=str.casefold)
    unique_label = Unique("label", normalize=str.upper)


class Singer(Model):
    """Its guards are in a second table, whose key has another name."""

    class Meta:
        table_name = "tests-singers"
        guard_table = "tests-singer-guards"

    number = UnicodeAttribute(hash_key=True, attr_name="singerNumber")
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)

    unique_name = Unique("name", normalize=str.casefold)
    unique_site = Unique("site", normalize=str.casefold)
    unique_label = Unique("label", normalize=str.upper)


both_models = pytest.mark.parametrize("model", [Band, Singer])


def insert(item: Any) -> Any:
    return item.insert()


def guards_of(model: Any) -> dict[str, tuple[str, ...]]:
    """The owner of each guard, and what else it stores, by name."""
    items = send("Scan", {"TableName": model._guard_table().name})["Items"]
    return {
        item["pk"]["S"]: (item["owner"]["S"], *sorted(item.keys() - {"pk", "owner"}))
        for item in items
        if "#" in item["pk"]["S"]
    }


def put_guard(model: Any, key: str, owner: str, **more: dict[str, str]) -> None:
    """Store a guard as it stands."""
    item = {"pk": {"S": key}, "owner": {"S": owner}, **more}
    send("PutItem", {"TableName": model._guard_table().name, "Item": item})


def delete_guard(model: Any, key: str) -> None:
    table = model._guard_table().name
    send("DeleteItem", {"TableName": table, "Key": {"pk": {"S": key}}})


def the_who(model: Any) -> Any:
    """A stored item with the guards `WHO`."""
    return insert(model("1", name="The Who", site="who.example"))


WHO = {"name#the who": ("1",), "site#who.example": ("1",)}
NAME = {"name#the who": ("1",)}
