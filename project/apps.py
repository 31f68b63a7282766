"""The site as an app, for what is checked of it as a whole."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class ProjectConfig(AppConfig):
    """Registers the system checks, and lets the log have what Python writes by itself."""

    name = "project"

    def ready(self) -> None:
        """Let `check --deploy` look at the static files, and the log see threads and warnings."""
        from project import checks, logs, metrics  # noqa: F401 - checks registers itself

        if settings.METRICS_TOKEN:
            metrics.listen()
        logs.take_in_what_python_writes()
