"""A worker that takes and releases a lock, each thread its own; see `benchmarks.harness`.

Ours and bare boto3 run in this project's Python, python-dynamodb-lock in the peers'.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config

Cycle = Callable[[str], None]
TABLE = "locks"
PEER_TABLE = "locks-of-a-peer"


class Cost:
    """Requests and capacity of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.requests = 0
        self.units = 0.0

    def note(self, response: dict[str, Any], **_signal: Any) -> None:
        """Count one answer."""
        with self._lock:
            self.requests += 1
            self.units += response["ConsumedCapacity"]["CapacityUnits"]


COST = Cost()


def ours() -> Cycle:
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


def bare_boto3() -> Cycle:
    """What one would write by hand: a conditional put, and a conditional delete. No heartbeat."""
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


def python_dynamodb_lock() -> Cycle:
    """The package of that name, on a table of its own shape; it reads before it writes."""
    from python_dynamodb_lock.python_dynamodb_lock import DynamoDBLockClient

    control = boto3.client("dynamodb")
    if PEER_TABLE not in control.list_tables()["TableNames"]:
        DynamoDBLockClient.create_dynamodb_table(control, table_name=PEER_TABLE)
    resource = boto3.resource("dynamodb", config=Config(max_pool_connections=64))
    client = DynamoDBLockClient(resource, table_name=PEER_TABLE)

    def cycle(name: str) -> None:
        client.acquire_lock(name).release()

    return cycle


CONTENDERS: dict[str, Callable[[], Cycle]] = {
    make.__name__: make for make in (ours, bare_boto3, python_dynamodb_lock)
}


def main() -> None:
    """Work as told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--operations", type=int)
    parser.add_argument("--name")
    options = parser.parse_args()
    cycle = CONTENDERS[options.contender]()
    cycle(f"warm-up-{os.getpid()}")
    COST.requests, COST.units = 0, 0.0
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()

    def timed(_number: int) -> float:
        name = f"{options.name}-{options.contender}-{threading.get_ident()}"
        began = time.perf_counter()
        cycle(name)
        return (time.perf_counter() - began) * 1000

    began = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        milliseconds = list(pool.map(timed, range(options.operations)))
    seconds = time.perf_counter() - began
    answer = {
        "seconds": seconds,
        "milliseconds": milliseconds,
        "requests": COST.requests,
        "units": COST.units,
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # The peer's threads would go on for a while.
    os._exit(0)


if __name__ == "__main__":
    main()
