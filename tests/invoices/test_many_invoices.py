"""A series of 1,000 invoices, which no page reads as a whole: each stays within its budget."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from accounts.models import User
from dynamo._internal import bulk
from dynamo._internal.items import Item, PlainModel
from invoices.models import InvoiceItem, InvoiceState
from invoices.store.lists import MAX_REQUESTS
from tests.invoice_factories import issued, put_counter, stored_invoices
from tests.invoices.forms import TODAY
from tests.pages import arrive
from tests.requests import Requests

pytestmark = pytest.mark.fault_of("moto", "takes long for so many items")

MANY = 1_000


@pytest.fixture
def many(held_day: None, ann: User, client: Client) -> None:
    """Ann has so many invoices: those with an even number are paid, the others overdue."""
    arrive(client, ann)
    issued(ann.pk, day=TODAY - timedelta(days=30), due_date=TODAY - timedelta(days=9))
    [first] = stored_invoices(ann.pk)
    write(InvoiceItem, [first | {"number": {"N": str(number)}} for number in range(2, MANY + 1)])
    paid: Item = {"series": first["series"], "paidOn": {"S": str(TODAY)}}
    write(InvoiceState, [paid | {"number": {"N": str(each)}} for each in range(2, MANY + 1, 2)])
    put_counter(ann.pk, MANY, TODAY - timedelta(days=30))


def write(model: type[PlainModel], items: list[Item]) -> None:
    bulk.write_batches(model.table(), [{"PutRequest": {"Item": item}} for item in items])


PAGES_OF_LIST = {
    "": range(MANY, MANY - 50, -1),
    "before=2": [1],
    "state=paid": range(MANY, MANY - 100, -2),
    "state=overdue": range(MANY - 1, MANY - 101, -2),
    "state=open&before=120": range(119, 19, -2),
    "state=credited": [],
    "state=voided&customer=bob": [],
    "customer=nobody": [],
}


def test_no_page_reads_more_than_its_budget(
    client: Client, many: None, requests_sent: Requests
) -> None:
    for query, numbers in PAGES_OF_LIST.items():
        requests_sent.clear()

        page = client.get(f"/invoices/?{query}").content.decode()

        found = re.findall(r'href="/invoices/2026-(\d{6})/"', page)
        assert [int(number) for number in found] == list(numbers), query
        # Invoices of 0.4 KB, at 4 KB a unit; a search reads 800 of them, and their states.
        is_search = "state" in query or "customer" in query
        requests, units = (MAX_REQUESTS, 130) if is_search else (2, 12)
        assert set(requests_sent.operations[1:]) == {"Query"}
        assert len(requests_sent.operations[1:]) <= requests, query
        assert requests_sent.units < units, query

    label = f"2026-{MANY - 1:06}"
    page_of = f"/invoices/{label}/"
    pages = [page_of, f"/invoices/{label}.pdf", f"{page_of}credit/", f"{page_of}paid/"]
    for url, requests in {"/": 2, **dict.fromkeys(pages, 1)}.items():
        requests_sent.clear()
        assert client.get(url).status_code == 200
        assert len(requests_sent.operations) == 1 + requests, url

    requests_sent.clear()
    note = client.post(f"{page_of}credit/", {"reason": "Returned"})["Location"]
    assert note == f"/invoices/2026-{MANY + 1:06}/"
    # The invoice lies beyond the end that the process remembers, so it reads the counter first.
    of_credit = ["TransactGetItems", "GetItem", "TransactWriteItems"]
    assert requests_sent.operations[1:] == of_credit
