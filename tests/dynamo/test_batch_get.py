"""`batch_get`: repeated keys, and keys that DynamoDB did not process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dynamo.test_pages import Ride, rides
from tests.faults.kinds import Reply, nothing_processed
from tests.faults.proxy import FaultProxy
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


def some_processed(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a batch of which only the first key was processed, which has no item."""
    [(table, wanted)] = request["RequestItems"].items()
    left = wanted | {"Keys": wanted["Keys"][1:]}
    return {"Responses": {table: []}, "UnprocessedKeys": {table: left}}


def test_repeated_and_absent_keys_cost_one_request(requests_sent: Requests) -> None:
    items = rides(3)
    requests_sent.clear()

    found = list(Ride.batch_get([("red", 0), ("red", 2), ("red", 0), ("red", 9), ("blue", 0)]))

    assert sorted(each.number for each in found) == [0, 2]
    assert items[0] in found
    assert requests_sent.operations == ["BatchGetItem"]
    assert list(Ride.batch_get([])) == []


def test_unprocessed_keys_are_asked_for_again(proxy: FaultProxy) -> None:
    items = rides(5)
    proxy.plan("BatchGetItem", Reply(nothing_processed), 2)
    proxy.plan("BatchGetItem", Reply(some_processed))

    found = list(Ride.batch_get([("red", number) for number in range(5)]))

    assert sorted(each.number for each in found) == [1, 2, 3, 4]
    assert all(each in items for each in found)
    assert proxy.count("BatchGetItem") == 4
    assert all(
        wanted["ConsistentRead"]
        for each in proxy.seen
        if each.operation == "BatchGetItem"
        for wanted in each.body["RequestItems"].values()
    )


def test_more_than_a_hundred_keys_are_several_requests(requests_sent: Requests) -> None:
    [ride] = rides(1)
    requests_sent.clear()

    assert list(Ride.batch_get([("red", number) for number in range(150)])) == [ride]
    assert requests_sent.operations == ["BatchGetItem"] * 2


def test_items_of_a_batch_can_be_changed() -> None:
    rides(1)
    [ride] = Ride.batch_get([("red", 0)])

    ride.change(goal="Oslo")

    assert Ride.get("red", 0).goal == "Oslo"
