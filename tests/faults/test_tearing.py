"""Mixed answers: each state that they show was committed, and their pages fit together."""

import random
from typing import Any

from tests.faults.tearing import torn

QUERY = {"TableName": "invoices", "KeyConditionExpression": "series = :series"}


def page(*numbers: int, status: str = "issued", end: int | None = None) -> dict[str, Any]:
    items = [
        {"series": {"S": "a"}, "number": {"N": str(number)}, "status": {"S": status}}
        for number in numbers
    ]
    answer: dict[str, Any] = {"Items": items, "Count": len(items)}
    if end is not None:
        answer["LastEvaluatedKey"] = {"series": {"S": "a"}, "number": {"N": str(end)}}
    return answer


def numbers(answer: dict[str, Any]) -> list[int]:
    return [int(item["number"]["N"]) for item in answer["Items"]]


def all_torn(request: dict[str, Any], *two: dict[str, Any]) -> list[dict[str, Any]]:
    return [torn(request, *two, random.Random(seed)) for seed in range(200)]


def test_either_of_two_new_items_may_be_shown_alone() -> None:
    answers = all_torn(QUERY, page(1), page(1, 2, 3))

    assert {tuple(numbers(answer)) for answer in answers} == {(1,), (1, 2), (1, 3), (1, 2, 3)}
    assert all(answer["Count"] == len(answer["Items"]) for answer in answers)


def test_a_changed_item_is_shown_in_either_state() -> None:
    answers = all_torn(QUERY, page(1), page(1, status="voided"))

    assert {answer["Items"][0]["status"]["S"] for answer in answers} == {"issued", "voided"}


def test_a_backward_query_has_a_backward_answer() -> None:
    backwards = QUERY | {"ScanIndexForward": False}

    assert {tuple(numbers(answer)) for answer in all_torn(backwards, page(1), page(10, 2, 1))} == {
        (1,),
        (2, 1),
        (10, 1),
        (10, 2, 1),
    }


def test_a_page_ends_at_the_nearer_end_of_its_answers() -> None:
    backwards = QUERY | {"ScanIndexForward": False, "Limit": 3}

    for answer in all_torn(backwards, page(3, 2, 1), page(4, 3, 2, end=2)):
        assert set(numbers(answer)) <= {4, 3, 2}
        assert {3, 2} <= set(numbers(answer))
        assert answer["LastEvaluatedKey"]["number"] == {"N": "2"}


def test_answers_that_cannot_be_mixed_are_the_later_one() -> None:
    later = page(2, 1, end=1)

    assert torn({"TableName": "invoices"}, page(1), later) == later
    assert torn(QUERY | {"TableName": "of others"}, page(1), later) == later


def test_a_scan_of_one_page_is_mixed() -> None:
    answers = all_torn({"TableName": "invoices"}, page(1, 2), page(2, 3))

    assert {tuple(numbers(answer)) for answer in answers} == {(2,), (1, 2), (2, 3), (1, 2, 3)}
