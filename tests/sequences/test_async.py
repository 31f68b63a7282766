"""Numbers for the tasks of an event loop."""

from __future__ import annotations

import asyncio

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from dynamo._internal.client import deadline
from sequences import aissue, anext_value, next_value
from tests.conftest import PATIENCE_SECONDS
from tests.numbered import Ticket, new_series, ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", PATIENCE_SECONDS)


def test_tasks_that_wait_for_a_series_share_transactions(requests_sent: Requests) -> None:
    series, subjects = new_series(), [str(number) for number in range(200)]

    async def issue_all() -> list[Ticket]:
        items = (Ticket(subject=each) for each in subjects)
        return await asyncio.gather(*(aissue(item, series=series) for item in items))

    tickets = asyncio.run(issue_all())

    assert sorted(each.number for each in tickets) == list(range(1, 201))
    assert [each.subject for each in tickets] == subjects
    # 64 threads ask at the same time; alone, each task would send one.
    assert requests_sent.operations.count("TransactWriteItems") <= 100


def test_tasks_that_wait_for_a_counter_share_requests(requests_sent: Requests) -> None:
    async def draw_all() -> list[int]:
        return await asyncio.gather(*(anext_value("a") for _ in range(200)))

    assert sorted(asyncio.run(draw_all())) == list(range(1, 201))
    assert requests_sent.operations.count("UpdateItem") <= 100


def test_a_synchronous_call_does_not_wait_in_an_event_loop_for_another_threads_request() -> None:
    async def call() -> None:
        for act in (lambda: next_value("a"), lambda: ticket(new_series())):
            with pytest.raises(SynchronousOnlyOperation):
                act()

    asyncio.run(call())
