"""Many items: whole tables in parallel segments, and batches of reads or writes.

Neither is a transaction: each item is read or written by itself.

Source: "Scanning tables in DynamoDB", section "Parallel scan",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, TypeVar

from dynamo.client.deadline import operation_ends_at
from dynamo.client.retries import pause_seconds
from dynamo.client.sending import send
from dynamo.exceptions import Unavailable
from dynamo.models import Item
from dynamo.tally import CountingPool

SEGMENTS = 4


def pages(
    table: str,
    attributes: Collection[str],
    *,
    segments: int = SEGMENTS,
    page_limit: int | None = None,
) -> Iterator[list[Item]]:
    """The `attributes` of every item of `table`, as on the wire, in no order, page by page.

    Each segment reads one page ahead, so there are never more than `segments` pages of 1 MB (or
    `page_limit` items) in memory. Not isolated from transactions: of a transaction that commits
    meanwhile, one item may be seen as it was before and another as it is after. Costs 1 request
    per page and 1 read unit per 4 KB of all that is stored, whatever `attributes` leaves out.

    Raises:
        Unavailable, Rejected, TableMissing: see `dynamo.client.sending`.
    """
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    request: dict[str, Any] = {
        "TableName": table,
        "TotalSegments": segments,
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    if page_limit is not None:
        request["Limit"] = page_limit
    with CountingPool(segments) as pool:
        under_way: dict[Future[dict[str, Any]], dict[str, Any]] = {}

        def ask(page: dict[str, Any]) -> None:
            under_way[pool.submit(send, "Scan", page)] = page

        for segment in range(segments):
            ask(request | {"Segment": segment})
        while under_way:
            done, _others = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                page, answer = under_way.pop(future), future.result()
                if "LastEvaluatedKey" in answer:
                    ask(page | {"ExclusiveStartKey": answer["LastEvaluatedKey"]})
                yield answer["Items"]


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
