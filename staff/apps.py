"""The staff app."""

from __future__ import annotations

from django.apps import AppConfig


class StaffConfig(AppConfig):
    """Makes the tables `staffactions` and `reports` known."""

    name = "staff"
