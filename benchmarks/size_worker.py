"""The jobs of `benchmarks.size` inside the site: `python -m benchmarks.size_worker JOB`

hash      prints the hash of the password that all users have
invoices  stores one invoice per user in batches, each as issuing would store it
pages     opens pages as a visitor does, and prints the requests of each as JSON
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

import django

django.setup()

from django.contrib.auth.hashers import make_password
from django.test import Client

from accounts.models import User
from benchmarks.size import PASSWORD
from benchmarks.worker import Cost
from dynamo.client import bulk
from dynamo.client.bulk import write_batches
from dynamo.signals import request_sent
from dynamo.wire.types import Item
from invoices.document.amounts import Line
from invoices.document.invoice import Customer, Draft, Invoice, Seller, draw_up
from invoices.models import InvoiceItem
from invoices.store.records import to_item
from sequences.models import Counter

DRAFT = Draft(
    Customer("A customer", "1 Road\nTown"),
    (Line("Work", Decimal(8), Decimal("95.50"), Decimal(19)),),
    "EUR",
)
SELLER = Seller("A seller", "2 Street\nCity", "GB123456789")
DAY = date(2026, 1, 2)
#: Users whose items are written together: a few batches.
TOGETHER = 100


def give_invoices() -> None:
    """Store one invoice for each user, with its guard and its counter."""
    with ThreadPoolExecutor(4) as pool:
        for page in bulk.pages(User.table(), ["pk"]):
            accounts = [item["pk"]["S"] for item in page if "#" not in item["pk"]["S"]]
            chunks = [accounts[at : at + TOGETHER] for at in range(0, len(accounts), TOGETHER)]
            list(pool.map(_give_invoices, chunks))


def _give_invoices(accounts: list[str]) -> None:
    invoices = [_first_invoice(account) for account in accounts]
    items = [item for invoice in invoices for item in (to_item(invoice), _guard(invoice))]
    write_batches(InvoiceItem.table(), [{"PutRequest": {"Item": item}} for item in items])
    counters = [_counter(invoice) for invoice in invoices]
    write_batches(Counter.table(), [{"PutRequest": {"Item": item}} for item in counters])


def _first_invoice(account: str) -> Invoice:
    drawn = draw_up(DRAFT, account, SELLER, DAY, f"of {account}")
    return Invoice(**{**vars(drawn), "number": 1})


def _counter(invoice: Invoice) -> Item:
    return {
        "counterName": {"S": InvoiceItem.counter_of(invoice.series).name},
        "currentValue": {"N": "1"},
        "lastDate": {"S": invoice.issued_at.isoformat()},
    }


def _guard(invoice: Invoice) -> Item:
    return {
        "series": {"S": InvoiceItem.guard_key(invoice.series, invoice.request_id)},
        "number": {"N": "0"},
        "owner": {"S": f"{invoice.series}#{invoice.number}"},
        "digest": {"S": "none"},
    }


class _Fields(HTMLParser):
    """The hidden fields of a page, which a form sends as well."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "input" and values.get("type") == "hidden" and "name" in values:
            self.values[values["name"]] = values.get("value", "")


def open_pages() -> dict[str, list[float]]:
    """Requests and units of each page, for one of all users."""
    cost = Cost()
    request_sent.connect(cost.note)
    visitor = Client(SERVER_NAME="localhost")
    costs: dict[str, list[float]] = {}

    def ask(name: str, act: Callable[[], Any], status: int) -> None:
        cost.forget()
        answer = act()
        if answer.status_code != status:
            raise SystemExit(f"{name}: {answer.status_code}")
        costs[name] = [cost.requests, cost.units]

    def typed(url: str, **values: str) -> Callable[[], Any]:
        hidden = _Fields(visitor.get(url).content.decode()).values
        return lambda: visitor.post(url, hidden | values)

    ask("home, signed out", lambda: visitor.get("/"), 200)
    typed_in = {"username": "newcomer", "email": "newcomer@example.com"}
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    ask("sign up", typed("/accounts/signup/", **typed_in, **passwords), 302)
    visitor = Client(SERVER_NAME="localhost")
    known = {"username": "user000500@example.com", "password": PASSWORD}
    ask("sign in, by email address", typed("/accounts/login/", **known), 302)
    ask("profile", lambda: visitor.get("/accounts/profile/"), 200)
    renamed = typed("/accounts/username/", username="renamed", password=PASSWORD)
    ask("change the username", renamed, 302)
    taken = typed("/accounts/username/", username="user000501", password=PASSWORD)
    ask("change it to a taken one", taken, 200)
    ask("invoices", lambda: visitor.get("/invoices/"), 200)
    ask("one invoice", lambda: visitor.get("/invoices/2026-000001/"), 200)
    return costs


JOBS: dict[str, Callable[[], object]] = {
    "hash": lambda: make_password(PASSWORD),
    "invoices": give_invoices,
    "pages": lambda: json.dumps(open_pages()),
}


if __name__ == "__main__":
    print(JOBS[sys.argv[1]]() or "done")
