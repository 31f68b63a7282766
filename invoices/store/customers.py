"""Reading and changing the customers of an account.

An account has at most `INVOICES_MAX_CUSTOMERS`, because a list reads the whole address book.
"""

import re
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.conf import settings
from pynamodb.expressions.operand import Path

from accounts.exceptions import StaleUser
from accounts.models import account_model
from dynamo import Busy, Page, Refused, Transaction
from dynamo.client import bulk
from dynamo.client.bulk import query_pages
from dynamo.client.retries import pause_seconds
from dynamo.wire.values import text_of
from invoices.document.fields import fields_of
from invoices.document.invoice import Customer
from invoices.exceptions import AddressBookFull
from invoices.models import CustomerItem
from sequences import next_value
from sequences.models import Counter

#: The number of customers on a page.
SHOWN = 200
#: An addition is attempted this many times while others change the address book.
_ATTEMPTS = 12
#: The most customers of a deleted account in memory at once.
DELETED_TOGETHER = 1_000

# Accents of Latin, Greek and Cyrillic. The marks of other scripts make other letters.
_ACCENTS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True)
class Listed:
    """A customer as lists show it."""

    id: str
    number: str
    name: str


class _Overtaken(Exception):
    """Another customer was added in the meantime."""


def add_customer(account: str, customer: Customer, *, request_id: str) -> CustomerItem:
    """Add `customer` under the next customer number of the account.

    `request_id` makes the call repeatable: a later call with the same id returns the stored
    customer as it is now. The `number` of `customer` is not used. Costs 2 requests and 7 write
    units; a repeated call 3 requests. If the account ever had `INVOICES_MAX_CUSTOMERS`, counting
    them costs 1 request more per MB, and 1 read unit per 4 KB. Calls of an account at the same time
    cost as much again.

    Raises:
        AddressBookFull: the account has as many customers as it may.
        StaleUser: the account was deleted, and with it its address book.
        Busy: too many others were added at the same time.
    """
    counter, most = f"customers of {account}", settings.INVOICES_MAX_CUSTOMERS
    for attempt in range(_ATTEMPTS):
        number = next_value(counter)
        is_full = number > most and CustomerItem.count(account) >= most
        try:
            if is_full:
                raise AddressBookFull(most)
            values = _values_of(replace(customer, number=str(number)))
            with Transaction() as write:
                item = CustomerItem(account, request_id, **values).insert(write=write)
                # Each addition draws a number and requires that no later one is drawn. Therefore,
                # no other customer is added between the count and this write.
                is_last = Path("currentValue") == number
                write.check(Counter(counter), is_last, otherwise=_Overtaken())
                exists = account_model().pk.exists()
                gone = StaleUser(account, deleted=True)
                write.check(account_model()(account), exists, otherwise=gone)
            return item
        except (AddressBookFull, CustomerItem.AlreadyExists, Refused, _Overtaken):
            if known := CustomerItem.get_or_none(account, request_id):
                return known
            if is_full:
                raise
        time.sleep(pause_seconds(attempt))
    raise Busy("an addition to an address book")


def list_customers(
    account: str, search: str = "", *, after: str = "", limit: int = SHOWN
) -> Page[Listed]:
    """The customers whose name or number contains `search`, ordered by name.

    The comparison ignores case, width and how letters are composed. `after` is the id of the last
    customer of the page before; if that was deleted, the list begins again. Costs 1 request per MB
    of the address book, and 1 read unit per 4 KB.
    """
    wanted = folded(search)
    matching = sorted(
        (folded(item.name), item.id, item)
        for item in _all_listed(account)
        if wanted in folded(f"{item.number} {item.name}")
    )
    found = [item for _name, _id, item in matching]
    start = next((at for at, item in enumerate(found, 1) if item.id == after), 0)
    shown = found[start : start + limit]
    return Page(shown, shown[-1].id if len(found) > start + limit else None)


def customer_named(account: str, name: str) -> Listed | None:
    """The account's first customer with this name.

    Comparison and costs are those of `list_customers`.
    """
    wanted = folded(name)
    return next((item for item in _all_listed(account) if folded(item.name) == wanted), None)


def _all_listed(account: str) -> Iterator[Listed]:
    """All customers in no order, with only the attributes that lists need."""
    request = {
        "TableName": CustomerItem.table(),
        "KeyConditionExpression": "account = :account",
        "ExpressionAttributeValues": {":account": {"S": account}},
        "ExpressionAttributeNames": {"#id": "id", "#number": "number", "#name": "name"},
        "ProjectionExpression": "#id, #number, #name",
        "ConsistentRead": True,
    }
    for items, _has_more in query_pages(request):
        for item in items:
            yield Listed(*(text_of(item, name) for name in ("id", "number", "name")))


def all_customers(account: str) -> Iterator[Customer]:
    """The customers of the account, one by one. Costs 1 request per MB, 1 read unit per 4 KB."""
    return map(customer_of, CustomerItem.query(account))


def delete_address_book(account: str) -> None:
    """Delete all customers of a deleted account.

    Costs 1 request per MB, and 1 request and 25 write units per 25 customers.
    """
    # Only their keys are read, which are never damaged.
    found = CustomerItem.query(account, attributes_to_get=["id"])
    while ids := [item.id for item in islice(found, DELETED_TOGETHER)]:
        keys = [{"account": {"S": account}, "id": {"S": id_}} for id_ in ids]
        bulk.write_batches(CustomerItem.table(), [{"DeleteRequest": {"Key": key}} for key in keys])


def customer_of(item: CustomerItem) -> Customer:
    """The customer's details on an invoice."""
    return Customer(
        **{entry.name: getattr(item, entry.name) or "" for entry in fields_of(Customer)}
    )


def _values_of(customer: Customer) -> dict[str, Any]:
    """The attributes of `customer`; None for an empty one."""
    return {item.name: getattr(customer, item.name) or None for item in fields_of(Customer)}


def folded(text: str) -> str:
    """A text that is equal for similar searches: `Café` and `CAFE`, `ｶﾞ` and `ガ`."""
    apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", apart))
