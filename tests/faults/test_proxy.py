"""The faults that only torture uses, in front of a real engine."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynamo import ConditionFailed, Unavailable
from dynamo.client.sending import send
from dynamo.tables import definitions as tables
from invoices.store.lists import all_invoices
from tests import engines
from tests.faults.kinds import Duplicate, Meanwhile, Torn, Truncate
from tests.faults.proxy import FaultProxy, through
from tests.faults.random_faults import Kind, RandomFaults
from tests.faults.random_proxy import RandomFaultProxy
from tests.invoice_factories import DAY, issued, new_account
from tests.waiting import wait_until

KEY = {"counterName": {"S": "a"}}
PUT = {
    "TableName": "counters",
    "Item": KEY | {"currentValue": {"N": "1"}},
    "ConditionExpression": "attribute_not_exists(counterName)",
}
ADD = {
    "TableName": "counters",
    "Key": KEY,
    "UpdateExpression": "ADD currentValue :one",
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}


def stored_count() -> int:
    item = send("GetItem", {"TableName": "counters", "Key": KEY}).get("Item")
    return int(item["currentValue"]["N"]) if item else 0


def test_a_duplicate_is_carried_out_twice_and_answered_once(proxy: FaultProxy) -> None:
    proxy.plan("UpdateItem", Duplicate())

    send("UpdateItem", ADD)

    wait_until(lambda: stored_count() == 2)
    assert proxy.count("UpdateItem") == 1


def test_a_duplicate_that_was_refused_gets_the_last_answer(proxy: FaultProxy) -> None:
    send("PutItem", PUT)
    proxy.plan("PutItem", Duplicate())

    with pytest.raises(ConditionFailed) as refused:
        send("PutItem", PUT)

    assert not refused.value.repeated
    assert proxy.count("PutItem") == 2


def test_half_a_reply_is_a_lost_reply(proxy: FaultProxy) -> None:
    proxy.plan("PutItem", Truncate())

    with pytest.raises(ConditionFailed) as refused:
        send("PutItem", PUT)

    assert refused.value.repeated
    assert proxy.count("PutItem") == 2


def test_a_torn_query_reads_before_and_after_the_next_transaction(proxy: FaultProxy) -> None:
    account = new_account()
    issued(account)
    proxy.plan("Query", Torn(60))

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(lambda: list(all_invoices(account, DAY.year)))
        wait_until(lambda: proxy.count("Query") == 1)
        # It ends after the next transaction, which may be the second of these.
        while not looking.done():
            issued(account)

    numbers = {invoice.number for invoice in looking.result()}
    assert 1 in numbers


@pytest.fixture
def durable(engine: str, tmp_path: Path) -> Iterator[engines.Durable]:
    started = engines.Durable(tmp_path)
    try:
        with through(started.url):
            for table in tables.all_tables():
                tables.create(table)
        yield started
    finally:
        started.kill()


def test_a_request_from_before_the_engine_was_killed_never_reaches_the_next_one(
    durable: engines.Durable,
) -> None:
    is_restarted = threading.Event()
    faults = RandomFaults(0, (Kind("late", 1000, lambda *_: Meanwhile(is_restarted.wait)),))
    faults._rates = (0, {"late": 1000})
    with RandomFaultProxy(durable.url, faults) as proxy, through(proxy):
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(send, "PutItem", PUT, repeatable=False)
            wait_until(lambda: faults.requests == 1)
            faults.clear()
            proxy.drop_what_arrived()
            durable.restart()
            is_restarted.set()
            with pytest.raises(Unavailable) as error:
                late.result()
        assert error.value.maybe_written
        assert stored_count() == 0
