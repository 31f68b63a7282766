"""Two models with unique attributes, whose guards are in their own table or in a second one."""

from __future__ import annotations

from typing import Any

import pytest
from pynamodb.attributes import UnicodeAttribute

from dynamo.attributes import IntegerAttribute
from dynamo.client.sending import send
from dynamo.items import PlainModel
from dynamo.transactions import Transaction
from dynamo.unique import guards
from dynamo.unique.attributes import UniqueAttributes
from dynamo.unique.guards import Pending

PENDING = {
    "site": Pending("next_site", "site_reservation", "site_until"),
    "label": Pending("next_label", "label_reservation", "label_until"),
}


class Band(PlainModel):
    """Its guards are in its own table. Two of its three unique values can be reserved."""

    class Meta:
        table_name = "tests-bands"

    pk = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)
    next_site = UnicodeAttribute(attr_name="nextSite", null=True)
    site_reservation = UnicodeAttribute(attr_name="siteReservation", null=True)
    site_until = IntegerAttribute(attr_name="siteUntil", null=True)
    next_label = UnicodeAttribute(attr_name="nextLabel", null=True)
    label_reservation = UnicodeAttribute(attr_name="labelReservation", null=True)
    label_until = IntegerAttribute(attr_name="labelUntil", null=True)

    unique: UniqueAttributes[Band] = UniqueAttributes(
        pending=PENDING, name=str.casefold, site=str.casefold, label=str.upper
    )


class Singer(PlainModel):
    """Its guards are in a second table, whose key has another name."""

    class Meta:
        table_name = "tests-singers"

    number = UnicodeAttribute(hash_key=True, attr_name="singerNumber")
    name = UnicodeAttribute()
    site = UnicodeAttribute()
    label = UnicodeAttribute(null=True)
    next_site = UnicodeAttribute(attr_name="nextSite", null=True)
    site_reservation = UnicodeAttribute(attr_name="siteReservation", null=True)
    site_until = IntegerAttribute(attr_name="siteUntil", null=True)
    next_label = UnicodeAttribute(attr_name="nextLabel", null=True)
    label_reservation = UnicodeAttribute(attr_name="labelReservation", null=True)
    label_until = IntegerAttribute(attr_name="labelUntil", null=True)

    unique: UniqueAttributes[Singer] = UniqueAttributes(
        table="tests-singer-guards",
        pending=PENDING,
        name=str.casefold,
        site=str.casefold,
        label=str.upper,
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


def note(value: str | None, reservation: str | None = "r1", until: int | None = None) -> Any:
    """The attributes of an item that reserves a site; of one that reserves none without a value."""
    if value is None:
        return {"next_site": None, "site_reservation": None, "site_until": None}
    until = guards.now() + 60 if until is None else until
    return {"next_site": value, "site_reservation": reservation, "site_until": until}


def guards_of(model: Any) -> dict[str, tuple[str, ...]]:
    """The owner of each guard, and its reservation if it has one."""
    items = send("Scan", {"TableName": model.unique.guard_model.table()})["Items"]
    return {
        item["pk"]["S"]: tuple(item[each]["S"] for each in ("owner", "reservation") if each in item)
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
