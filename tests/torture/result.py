"""Checks the history of a run and what is stored in the end."""

import time
from collections import defaultdict
from typing import Any

from accounts.models import User
from dynamo.client import bulk
from dynamo.wire.values import text_of
from invoices.models import InvoiceItem
from outbox.models import TaskItem
from outbox.worker import Worker, stored_tasks
from tests.torture import history
from tests.torture.checkers import accounts, copies, invoices, locks, tasks
from tests.torture.checkers.accounts import Account
from tests.torture.checkers.invoices import Stored
from tests.torture.clients.copies import Seats
from tests.torture.clients.inspector import wrong_guards, wrong_series
from tests.torture.clients.tasks import LEASE_SECONDS, ORPHAN, Order, charge
from tests.torture.findings import Finding, of_calls
from tests.torture.history import Call
from tests.torture.resource import Resource
from tests.torture.run import Run

#: How often the tasks that are left are run, a second apart: they wait for a second at most.
MOST_ROUNDS = 60

_USER = ("pk", "userName", "email", "version", "fullName")
_INVOICE = ("series", "number", "requestId", "customerName", "voidReason", "owner")


def check(run: Run) -> tuple[list[Call], list[Finding]]:
    """The calls of a run that has ended, and what is wrong."""
    folder = run.folder
    end_tasks()
    over = time.monotonic()
    calls = history.read(folder / "histories", run.ends, over)
    findings = [
        *(
            of_calls("crash", crash, [call])
            for call in calls
            if (crash := call.answer.get("crashed"))
        ),
        *accounts.check(calls, stored_accounts(), engine_kills=run.engine_kills),
        *copies.check(calls, sold_seats()),
        *tasks.check(calls, charged_orders(), orphans()),
        *invoices.check(calls, stored_invoices()),
        *locks.check(
            calls, {file.name: Resource(file).served() for file in folder.glob("resources/*")}
        ),
        *_by_the_sites_own_checks(calls),
    ]
    return calls, findings


def _by_the_sites_own_checks(calls: list[Call]) -> list[Finding]:
    """What they report in the end, and what they reported meanwhile."""
    found = {"checkguards": wrong_guards(), "checkinvoices": wrong_series()}
    false = "a check of the site reported damage that is not there"
    return [
        *(Finding(name, item) for name, wrong in found.items() for item in wrong),
        *(of_calls("inspection", false, [call]) for call in calls if call.answer.get("wrong")),
    ]


def stored_accounts() -> dict[str, Account]:
    """Every account, by its key."""
    return {
        item["pk"]["S"]: Account(
            text_of(item, "userName"),
            text_of(item, "email"),
            int(item["version"]["N"]),
            text_of(item, "fullName"),
        )
        for item in _items(User.table(), _USER)
        if "#" not in item["pk"]["S"]
    }


def end_tasks() -> None:
    """Run the tasks that the killed workers left."""
    for _round in range(MOST_ROUNDS):
        Worker(threads=4, lease_seconds=LEASE_SECONDS).run(once=True)
        left = [item for item in stored_tasks() if item.function == charge.module_path]
        if not left:
            return
        time.sleep(1)
    raise AssertionError(f"{len(left)} tasks do not end, such as {left[0].id}")


def charged_orders() -> dict[str, int]:
    """How often each order was charged, by key."""
    return {order.pk: order.charged for order in Order.scan()}


def orphans() -> list[str]:
    """The tasks that found no order."""
    return [item.id for item in TaskItem.scan() if item.return_value == ORPHAN]


def sold_seats() -> dict[str, int]:
    """How many seats are sold, by key."""
    return {seats.pk: seats.sold for seats in Seats.scan()}


def stored_invoices() -> dict[str, dict[int, Stored]]:
    """The invoices of every account, by their numbers."""
    found: dict[str, dict[int, Stored]] = defaultdict(dict)
    for item in _items(InvoiceItem.table(), _INVOICE):
        if "owner" not in item:
            account = item["series"]["S"].rpartition("#")[0]
            texts = (text_of(item, name) for name in ("requestId", "customerName", "voidReason"))
            found[account][int(item["number"]["N"])] = Stored(*texts)
    return found


def _items(table: str, attributes: tuple[str, ...]) -> list[dict[str, Any]]:
    return [item for page in bulk.pages(table, attributes) for item in page]
