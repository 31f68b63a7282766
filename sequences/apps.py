"""The sequences app."""

from __future__ import annotations

from django.apps import AppConfig


class SequencesConfig(AppConfig):
    """Makes the tables `counters` and `invoices`, and the commands, known."""

    name = "sequences"
