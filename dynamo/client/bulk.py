"""Many items: whole tables in parallel segments, partitions, and batches of reads or writes.

None of these is a transaction: each item is read or written by itself.

Source: "Scanning tables in DynamoDB", section "Parallel scan",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
"""

import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Literal

from dynamo.client.retries import pause_seconds
from dynamo.client.sending import send
from dynamo.client.tally import CountingPool
from dynamo.exceptions import Unavailable
from dynamo.runtime.deadline import operation_ends_at
from dynamo.wire.types import Answer, Item, Request

#: The number of segments of a table that are read at the same time.
SEGMENTS = 4

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
READ_MAX_ITEMS = 100
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
WRITE_MAX_ITEMS = 25


def pages(
    table: str, attributes: Collection[str] = (), *, places: list[Item | None] | None = None
) -> Iterator[list[Item]]:
    """The `attributes` (stored names) of every item of `table`, page by page, in no order.

    Without `attributes`, whole items are read. Each segment reads one page ahead, so at most
    `SEGMENTS` pages of 1 MB are in memory. The read is not isolated from transactions: if one
    commits in the meantime, an item may be read as before it and another as after it. Costs 1
    request per page and 1 read unit per 4 KB of all stored items, even if `attributes` leaves most
    of them out.

    `places` has one entry per segment: the key after which it is read, {} for its beginning, None
    if it was read to its end. When the next page is requested, it has the ends of the earlier
    pages, so that another call can continue there.

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`.
    """
    if places is None:
        places = [{}] * SEGMENTS
    request: Request = {"TableName": table, "TotalSegments": len(places)}
    if attributes:
        request |= projection(attributes)
    with CountingPool(len(places)) as pool:
        under_way: dict[Future[Answer], Request] = {}

        def ask(page: Request) -> None:
            under_way[pool.submit(send, "Scan", page)] = page

        for segment, place in enumerate(places):
            if place is not None:
                start: Request = {"ExclusiveStartKey": place} if place else {}
                ask({**request, "Segment": segment, **start})
        while under_way:
            done, _others = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                page = under_way.pop(future)
                answer = future.result()
                last = answer.get("LastEvaluatedKey")
                if last:
                    ask({**page, "ExclusiveStartKey": last})
                yield answer["Items"]
                places[page["Segment"]] = last


def projection(attributes: Iterable[str]) -> Request:
    """The parameters of a Query or Scan that reads only these `attributes` (stored names)."""
    names = {f"#{number}": name for number, name in enumerate(attributes)}
    return {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}


def query_pages(
    request: Mapping[str, object], operation: str = "Query"
) -> Iterator[tuple[list[Item], bool]]:
    """The items of each answer to the Query (or Scan) `request`, and whether more may follow.

    Costs 1 request per page of 1 MB (or of `Limit` items, if the request names one).

    Raises:
        Unavailable, Rejected, TableMissing: see `client.sending`.
    """
    page = dict(request)
    while True:
        answer = send(operation, page)
        has_more = bool(answer.get("LastEvaluatedKey"))
        yield answer["Items"], has_more
        if not has_more:
            return
        page["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def read_batches(table: str, keys: Sequence[Mapping[str, object]]) -> Iterator[Item]:
    """The items stored under `keys`, in no order; absent ones are left out.

    `keys` must be different. Costs 1 request per 100 keys, 1 read unit per 4 KB of each item.

    Raises:
        Unavailable: DynamoDB did not process all of them until the deadline.
    """
    for start in range(0, len(keys), READ_MAX_ITEMS):
        batch = {table: {"Keys": keys[start : start + READ_MAX_ITEMS]}}
        for answer in _until_done("BatchGetItem", "UnprocessedKeys", batch):
            yield from answer["Responses"].get(table, [])


def read_one_of_each(keys: Mapping[str, Mapping[str, object]]) -> dict[str, Item]:
    """The items stored under the key of each table in `keys`, by table; absent ones are left out.

    Costs 1 request, 1 read unit per 4 KB of each item.

    Raises:
        Unavailable: DynamoDB did not process all of them until the deadline.
    """
    batch = {table: {"Keys": [key]} for table, key in keys.items()}
    return {
        table: item
        for answer in _until_done("BatchGetItem", "UnprocessedKeys", batch)
        for table, items in answer["Responses"].items()
        for item in items
    }


def write_batches(table: str, writes: Sequence[Mapping[str, object]]) -> None:
    """Send `writes` (PutRequest or DeleteRequest), without conditions and in no order.

    Their keys must be different. Costs 1 request per 25 writes, 1 write unit per KB of each item.

    Raises:
        Unavailable: DynamoDB did not process all of them until the deadline.
    """
    for start in range(0, len(writes), WRITE_MAX_ITEMS):
        batch = {table: writes[start : start + WRITE_MAX_ITEMS]}
        for _answer in _until_done("BatchWriteItem", "UnprocessedItems", batch):
            pass


def _until_done(
    operation: str,
    unprocessed: Literal["UnprocessedKeys", "UnprocessedItems"],
    left: Mapping[str, object],
) -> Iterator[Answer]:
    """Repeat the request with the unprocessed items until there are none. Yields the answers."""
    ends_at = operation_ends_at()
    for attempt in itertools.count():
        answer = send(operation, {"RequestItems": left})
        yield answer
        left = answer.get(unprocessed) or {}
        if not left:
            return
        pause = pause_seconds(attempt)
        if time.monotonic() + pause > ends_at:
            raise Unavailable(operation, unprocessed, maybe_written=operation == "BatchWriteItem")
        time.sleep(pause)
