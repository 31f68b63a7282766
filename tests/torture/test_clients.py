"""The clients of torture without faults, one call after the other: random operations on a model."""

import random
import threading
import time
from pathlib import Path

from tests.torture import history, result
from tests.torture.checkers import accounts, copies, invoices
from tests.torture.clients.accounts import AccountClient
from tests.torture.clients.client import Plan
from tests.torture.clients.copies import CopyClient
from tests.torture.clients.inspector import wrong_guards, wrong_series
from tests.torture.clients.invoices import InvoiceClient
from tests.torture.clients.numbers import NumberClient, Plate
from tests.torture.history import Journal

STEPS = 60


def test_random_calls_end_as_the_checkers_of_torture_allow(engine: str, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "clients.jsonl")
    plan = Plan(tmp_path, "", 0, [])
    clients = [
        make(journal, random.Random(seed), plan, threading.Event())
        for seed, make in enumerate(
            [AccountClient, AccountClient, InvoiceClient, CopyClient, CopyClient, NumberClient], 1
        )
    ]
    for _step in range(STEPS):
        for client in clients:
            client.step()

    calls = history.read(tmp_path, {}, time.monotonic())
    assert accounts.check(calls, result.stored_accounts()) == []
    assert invoices.check(calls, result.stored_invoices()) == []
    assert copies.check(calls, result.sold_seats()) == []
    assert (wrong_guards(), wrong_series()) == ([], [])
    numbers = [plate.number for plate in Plate.scan()]
    assert len(numbers) == len({*numbers})
    ends = {(call.do, call.outcome) for call in calls}
    some = ("register", "change", "find", "make", "look up", "renumber")
    assert ends >= {(do, outcome) for do in some for outcome in ("ok", "refused")}
    others = ("edit", "other", "delete", "issue", "void", "read", "sell", "claim", "take")
    assert ends >= {(do, "ok") for do in others}
