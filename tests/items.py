"""Stored items of any table."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from dynamo._internal.client.sending import send


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
