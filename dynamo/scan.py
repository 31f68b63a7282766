"""Reading a whole table, in parallel segments, page by page.

Source: "Scanning tables in DynamoDB", section "Parallel scan",
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from dynamo.client import send
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
        Unavailable, Rejected, TableMissing: see `dynamo.client.send`.
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
