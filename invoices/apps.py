from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from dynamo import Transaction


class InvoicesConfig(AppConfig):
    name = "invoices"
    verbose_name = _("Invoices")

    def ready(self) -> None:
        from accounts.signals import account_deleting

        account_deleting.connect(_delete_account)


def _delete_account(account: str, write: "Transaction", **_signal: object) -> None:
    """Delete what belongs to the account. An address book may not fit into a transaction."""
    # These are imported by the first deletion, so that commands and servers start without them.
    from invoices.store.sellers import delete_seller
    from invoices.tasks import delete_address_book

    delete_seller(account, write=write)
    delete_address_book.using(write=write).enqueue(account)
