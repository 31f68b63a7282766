"""Empties tables between tests, by requests written by hand.

This is done before nearly every test, for the tables that `tests.written_tables` names; botocore
would take five times as long. Requests go to the engine itself, past a proxy, unless told not to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.written_tables import UnrecordedConnection

BATCH = 25  # actions at most in one BatchWriteItem

Send = Callable[[str, dict[str, Any]], dict[str, Any]]


def empty(table: str, key: Sequence[str] = ("pk",)) -> None:
    """Delete every item of a table of the engine that the environment names."""
    with _connected(os.environ["AWS_ENDPOINT_URL_DYNAMODB"]) as send:
        _empty(send, table, key)


def empty_all(url: str, tables: dict[str, Sequence[str]]) -> None:
    """Delete every item of these tables, named with the attributes of their keys."""
    if not tables:
        return
    with _connected(url) as send:
        for table, key in tables.items():
            _empty(send, table, key)


def _empty(send: Send, table: str, key: Sequence[str]) -> None:
    request = {
        "TableName": table,
        "ConsistentRead": True,
        "ProjectionExpression": ", ".join(f"#{number}" for number, _name in enumerate(key)),
        "ExpressionAttributeNames": {f"#{number}": name for number, name in enumerate(key)},
    }
    while True:
        page = send("Scan", request)
        left = [{"DeleteRequest": {"Key": item}} for item in page["Items"]]
        while left:
            answer = send("BatchWriteItem", {"RequestItems": {table: left[:BATCH]}})
            left = answer.get("UnprocessedItems", {}).get(table, []) + left[BATCH:]
        if not page.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


@contextmanager
def _connected(url: str) -> Iterator[Send]:
    """A way to send requests to one engine, over one connection where it keeps one."""
    connection = UnrecordedConnection(urlsplit(url).netloc, timeout=120)
    credentials = Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    signer = SigV4Auth(credentials, "dynamodb", os.environ["AWS_REGION"])

    def send(operation: str, request: dict[str, Any]) -> dict[str, Any]:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        signed = AWSRequest("POST", f"{url}/", headers, json.dumps(request).encode())
        signer.add_auth(signed)
        connection.request("POST", "/", signed.body, dict(signed.headers.items()))
        with connection.getresponse() as reply:
            body = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{operation} of {request}: {body.decode()}")
        answer: dict[str, Any] = json.loads(body)
        return answer

    try:
        yield send
    finally:
        connection.close()
