"""Asynchronous calls, and synchronous ones in an event loop, which are refused."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from django.core.cache import cache
from django.core.exceptions import SynchronousOnlyOperation

from dynamo._internal.client.deadline import page
from dynamo._internal.tally import counting
from dynamo.attributes import IntegerAttribute, TextAttribute
from dynamo.exceptions import Unavailable
from dynamo.models import Model
from dynamo.pages import GlobalSecondaryIndex
from dynamo.sessions import SessionStore
from dynamo.unique import Unique
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


class Guest(Model):
    class ByCity(GlobalSecondaryIndex["Guest"]):
        city = TextAttribute(hash_key=True)

    class Meta:
        table_name = "tests-guests"

    email = TextAttribute()
    city = TextAttribute(default="Rome")
    visits = IntegerAttribute(default=0)
    unique_email = Unique("email")
    by_city = ByCity()


def test_every_call_of_a_model_has_an_asynchronous_form() -> None:
    async def life() -> None:
        ann = await Guest.acreate(email="ann@example.org", request_id="1")
        assert await Guest.acreate(email="ann@example.org", request_id="1") == ann
        with pytest.raises(Guest.Taken):
            await Guest.acreate(email="ann@example.org")
        await ann.achange(add={"visits": 1}, city="Kyoto")
        assert (await Guest.aget(ann.pk)).visits == 1
        ann.email = "ann@example.net"
        await ann.asave()
        assert await Guest.afind(email="ann@example.net") == ann
        assert (await Guest.apage(ann.pk)).items == [ann]
        assert (await Guest.by_city.apage("Kyoto", limit=1)).items == [ann]
        await ann.adelete()
        with pytest.raises(Guest.DoesNotExist):
            await Guest.aget(ann.pk)

    asyncio.run(life())


def test_calls_of_many_tasks_run_at_the_same_time(proxy: FaultProxy) -> None:
    together = threading.Barrier(16, timeout=120)
    proxy.plan("TransactWriteItems", Meanwhile(together.wait), times=16)

    async def create_all() -> None:
        await asyncio.gather(*(Guest.acreate(email=f"{n}@example.org") for n in range(16)))

    asyncio.run(create_all())

    assert len(list(Guest.scan())) == 16


def test_calls_count_on_the_tally_of_their_task_and_keep_its_deadline() -> None:
    async def create(number: int, seconds: float) -> int:
        with counting() as tally, page(seconds):
            await Guest.acreate(email=f"{number}@example.org")
        return tally.requests

    async def create_all() -> Any:
        tasks = (create(number, seconds) for number, seconds in enumerate([100, 100, -1]))
        return await asyncio.gather(*tasks, return_exceptions=True)

    *counted, late = asyncio.run(create_all())

    assert counted == [1, 1]
    assert isinstance(late, Unavailable)


def test_a_call_whose_task_is_cancelled_is_completed(proxy: FaultProxy) -> None:
    cancelled = threading.Event()

    async def cancel() -> None:
        task = asyncio.create_task(Guest.acreate(email="ann@example.org"))
        loop = asyncio.get_running_loop()

        def meanwhile() -> None:
            loop.call_soon_threadsafe(task.cancel)
            assert cancelled.wait(120)

        proxy.plan("TransactWriteItems", Meanwhile(meanwhile))
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()

    asyncio.run(cancel())

    wait_until(lambda: Guest.is_taken(email="ann@example.org"))
    assert Guest.find(email="ann@example.org")


SYNCHRONOUS = {
    "create": lambda: Guest.create(email="bob@example.org"),
    "get": lambda: Guest.get("1"),
    "scan": lambda: list(Guest.scan()),
    "cache": lambda: cache.set("a", 1),
    "session": lambda: SessionStore("s" * 32).get("a"),
}


@pytest.mark.parametrize("call", SYNCHRONOUS.values(), ids=SYNCHRONOUS)
def test_a_synchronous_call_in_an_event_loop_is_refused_unless_the_environment_allows_it(
    call: Any, requests_sent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def make() -> object:
        return call()

    with pytest.raises(SynchronousOnlyOperation, match="acreate"):
        asyncio.run(make())
    assert requests_sent.operations == []

    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with suppress(Guest.DoesNotExist):
        asyncio.run(make())
    assert len(requests_sent.operations) == 1
