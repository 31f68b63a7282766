"""Empties tables between tests, with requests to the engine itself, past a proxy.

This happens before nearly every test, and botocore would take ten times as long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.written_tables import UnrecordedConnection

BATCH = 25  # actions at most in one BatchWriteItem


def empty(table: str, key: Sequence[str] = ("pk",)) -> None:
    """Delete every item of a table of the engine that the environment names."""
    empty_all(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], {table: key})


def empty_all(url: str, tables: Mapping[str, Sequence[str]]) -> None:
    """Delete every item of these tables, which are named with the attributes of their keys."""
    if not tables:
        return
    connection = UnrecordedConnection(urlsplit(url).netloc, timeout=120)
    try:
        for table, key in tables.items():
            _empty(connection, table, key)
    finally:
        connection.close()


def _empty(connection: UnrecordedConnection, table: str, key: Sequence[str]) -> None:
    request = {
        "TableName": table,
        "ConsistentRead": True,
        "ProjectionExpression": ", ".join(f"#{number}" for number, _name in enumerate(key)),
        "ExpressionAttributeNames": {f"#{number}": name for number, name in enumerate(key)},
    }
    while True:
        page = _send(connection, "Scan", request)
        left = [{"DeleteRequest": {"Key": item}} for item in page["Items"]]
        while left:
            batch = {"RequestItems": {table: left[:BATCH]}}
            answer = _send(connection, "BatchWriteItem", batch)
            left = answer.get("UnprocessedItems", {}).get(table, []) + left[BATCH:]
        if not page.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _send(
    connection: UnrecordedConnection, operation: str, request: dict[str, Any]
) -> dict[str, Any]:
    scope = f"{os.environ['AWS_ACCESS_KEY_ID']}/20260101/{os.environ['AWS_REGION']}/dynamodb"
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        # Local engines read the scope, but do not check the signature.
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}/aws4_request, "
        "SignedHeaders=host, Signature=0",
    }
    connection.request("POST", "/", json.dumps(request), headers)
    with connection.getresponse() as reply:
        body = reply.read()
    if reply.status != 200:
        raise RuntimeError(f"{operation} of {request}: {body.decode()}")
    answer: dict[str, Any] = json.loads(body)
    return answer
