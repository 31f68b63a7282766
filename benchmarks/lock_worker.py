"""A worker that acquires and releases locks, one per thread; see `benchmarks.harness`.

Ours and bare boto3 run in this project's Python, python-dynamodb-lock in the peers'.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable

import boto3
from botocore.config import Config

from benchmarks.worker import Cost, Operation, options_of, work

TABLE = "locks"
PEER_TABLE = "locks-of-a-peer"


COST = Cost()


def ours() -> Operation:
    """`with Lock(…): pass`."""
    import django

    django.setup()
    from dynamo.signals import request_sent
    from locks.lock import Lock

    request_sent.connect(COST.note)

    def cycle(name: str) -> None:
        with Lock(name):
            pass

    return cycle


def bare_boto3() -> Operation:
    """Written by hand: a conditional put and a conditional delete, without renewals."""
    client = boto3.client("dynamodb", config=Config(max_pool_connections=64))

    def cycle(name: str) -> None:
        version = str(uuid.uuid4())
        response = client.put_item(
            TableName=TABLE,
            Item={
                "key": {"S": name},
                "ownerName": {"S": "bare"},
                "leaseDuration": {"S": "20000"},
                "recordVersionNumber": {"S": version},
            },
            ConditionExpression="attribute_not_exists(#key)",
            ExpressionAttributeNames={"#key": "key"},
            ReturnConsumedCapacity="TOTAL",
        )
        COST.note(response)
        response = client.delete_item(
            TableName=TABLE,
            Key={"key": {"S": name}},
            ConditionExpression="recordVersionNumber = :version",
            ExpressionAttributeValues={":version": {"S": version}},
            ReturnConsumedCapacity="TOTAL",
        )
        COST.note(response)

    return cycle


def python_dynamodb_lock() -> Operation:
    """The package of that name, on its own table; it reads before it writes."""
    from python_dynamodb_lock.python_dynamodb_lock import DynamoDBLockClient

    control = boto3.client("dynamodb")
    if PEER_TABLE not in control.list_tables()["TableNames"]:
        DynamoDBLockClient.create_dynamodb_table(control, table_name=PEER_TABLE)
    resource = boto3.resource("dynamodb", config=Config(max_pool_connections=64))
    client = DynamoDBLockClient(resource, table_name=PEER_TABLE)

    def cycle(name: str) -> None:
        client.acquire_lock(name).release()

    return cycle


CONTENDERS: dict[str, Callable[[], Operation]] = {
    make.__name__: make for make in (ours, bare_boto3, python_dynamodb_lock)
}


def main() -> None:
    options = options_of(CONTENDERS)
    cycle = CONTENDERS[options.contender]()

    def own_lock(name: str) -> None:
        cycle(f"{name}-{options.contender}-{threading.get_ident()}")

    work(own_lock, options, COST)
    # The peer's threads would keep running.
    os._exit(0)


if __name__ == "__main__":
    main()
