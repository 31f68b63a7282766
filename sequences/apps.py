"""The sequences app."""

from __future__ import annotations

from django.apps import AppConfig


class SequencesConfig(AppConfig):
    """Registers the table `counters` and the commands."""

    name = "sequences"
