"""A worker on DynamoDB: our code, and code written by hand. See `benchmarks.harness`."""

from __future__ import annotations

import random
import time
import uuid
from decimal import Decimal
from typing import Any

import django

django.setup()

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from benchmarks.worker import Cost, Operation, options_of, work
from dynamo.signals import request_sent
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Seller, draw_up
from invoices.models import InvoiceItem
from invoices.store.issuing import issue_invoice, today
from invoices.store.records import to_item
from sequences.counters import next_value
from sequences.models import Counter

DRAFT = Draft(
    Customer("A customer", "1 Road\nTown"),
    (Line("Work", Decimal(8), Decimal("95.50"), Decimal(19)),),
    "EUR",
)
SELLER = Seller("A seller", "2 Street\nCity", "GB123456789")


COST = Cost()
request_sent.connect(COST.note)


def ours(account: str) -> None:
    """An invoice with its request-id guard."""
    issue_invoice(DRAFT, account=account, seller=SELLER)


def _bare_client() -> Any:
    return boto3.client("dynamodb", config=Config(max_pool_connections=64))


def plain_transaction(account: str) -> None:
    """Read the counter, then write counter and invoice in a transaction; repeat if refused."""
    invoice = draw_up(DRAFT, account, SELLER, today(), str(uuid.uuid4()))
    key = {"counterName": {"S": f"invoices#{invoice.series}"}}
    for attempt in range(1000):
        response = _bare.get_item(
            TableName=Counter.table(), Key=key, ConsistentRead=True, ReturnConsumedCapacity="TOTAL"
        )
        COST.note(response)
        last = int(response.get("Item", {}).get("currentValue", {"N": "0"})["N"])
        item = to_item(invoice) | {"number": {"N": str(last + 1)}}
        try:
            COST.note(_bare.transact_write_items(**_plain_request(key, last, item)))
        except ClientError:
            COST.note({})
            time.sleep(random.uniform(0, min(0.5, 0.005 * 2**attempt)))  # noqa: S311 - no secret
        else:
            return
    raise SystemExit("the plain transaction starved")


def _plain_request(key: dict[str, Any], last: int, item: dict[str, Any]) -> dict[str, Any]:
    return {
        "ReturnConsumedCapacity": "TOTAL",
        "TransactItems": [
            {
                "Update": {
                    "TableName": Counter.table(),
                    "Key": key,
                    "UpdateExpression": "SET currentValue = :next",
                    "ConditionExpression": "attribute_not_exists(currentValue) "
                    "OR currentValue = :last",
                    "ExpressionAttributeValues": {
                        ":next": {"N": str(last + 1)},
                        ":last": {"N": str(last)},
                    },
                }
            },
            {
                "Put": {
                    "TableName": InvoiceItem.table(),
                    "Item": item,
                    "ConditionExpression": "attribute_not_exists(series)",
                }
            },
        ],
    }


def counter_atomic(name: str) -> None:
    """Ours."""
    next_value(name)


def counter_optimistic(name: str) -> None:
    """Ours, by the optimistic strategy."""
    next_value(name, strategy="optimistic")


def counter_boto3(name: str) -> None:
    """A bare `update_item` with ADD."""
    response = _bare.update_item(
        TableName=Counter.table(),
        Key={"counterName": {"S": name}},
        UpdateExpression="ADD currentValue :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
        ReturnConsumedCapacity="TOTAL",
    )
    COST.note(response)


CONTENDERS: dict[str, Operation] = {
    function.__name__: function
    for function in (ours, plain_transaction, counter_atomic, counter_optimistic, counter_boto3)
}


def main() -> None:
    options = options_of(CONTENDERS)
    work(CONTENDERS[options.contender], options, COST)


_bare = _bare_client()

if __name__ == "__main__":
    main()
