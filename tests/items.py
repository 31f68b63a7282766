"""Stored items of any table."""

from typing import Any

from django.conf import settings

from dynamo.client.sending import send
from dynamo.items.plain import PlainModel
from dynamo.items.updates import Update
from dynamo.transactions import Transaction


def stored_items(table: str | None = None) -> dict[str, dict[str, Any]]:
    """Every item of the table `users` (or `table`) by its pk, as on the wire."""
    items: list[dict[str, Any]] = []
    name = table or f"{settings.DYNAMODB_TABLE_PREFIX}users"
    request: dict[str, Any] = {"TableName": name}
    while True:
        answer = send("Scan", request)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            return {item["pk"]["S"]: item for item in items}
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def insert(item: PlainModel) -> None:
    """Store an item of a model without promises, whose key is absent."""
    absent = type(item)._hash_key_attribute().does_not_exist()  # type: ignore[no-untyped-call]  # PynamoDB's
    with Transaction() as write:
        write.put(item, absent, otherwise=AssertionError("its key is used"))


def overwrite(item: PlainModel, **typed: dict[str, Any] | None) -> None:
    """Give the stored item these values, as on the wire, past all rules; None removes one."""
    send("UpdateItem", Update(typed).request(item._address()))
