"""Mixed answers: each state that they show was committed."""

import random
from typing import Any

import pytest

from tests.faults.tearing import torn

QUERY = {"TableName": "invoices", "KeyConditionExpression": "series = :series"}
BACKWARDS = QUERY | {"ScanIndexForward": False}
SCAN = {"TableName": "invoices"}


def page(*numbers: int, status: str = "issued", **more: Any) -> dict[str, Any]:
    items = [
        {"series": {"S": "a"}, "number": {"N": str(number)}, "status": {"S": status}}
        for number in numbers
    ]
    return {"Items": items, "Count": len(items)} | more


@pytest.mark.parametrize(
    ("request_", "before", "after", "shown"),
    [
        (QUERY, page(1), page(1, 2, 3), {(1,), (1, 2), (1, 3), (1, 2, 3)}),
        (BACKWARDS, page(1), page(10, 2, 1), {(1,), (2, 1), (10, 1), (10, 2, 1)}),
        (SCAN, page(1, 2), page(2, 3), {(2,), (1, 2), (2, 3), (1, 2, 3)}),
        # What is not mixed is as it was later.
        (QUERY, page(1), page(1, 2, LastEvaluatedKey={}), {(1, 2)}),
        (QUERY | {"Limit": 1}, page(1), page(2), {(), (1,), (2,)}),
        (QUERY | {"TableName": "of others"}, page(1), page(1, 2), {(1, 2)}),
    ],
)
def test_each_item_is_shown_as_it_was_before_or_after(
    request_: dict[str, Any], before: Any, after: Any, shown: set[tuple[int, ...]]
) -> None:
    answers = [torn(request_, before, after, random.Random(seed)) for seed in range(200)]

    numbers = {tuple(int(item["number"]["N"]) for item in answer["Items"]) for answer in answers}
    assert numbers == shown
    assert all(answer["Count"] == len(answer["Items"]) for answer in answers)


def test_a_changed_item_is_shown_in_either_state() -> None:
    voided = page(1, status="voided")
    answers = [torn(QUERY, page(1), voided, random.Random(seed)) for seed in range(50)]

    assert {answer["Items"][0]["status"]["S"] for answer in answers} == {"issued", "voided"}
