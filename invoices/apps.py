from __future__ import annotations

from django.apps import AppConfig


class InvoicesConfig(AppConfig):
    name = "invoices"

    def ready(self) -> None:
        from accounts.signals import account_deleted
        from invoices.customers.book import delete_address_book

        account_deleted.connect(delete_address_book, dispatch_uid="invoices.customers")
