from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from dynamo import Transaction


class InvoicesConfig(AppConfig):
    name = "invoices"
    verbose_name = _("Invoices")

    def ready(self) -> None:
        from accounts.signals import account_deleted, account_deleting

        account_deleting.connect(_delete_seller)
        account_deleted.connect(_delete_address_book)


# Imported with the first deletion, so that commands and servers start without them.


def _delete_seller(account: str, write: "Transaction", **_signal: object) -> None:
    from invoices.store.sellers import delete_seller

    delete_seller(account, write=write)


def _delete_address_book(account: str, **_signal: object) -> None:
    from invoices.store.customers import delete_address_book

    delete_address_book(account)
