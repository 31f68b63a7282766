"""Asynchronous calls, and synchronous ones in an event loop, which are refused."""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import pytest
from django.core.cache import cache
from django.core.exceptions import SynchronousOnlyOperation

from dynamo import Unavailable, collect
from dynamo.runtime.deadline import page_deadline
from dynamo.sessions import SessionStore
from tests.dynamo.desk.models import Customer
from tests.faults.kinds import Meanwhile
from tests.faults.proxy import FaultProxy
from tests.tasks import cancel_during
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("engine")


def test_every_call_of_a_model_has_an_asynchronous_form() -> None:
    async def life() -> None:
        ann = await Customer.acreate(club="chess", email="ann@example.org")
        with pytest.raises(Customer.Taken):
            await Customer.acreate(club="chess", email="ann@example.org")
        await ann.achange(add={"visits": 1}, club="go")
        assert (await Customer.aget(ann.pk)).visits == 1
        ann.email = "ann@example.net"
        await ann.asave()
        assert await Customer.afind(email="ann@example.net") == ann
        assert await Customer.aget_or_none("nobody") is None
        assert await Customer.aget_or_none(ann.pk) == ann
        found = await Customer.aget_or_create({"club": "chess"}, email="ann@example.net")
        assert found == (ann, False)
        other = await Customer.aupdate_or_create({"card": "A"}, email="ann@example.net")
        assert other == (ann, False)
        await ann.arefresh()
        assert ann.card == "A"
        await Customer.aupdate_or_create({"card": "B"}, email="ann@example.net")
        await ann.arefresh_from_db()
        assert ann.card == "B"
        new = [Customer(club="chess", email=f"{name}@example.org") for name in ("bob", "eve")]
        assert (await Customer.acreate_many(new)).stored == 2
        assert (await Customer.apage(ann.pk)).items == [ann]
        assert (await Customer.by_club.apage("go", limit=1)).items == [ann]
        await ann.adelete()
        with pytest.raises(Customer.DoesNotExist):
            await Customer.aget(ann.pk)

    asyncio.run(life())


def test_calls_of_many_tasks_run_at_the_same_time(proxy: FaultProxy) -> None:
    together = threading.Barrier(16, timeout=120)
    proxy.plan("TransactWriteItems", Meanwhile(together.wait), times=16)

    async def create_all() -> None:
        await asyncio.gather(
            *(Customer.acreate(club="chess", email=f"{n}@example.org") for n in range(16))
        )

    asyncio.run(create_all())

    assert len(list(Customer.scan())) == 16


def test_calls_count_on_the_tally_of_their_task_and_keep_its_deadline() -> None:
    async def create(number: int, seconds: float) -> int:
        with collect() as tally, page_deadline(seconds):
            await Customer.acreate(club="chess", email=f"{number}@example.org")
        return tally.requests

    async def create_all() -> Any:
        tasks = (create(number, seconds) for number, seconds in enumerate([100, 100, -1]))
        return await asyncio.gather(*tasks, return_exceptions=True)

    *counted, late = asyncio.run(create_all())

    assert counted == [1, 1]
    assert isinstance(late, Unavailable)


def test_a_call_whose_task_is_cancelled_is_completed(proxy: FaultProxy) -> None:
    creating = Customer.acreate(club="chess", email="ann@example.org")

    asyncio.run(cancel_during(proxy, "TransactWriteItems", creating))

    wait_until(lambda: Customer.is_taken(email="ann@example.org"))
    assert Customer.find(email="ann@example.org")


@pytest.mark.parametrize(
    "call",
    [
        lambda: Customer.create(club="chess", email="bob@example.org"),
        lambda: Customer.get("1"),
        lambda: list(Customer.scan()),
        lambda: cache.set("a", 1),
        lambda: SessionStore("s" * 32).get("a"),
    ],
)
def test_a_synchronous_call_in_an_event_loop_is_refused_unless_the_environment_allows_it(
    call: Any, requests_sent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def make() -> object:
        return call()

    with pytest.raises(SynchronousOnlyOperation, match="acreate"):
        asyncio.run(make())
    assert requests_sent.operations == []

    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    with suppress(Customer.DoesNotExist):
        asyncio.run(make())
    assert len(requests_sent.operations) == 1
