from __future__ import annotations

from typing import Any

from django.apps import AppConfig

from accounts.signals import account_deleted


class InvoicesConfig(AppConfig):
    name = "invoices"

    def ready(self) -> None:
        account_deleted.connect(_delete_address_book)


def _delete_address_book(*, pk: str, **_signal: Any) -> None:
    from invoices.customers.book import delete_address_book  # models load after the app registry

    delete_address_book(pk)
