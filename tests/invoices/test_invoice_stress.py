"""Processes that issue invoices are killed at random moments, and nothing is missing or twice."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from invoices.records import check_invoices
from tests import invoice_workers
from tests.forked import Forked
from tests.invoice_factories import assert_whole, new_account, stored_invoices, sweep

FULL = os.environ.get("STRESS") == "full"
ROUNDS = 20 if FULL else 1
PROCESSES = 4
REQUESTS = 150 if FULL else 60

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.stress]


@pytest.fixture(autouse=True)
def _swept(engine: str) -> Iterator[None]:
    yield
    sweep()


@pytest.mark.parametrize("turn", range(ROUNDS))
def test_killed_processes_leave_no_gap_and_repeated_requests_get_one_invoice(turn: int) -> None:
    account = new_account()
    names = [f"{turn}-{number}" for number in range(PROCESSES)]
    told: dict[str, int] = {}

    def note(worker: Forked) -> None:
        for request_id, number in invoice_workers.answers_of(worker).items():
            assert told.setdefault(request_id, number) == number

    def start(name: str) -> Forked:
        return invoice_workers.start(account, name, threads=8, count=REQUESTS)

    def kill_amid_its_work(name: str) -> Forked:
        worker = start(name)
        assert worker.stdout is not None
        first = worker.stdout.readline()
        time.sleep(random.uniform(0, 0.3))
        worker.kill()
        request_id, number = first.split()
        assert told.setdefault(request_id, int(number)) == int(number)
        return worker

    with ThreadPoolExecutor(PROCESSES) as pool:
        for worker in pool.map(kill_amid_its_work, names):
            note(worker)
        assert [report.series for report in check_invoices(account) if not report.is_sound] == []
        for worker in pool.map(start, names):
            note(worker)

    assert [report.series for report in check_invoices() if not report.is_sound] == []
    assert len(told) == PROCESSES * REQUESTS
    assert_whole(account, PROCESSES * REQUESTS)
    stored = {item["requestId"]["S"]: int(item["number"]["N"]) for item in stored_invoices(account)}
    assert stored == told
