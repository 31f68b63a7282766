"""Numbers for the tasks of an event loop."""

import asyncio
import threading
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from dynamo.runtime import deadline
from sequences import aissue, anext_value, next_value
from tests.conftest import PATIENCE_SECONDS
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.numbered import Ticket, new_series, ticket
from tests.requests import Requests

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "OPERATION_SECONDS", PATIENCE_SECONDS)


def test_tasks_that_wait_for_a_series_share_transactions(requests_sent: Requests) -> None:
    series = new_series()
    subjects = [str(number) for number in range(200)]

    async def issue_all() -> list[Ticket]:
        items = (Ticket(subject=subject) for subject in subjects)
        return await asyncio.gather(*(aissue(item, series=series) for item in items))

    tickets = asyncio.run(issue_all())

    assert sorted(item.number for item in tickets) == list(range(1, 201))
    assert [item.subject for item in tickets] == subjects
    # 64 threads ask at the same time; alone, each task would send one.
    assert requests_sent.operations.count("TransactWriteItems") <= 100


def test_tasks_that_wait_for_a_counter_share_requests(requests_sent: Requests) -> None:
    async def draw_all() -> list[int]:
        return await asyncio.gather(*(anext_value("a") for _ in range(200)))

    assert sorted(asyncio.run(draw_all())) == list(range(1, 201))
    assert requests_sent.operations.count("UpdateItem") <= 100


def test_a_synchronous_call_does_not_wait_in_an_event_loop(proxy: FaultProxy) -> None:
    refused = threading.Event()
    under_way = threading.Event()

    def wait() -> None:
        under_way.set()
        assert refused.wait(120)

    proxy.plan("UpdateItem", Meanwhile(wait))

    async def call() -> Any:
        first = asyncio.create_task(anext_value("a"))
        await asyncio.to_thread(under_way.wait, 120)
        try:
            with pytest.raises(SynchronousOnlyOperation):
                next_value("a")
            with pytest.raises(SynchronousOnlyOperation):
                ticket(new_series())
        finally:
            refused.set()
        return await first

    assert asyncio.run(call()) == 1
