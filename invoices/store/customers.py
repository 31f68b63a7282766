"""Reading and changing the customers of an account."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from dynamo import Transaction, ensure
from dynamo.extending import bulk
from invoices.document.fields import fields_of
from invoices.document.invoice import Customer
from invoices.models import CustomerItem
from sequences import next_value
from web.kinds import folded

#: A list reads at most so many customers: more than the 5 MB of a page.
MOST_READ = 100_000
#: How many customers a page shows.
SHOWN = 200
#: How many customers of a deleted account are in memory.
DELETED_TOGETHER = 1_000


@dataclass(frozen=True)
class Found:
    """Customers in the order of their names. `has_more`: others match, too."""

    customers: list[CustomerItem]
    has_more: bool


def add_customer(account: str, customer: Customer, *, request_id: str) -> CustomerItem:
    """Add `customer` under the next customer number of the account.

    `request_id` makes the call repeatable: a later call with the same id returns the stored
    customer, as it is by then. Its `number` is not used. Costs 2 requests and 2 write units; a
    repeated call 3 requests.
    """
    number = str(next_value(f"customers of {account}"))
    values = _values_of(replace(customer, number=number))
    try:
        return CustomerItem(account, request_id, **values).insert()
    except CustomerItem.AlreadyExists:
        return CustomerItem.get(account, request_id)


def change_customer(
    item: CustomerItem, customer: Customer, *, write: Transaction | None = None
) -> None:
    """Give the stored customer other values; it keeps its number. Costs 1 request, 1 write unit.

    Alone, it may be repeated with the same copy and the same values.

    Raises:
        CustomerItem.Stale: it was changed or deleted since `item` was read.
    """
    ensure(item, write=write, **_values_of(replace(customer, number=item.number)))


def list_customers(account: str, search: str = "", *, limit: int = SHOWN) -> Found:
    """The customers whose name or number contains `search`, ordered by name.

    The comparison ignores case, width and how letters are composed. Costs 1 request per MB of the
    address book, at most 5 as each `Model.page`, and 1 read unit per 4 KB.
    """
    wanted = folded(search)
    page = CustomerItem.page(account, limit=MOST_READ)
    matching = [each for each in page if wanted in folded(f"{each.number} {each.name}")]
    matching.sort(key=lambda each: (folded(each.name), each.id))
    return Found(matching[:limit], page.next is not None or len(matching) > limit)


def customer_named(account: str, name: str) -> CustomerItem | None:
    """The account's first customer with this name, compared and at the cost as by a search."""
    found = list_customers(account, name).customers
    return next((each for each in found if folded(each.name) == folded(name)), None)


def all_customers(account: str) -> Iterator[Customer]:
    """The customers of the account, one by one. Costs 1 request per MB, 1 read unit per 4 KB."""
    return map(customer_of, CustomerItem.query(account))


def delete_address_book(account: str) -> None:
    """Delete all customers of a deleted account.

    Costs 1 request per MB, and 1 request and 25 write units per 25 customers. The command
    `clearcustomers` finishes what an ended process has left.
    """
    # Their keys alone, which are never damaged.
    found = CustomerItem.query(account, attributes_to_get=["id"])
    while ids := [each.id for each in islice(found, DELETED_TOGETHER)]:
        keys = [{"account": {"S": account}, "id": {"S": id_}} for id_ in ids]
        bulk.write_batches(CustomerItem.table(), [{"DeleteRequest": {"Key": key}} for key in keys])


def customer_of(item: CustomerItem) -> Customer:
    """What an invoice says about the customer."""
    return Customer(**{each.name: getattr(item, each.name) or "" for each in fields_of(Customer)})


def _values_of(customer: Customer) -> dict[str, Any]:
    """The attributes of `customer`; None for an empty one."""
    return {each.name: getattr(customer, each.name) or None for each in fields_of(Customer)}
