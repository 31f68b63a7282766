"""The locks app."""

from __future__ import annotations

from django.apps import AppConfig


class LocksConfig(AppConfig):
    """Registers the table `locks` and the commands."""

    name = "locks"
