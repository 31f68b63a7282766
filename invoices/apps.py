"""The invoices app."""

from __future__ import annotations

from django.apps import AppConfig


class InvoicesConfig(AppConfig):
    """Registers the table `invoices` and the commands."""

    name = "invoices"
