"""`clearcustomers`: deletes the address books of accounts that do not exist any more."""

from accounts.models import account_model
from dynamo.client import bulk
from dynamo.management.base import DynamoCommand
from invoices.models import CustomerItem
from invoices.store.customers import delete_address_book


class Command(DynamoCommand):
    help = (
        "Delete the address books of deleted accounts: of those whose process ended between the "
        "deletion of the account and that of its customers. Reads the whole table `customers`."
    )

    def handle(self, *args: object, **options: object) -> None:
        accounts = {
            item["account"]["S"]
            for items in bulk.pages(CustomerItem.table(), ("account",))
            for item in items
        }
        keys = [{"pk": {"S": account}} for account in sorted(accounts)]
        existing = {item["pk"]["S"] for item in bulk.read_batches(account_model().table(), keys)}
        for account in sorted(accounts - existing):
            delete_address_book(account)
            self.stdout.write(account)
