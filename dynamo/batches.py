"""Many items in few requests: BatchGetItem and BatchWriteItem, until nothing is left over.

A batch is no transaction: each item of it is read or written by itself, and DynamoDB may leave
some for another request (`UnprocessedKeys`, `UnprocessedItems`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from dynamo.client import send
from dynamo.deadline import operation_ends_at
from dynamo.exceptions import Unavailable
from dynamo.retries import pause_seconds

T = TypeVar("T")

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
READ_MAX_ITEMS = 100
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
WRITE_MAX_ITEMS = 25


def read_batches(table: str, keys: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The items under `keys` (as on the wire), as they come; those that are not there are not.

    No key may be there twice. Costs 1 request per 100 keys, 1 read unit per 4 KB of each item.

    Raises:
        Unavailable: DynamoDB left some over until the deadline.
    """
    for chunk in _chunks(keys, READ_MAX_ITEMS):
        for answer in _until_done("BatchGetItem", "UnprocessedKeys", {table: {"Keys": chunk}}):
            yield from answer["Responses"].get(table, [])


def write_batches(table: str, writes: Sequence[Mapping[str, Any]]) -> None:
    """Do `writes` (PutRequest or DeleteRequest), unconditionally and in no order.

    No key may be there twice. Costs 1 request per 25 writes, 1 write unit per KB of each item.

    Raises:
        Unavailable: DynamoDB left some over until the deadline.
    """
    for chunk in _chunks(writes, WRITE_MAX_ITEMS):
        for _answer in _until_done("BatchWriteItem", "UnprocessedItems", {table: chunk}):
            pass


def _until_done(
    operation: str, left_over: str, left: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    ends_at = operation_ends_at()
    for attempt in itertools.count():
        answer = send(operation, {"RequestItems": left})
        yield answer
        left = answer.get(left_over) or {}
        if not left:
            return
        pause = pause_seconds(attempt)
        if time.monotonic() + pause > ends_at:
            raise Unavailable(operation, left_over, maybe_written=operation == "BatchWriteItem")
        time.sleep(pause)


def _chunks(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
