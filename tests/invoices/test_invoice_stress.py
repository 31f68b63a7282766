"""Processes that issue on one series are killed: there is never a gap or a duplicate."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynamo.transactions import read_together
from invoices.models import InvoiceItem
from invoices.store.check import check_invoices
from tests import invoice_workers
from tests.forked import Forked
from tests.invoice_factories import (
    assert_whole,
    counter_of,
    new_account,
    series,
    stored_invoices,
    sweep,
)

FULL = os.environ.get("STRESS") == "full"
ROUNDS = 20 if FULL else 1
PROCESSES = 4
THREADS = 16
REQUESTS = 500 if FULL else 80

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.stress]


@pytest.fixture(autouse=True)
def _swept(engine: str) -> Iterator[None]:
    yield
    sweep()


def read_around(account: str, near: int) -> int:
    """Read the counter and the numbers around `near` at one instant; return the last number."""
    window = range(max(1, near - 40), near + 50)
    counter, *invoices = read_together(
        [counter_of(account), *(InvoiceItem(series(account), number) for number in window)]
    )
    last = int(counter["currentValue"]["N"]) if counter else 0
    stored = [number for number, item in zip(window, invoices, strict=True) if item]
    assert stored == [number for number in window if number <= last]
    return last


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_killed_processes_leave_no_gap_and_repeated_requests_get_one_invoice(turn: int) -> None:
    account = new_account()
    names = [f"{turn}-{number}" for number in range(PROCESSES)]
    told: dict[str, int] = {}
    ended = threading.Event()

    def note(answers: dict[str, int]) -> None:
        for request_id, number in answers.items():
            assert told.setdefault(request_id, number) == number

    def start(name: str) -> Forked:
        return invoice_workers.start(account, name, threads=THREADS, count=REQUESTS)

    def kill_at_work(name: str) -> dict[str, int]:
        worker = start(name)
        assert worker.stdout is not None
        request_id, number = worker.stdout.readline().split()
        time.sleep(random.uniform(0, 0.3))
        worker.kill()
        return {request_id: int(number)} | invoice_workers.answers_of(worker)

    def watch() -> int:
        reads = near = 0
        while not ended.is_set():
            near = read_around(account, near)
            reads += 1
        return reads

    with ThreadPoolExecutor(PROCESSES + 1) as pool:
        reads = pool.submit(watch)
        try:
            for answers in pool.map(kill_at_work, names):
                note(answers)
            assert all(report.is_sound for report in check_invoices(account))
            for answers in pool.map(invoice_workers.answers_of, map(start, names)):
                note(answers)
        finally:
            ended.set()

    assert reads.result() > 4
    assert all(report.is_sound for report in check_invoices())
    assert len(told) == PROCESSES * REQUESTS
    assert_whole(account, PROCESSES * REQUESTS)
    stored = {item["requestId"]["S"]: int(item["number"]["N"]) for item in stored_invoices(account)}
    assert stored == told
