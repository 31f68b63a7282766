"""Background tasks on AWS Lambda: by the stream of their table, and by the sweep."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from accounts.emails import mails
from outbox.framework import task_backends
from outbox.models import TaskItem
from tests.cloudformation import printed
from tests.factories import make_user
from tests.serverless.runtime import Function

HANDLER = "project.serverless.run_tasks"

RECORD = {"eventName": "INSERT", "eventSource": "aws:dynamodb", "dynamodb": {"Keys": {}}}


@pytest.fixture(autouse=True)
def _stored() -> Iterator[None]:
    with override_settings(TASKS={"default": {"BACKEND": "outbox.TaskBackend"}}):
        yield


@pytest.mark.parametrize("event", [{"Records": [RECORD, RECORD]}, {}], ids=["stream", "sweep"])
def test_the_function_runs_what_is_due_and_says_how_it_ended(
    function: Function, event: dict[str, Any]
) -> None:
    result = mails.confirm.enqueue(make_user(username="ann", email="ann@example.org").pk, "en")

    assert function.invoke(event, seconds=60) == {"successful": 1}

    assert task_backends["default"].get_result(result.id).status == "SUCCESSFUL"
    assert function.invoke(event, seconds=60) == {}


@pytest.mark.usefixtures("engine")
def test_the_stream_tells_of_tasks_that_can_run_at_once_and_of_nothing_else() -> None:
    resources = printed("lambdatemplate")["Resources"]
    [filter_] = resources["NewTasks"]["Properties"]["FilterCriteria"]["Filters"]
    wanted = json.loads(filter_["Pattern"])
    assert wanted["eventName"] == ["INSERT"]
    prefixes = [rule["prefix"] for rule in wanted["dynamodb"]["Keys"]["sort"]["S"]]

    def is_told(sort: str) -> bool:
        return sort.startswith(tuple(prefixes))

    for priority in (-100, 0, 100):
        mails.confirm.using(priority=priority).enqueue("pk", "en")
    waiting = list(TaskItem.scan())
    assert {item.rank for item in waiting} == {"000", "100", "200"}
    assert all(is_told(item.sort) for item in waiting)
    assert not any(map(is_told, ("record", "slot", "d000661")))
    table = resources["TasksTable"]["Properties"]
    assert table["StreamSpecification"] == {"StreamViewType": "KEYS_ONLY"}
