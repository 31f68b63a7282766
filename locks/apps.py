"""The locks app."""

from __future__ import annotations

from django.apps import AppConfig


class LocksConfig(AppConfig):
    """Makes the table `locks`, and the commands, known."""

    name = "locks"
