"""Many threads in several processes issue on one series; whoever looks never sees a gap."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynamo.transactions import read_together
from invoices.models import InvoiceItem
from invoices.records import check_invoices
from tests import invoice_workers
from tests.invoice_factories import (
    assert_whole,
    counter_of,
    issued,
    new_account,
    series,
    stored_invoices,
    sweep,
)

PROCESSES = 4
THREADS = 16
INVOICES = 2_000 if os.environ.get("STRESS") == "full" else 400

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.stress]


@pytest.fixture(autouse=True)
def _swept(engine: str) -> Iterator[None]:
    yield
    sweep()


def look(account: str, near: int) -> int:
    """See the counter and the numbers around `near` at one instant; how far the counter is."""
    window = range(max(1, near - 40), near + 50)
    counter, *invoices = read_together(
        [counter_of(account), *(InvoiceItem(series(account), number) for number in window)]
    )
    last = int(counter["currentValue"]["N"]) if counter else 0
    seen = [number for number, item in zip(window, invoices, strict=True) if item]
    assert seen == [number for number in window if number <= last]
    return last


def test_sixteen_threads_in_each_of_four_processes_leave_no_gap_at_any_moment() -> None:
    account = new_account()
    workers = [
        invoice_workers.start(account, name, threads=THREADS, count=INVOICES // PROCESSES)
        for name in "abcd"
    ]
    ended = threading.Event()

    def watch(_reader: int) -> int:
        looks = near = 0
        while not ended.is_set():
            near = look(account, near)
            looks += 1
        return looks

    with ThreadPoolExecutor(PROCESSES + 2) as pool:
        watching = [pool.submit(watch, reader) for reader in range(2)]
        try:
            answers = list(pool.map(invoice_workers.answers_of, workers))
        finally:
            ended.set()
            for worker in workers:
                worker.kill()
        looks = sum(each.result() for each in watching)

    assert looks > 4
    numbers = sorted(number for each in answers for number in each.values())
    assert numbers == list(range(1, INVOICES + 1))
    assert_whole(account, INVOICES)
    assert look(account, INVOICES) == INVOICES
    # Each request has the invoice that it was told of.
    answered = {request: number for each in answers for request, number in each.items()}
    for item in stored_invoices(account):
        assert answered[item["requestId"]["S"]] == int(item["number"]["N"])
    assert all(report.is_sound for report in check_invoices(account))


def test_the_same_requests_from_two_processes_are_one_invoice_each() -> None:
    account = new_account()
    workers = [invoice_workers.start(account, "same", threads=8, count=60) for _ in range(2)]

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(invoice_workers.answers_of, workers)

    assert one == other
    assert sorted(one.values()) == list(range(1, 61))
    assert_whole(account, 60)
    assert issued(account).number == 61
