"""The IAM policies in deploy/, and the rights that requests need."""

import json
from collections.abc import Iterator
from typing import Any

from tests.commands import ROOT
from tests.requests import Requests

PREFIX = "arn:aws:dynamodb:REGION:ACCOUNT:table/PREFIX"


def statements(policy: str) -> list[dict[str, Any]]:
    """The statements of a policy."""
    document = json.loads((ROOT / "deploy" / f"iam-{policy}.json").read_text())
    found: list[dict[str, Any]] = document["Statement"]
    return found


def rights(policy: str) -> Iterator[tuple[str, str]]:
    """The name of each table with each action that is allowed on it."""
    for statement in statements(policy):
        for resource in listed(statement["Resource"]):
            for action in listed(statement["Action"]):
                if not action.startswith("dynamodb:"):
                    continue
                yield resource.removeprefix(PREFIX), action.removeprefix("dynamodb:")


def rights_for(requests: Requests) -> Iterator[tuple[str, str]]:
    """Each table with a right that the requests need; a transaction needs those of its actions.

    A query of an index needs no right on the table, but on `<table>/index/<name>`. Policies name
    all indexes of a table: `<table>/index/*`.
    """
    for operation, request in zip(requests.operations, requests.requests, strict=True):
        if "TableName" in request:
            indexes = "/index/*" if "IndexName" in request else ""
            yield f"{request['TableName']}{indexes}", operation
        for table in request.get("RequestItems", ()):
            yield table, operation
        for item in request.get("TransactItems", ()):
            for action, details in item.items():
                yield details["TableName"], _RIGHTS_OF_ACTIONS[action]


# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
_RIGHTS_OF_ACTIONS = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}


def listed(one_or_more: Any) -> list[Any]:
    """A policy may have one action or resource instead of a list."""
    return one_or_more if isinstance(one_or_more, list) else [one_or_more]
