"""Stored items of any table."""

from typing import Any

from django.contrib.auth import get_user_model

from dynamo import Transaction
from dynamo.client.plain import PlainModel
from dynamo.client.sending import send
from dynamo.wire.types import Item as Item
from dynamo.wire.updates import Update


def scanned(table: str) -> list[Item]:
    """Every item of the table, as on the wire."""
    items: list[Item] = []
    request: dict[str, Any] = {"TableName": table}
    while True:
        answer = send("Scan", request)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return items
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def stored_items(table: str | None = None) -> dict[str, Item]:
    """Every item of the table of accounts (or `table`) by its pk, as on the wire."""
    items = scanned(table or get_user_model().table())
    return {item["pk"]["S"]: item for item in items}


def stored_item(table: str, **key: Any) -> Item:
    """The item as on the wire; empty if there is none."""
    item: Item = send("GetItem", {"TableName": table, "Key": on_the_wire(key)}).get("Item", {})
    return item


def on_the_wire(attributes: dict[str, Any]) -> Item:
    """Texts and numbers as they are stored; what is on the wire already stays."""
    return {
        name: value
        if isinstance(value, dict)
        else {"N" if isinstance(value, int) else "S": str(value)}
        for name, value in attributes.items()
    }


def put_item(table: str, **attributes: Any) -> None:
    """Store an item of texts, numbers and values as on the wire, past all rules."""
    send("PutItem", {"TableName": table, "Item": on_the_wire(attributes)})


def remove_item(table: str, **key: Any) -> None:
    """Delete an item, past all rules."""
    send("DeleteItem", {"TableName": table, "Key": on_the_wire(key)})


def insert(item: PlainModel) -> None:
    """Store an item of a model without promises, whose key is absent."""
    absent = type(item)._hash_key_attribute().does_not_exist()  # type: ignore[no-untyped-call]  # PynamoDB's
    with Transaction() as write:
        write.put(item, absent, otherwise=AssertionError("its key is used"))


def overwrite(item: PlainModel, **typed: dict[str, Any] | None) -> None:
    """Give the stored item these values, as on the wire, past all rules; None removes one."""
    send("UpdateItem", Update(typed).request(item._address()))
