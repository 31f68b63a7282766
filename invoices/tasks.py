"""Tasks of invoices."""

from invoices.store import customers
from outbox import task


@task
def delete_address_book(account: str) -> None:
    """Delete the customers of a deleted account. It may be repeated."""
    customers.delete_address_book(account)
